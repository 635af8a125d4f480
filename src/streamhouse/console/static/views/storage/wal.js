// The write-ahead logs of the node that answers: what is acknowledged and in no segment yet.

import { h, replace } from "../../lib/dom.js";
import { bytes, count } from "../../lib/format.js";
import { figure } from "../../lib/page.js";
import { table } from "../../lib/table.js";

export function walCard() {
  const figures = { uncovered: figure("In no segment yet"), local: figure("On its disk"), unsynced: figure("Not synced yet"), gathered: figure("Gathered for an object") };
  const title = h("h2", {}, "Write-ahead log");
  const problem = h("p", { class: "bad", role: "alert" });
  const files = table({ columns: FILE_COLUMNS, key: (file) => file.name, label: "WAL files", empty: "There is none yet." });
  const objects = table({ columns: OBJECT_COLUMNS, key: (object) => object.key || "next", label: "WAL objects", empty: "No object is on its way." });
  const onDisk = [figures.local.element, figures.unsynced.element, h("div", {}, h("h3", {}, "Files"), files.element)];
  const element = h(
    "section", { class: "page" }, title, problem,
    h("div", { class: "cards" }, Object.values(figures).map((one) => one.element)),
    h("div", { class: "columns" }, onDisk.at(-1), h("div", {}, h("h3", {}, "Objects on their way"), objects.element)),
  );
  return { element, update };

  function update(wal) {
    const { local, object } = wal;
    replace(title, `Write-ahead log of ${wal.agent_id}`);
    problem.textContent = local?.problem ?? "";
    problem.hidden = !local?.problem;
    for (const part of onDisk) part.hidden = local === null;
    figures.uncovered.set(count(wal.uncovered_records), bytes(wal.uncovered_bytes));
    figures.local.set(bytes(local?.size_bytes), `${count(local?.files.length)} files`);
    figures.unsynced.set(bytes(local?.unsynced_bytes), `${count(local?.unsynced_batches)} batches`);
    figures.gathered.set(bytes(object.gathered_bytes), `${count(object.gathered_batches)} batches`);
    files.update(local?.files ?? []);
    objects.update(object.in_flight);
  }
}

const FILE_COLUMNS = [
  { name: "name", title: "File", value: (file) => file.name, sort: true },
  { name: "size", title: "Size", value: (file) => bytes(file.size_bytes), sort: (file) => file.size_bytes, align: "right", width: "6rem" },
  { name: "needed", title: "Needed by", value: (file) => (file.is_written_now ? "written now" : file.partitions_needing_it ? `${count(file.partitions_needing_it)} partitions` : "nobody"), sort: (file) => file.partitions_needing_it, width: "8rem" },
];

const OBJECT_COLUMNS = [
  { name: "key", title: "Object", value: (object) => object.key || "to be uploaded", sort: true },
  { name: "size", title: "Size", value: (object) => bytes(object.size_bytes), sort: (object) => object.size_bytes, align: "right", width: "6rem" },
  { name: "state", title: "State", value: (object) => (object.is_stored ? "stored, to be committed" : "uploading"), width: "10rem", narrow: false },
];
