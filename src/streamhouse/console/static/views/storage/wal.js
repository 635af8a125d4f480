// The write-ahead logs of the agents: what is acknowledged and in no segment yet. An agent that does not answer has one
// too, of which nobody here knows.

import { h, replace } from "../../lib/dom.js";
import { bytes, count, counted, time } from "../../lib/format.js";
import { claim, figure, middle } from "../../lib/page.js";
import { keepQuery } from "../../lib/route.js";
import { table } from "../../lib/table.js";

/** {element, update({wals, unanswered})}: every agent's in a line, and one of them in full. */
export function walCards(agent) {
  let chosen = agent;
  let known = { wals: [], unanswered: [] };
  const one = walCard();
  const list = table({ columns: WAL_COLUMNS, key: (row) => row.agent_id, onOpen: choose, label: "write-ahead logs", empty: "There is no agent, and so no write-ahead log." });
  const section = h("section", {}, h("h2", {}, "Write-ahead logs"), list.element);
  const nobody = h("p", { class: "muted" });

  function choose(row) {
    chosen = row.agent_id;
    keepQuery({ agent: chosen });
    show();
  }

  function show() {
    const wal = known.wals.find(({ agent_id: name }) => name === chosen) ?? (chosen ? null : known.wals[0]);
    one.element.hidden = !wal;
    nobody.textContent = !wal && chosen ? `${chosen} does not answer: what its write-ahead log holds is not known.` : "";
    if (wal) one.update(wal);
  }

  return {
    element: h("div", { class: "page" }, section, nobody, one.element),
    update(now) {
      known = now;
      list.update([...now.wals, ...now.unanswered]);
      show();
    },
  };
}

function walCard() {
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
    figures.local.set(bytes(local?.size_bytes), counted(local?.files.length, "file"));
    figures.unsynced.set(bytes(local?.unsynced_bytes), local ? batches(local.unsynced_batches) : "");
    figures.gathered.set(bytes(object.gathered_bytes), batches(object.gathered_batches));
    files.update(local?.files ?? []);
    objects.update(object.in_flight);
  }
}

const batches = (number) => `${count(number)} ${number === 1 ? "batch" : "batches"}`;
const isKnown = (row) => row.since_ms === undefined;
const walBytes = ({ local }) => (local ? bytes(local.size_bytes) : "none");
const onTheWay = ({ object }) => object.in_flight.length;

const WAL_COLUMNS = [
  { name: "agent", title: "Agent", value: (row) => middle(row.agent_id), sort: (row) => row.agent_id },
  { name: "records", title: "In no segment", value: (row) => (isKnown(row) ? count(row.uncovered_records) : "not known"), sort: (row) => row.uncovered_records, align: "right", width: "clamp(7.6rem, 15vw, 10rem)" },
  { name: "disk", title: "On its disk", value: (row) => (isKnown(row) ? walBytes(row) : "–"), sort: (row) => row.local?.size_bytes, align: "right", width: "clamp(6.4rem, 12vw, 8rem)" },
  { name: "way", title: "On their way", value: (row) => (isKnown(row) ? counted(onTheWay(row), "object") : "–"), sort: (row) => row.object?.in_flight.length, align: "right", narrow: false, width: "8.5rem" },
  { name: "state", title: "State", value: (row) => walState(row), sort: (row) => row.local?.problem ?? row.why ?? "", narrow: false },
];

function walState(row) {
  if (!isKnown(row)) return h("span", { class: "bad", title: row.why }, `no answer since ${time(row.since_ms)}`);
  return row.local?.problem ? h("span", { class: "bad", title: row.local.problem }, row.local.problem) : claim(h("span", { class: "good" }, "answers"));
}

const FILE_COLUMNS = [
  { name: "name", title: "File", value: (file) => middle(file.name), sort: (file) => file.name },
  { name: "size", title: "Size", value: (file) => bytes(file.size_bytes), sort: (file) => file.size_bytes, align: "right", width: "6rem" },
  { name: "needed", title: "Needed by", value: (file) => (file.is_written_now ? "written now" : file.partitions_needing_it ? `${count(file.partitions_needing_it)} partitions` : "nobody"), sort: (file) => file.partitions_needing_it, width: "8rem" },
];

const OBJECT_COLUMNS = [
  { name: "key", title: "Object", value: (object) => (object.key ? middle(object.key) : "to be uploaded"), sort: (object) => object.key },
  { name: "size", title: "Size", value: (object) => bytes(object.size_bytes), sort: (object) => object.size_bytes, align: "right", width: "6rem" },
  { name: "state", title: "State", value: (object) => (object.is_stored ? "stored, to be committed" : "uploading"), width: "10rem", narrow: false },
];
