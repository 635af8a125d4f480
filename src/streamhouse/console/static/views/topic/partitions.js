// A topic's partitions: who leads them, how far they are, and how much of them is in the object store.

import { all, at } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { bytes, count, duration } from "../../lib/format.js";
import { middle } from "../../lib/page.js";
import { go, to } from "../../lib/route.js";
import { table } from "../../lib/table.js";

/** {element, refresh() → rows} */
export function partitionTable(topic, signal) {
  const shown = table({
    columns: columns(topic),
    key: (row) => row.partition,
    onOpen: (row) => go("topics", topic, "messages", { partition: row.partition }),
    label: "Partitions",
  });
  return {
    element: shown.element,
    async refresh() {
      const rows = await all(at`topics/${topic}/partitions`, "partitions", {}, signal);
      shown.update(rows);
      return rows;
    },
  };
}

function columns(topic) {
  const right = { align: "right" };
  const segments = (row) =>
    h("a", { href: to("storage", topic, String(row.partition)) }, count(row.segment_count));
  return [
    { name: "partition", title: "Partition", value: (row) => row.partition, sort: true, width: "clamp(5rem, 9vw, 6.6rem)" },
    { name: "leader", title: "Leader", value: leader, sort: (row) => row.leader ?? "" },
    { name: "epoch", title: "Epoch", value: (row) => row.epoch, sort: true, narrow: false, width: "5.6rem", ...right },
    {
      name: "start",
      title: "Log start",
      value: (row) => count(row.log_start_offset),
      sort: (row) => row.log_start_offset,
      width: "7rem",
      narrow: false,
      ...right,
    },
    {
      name: "end",
      title: "High watermark",
      value: (row) => h("span", { title: row.unheard && `without ${row.unheard}, which this node has not heard` }, count(heardEnd(row))),
      sort: heardEnd,
      width: "clamp(5.9rem, 12vw, 9.4rem)",
      ...right,
    },
    {
      name: "committed",
      title: "In segments to",
      value: (row) => count(row.committed_end),
      sort: (row) => row.committed_end,
      width: "9.2rem",
      narrow: false,
      ...right,
    },
    {
      name: "segments",
      title: "Segments",
      value: segments,
      sort: (row) => row.segment_count,
      narrow: false,
      width: "7rem",
      ...right,
    },
    {
      name: "size",
      title: "Size",
      value: (row) => bytes(row.stored_bytes),
      sort: (row) => row.stored_bytes,
      width: "clamp(5.5rem, 9vw, 7rem)",
      ...right,
    },
    {
      name: "lease",
      title: "Lease left",
      value: (row) => duration(row.lease_left_ms),
      sort: (row) => row.lease_left_ms,
      width: "6.6rem",
      narrow: false,
      ...right,
    },
  ];
}

/** Null of a log of which an agent may have more that this node has never heard. */
const heardEnd = (row) => (row.unheard === null ? row.high_watermark : null);

function leader(row) {
  if (row.leader !== null) return [middle(row.leader), row.pinned_to && h("span", { class: "muted" }, " pinned")];
  return h("span", { class: "bad" }, row.waits_for ? `waits for ${row.waits_for}` : "nobody");
}
