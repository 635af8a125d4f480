// A topic's partitions. What is in the object store is asked for only of those on screen.

import { all, at } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { bytes, count, duration } from "../../lib/format.js";
import { go, to } from "../../lib/route.js";
import { table } from "../../lib/table.js";

const AT_ONCE = 3;
const STORED_FOR_MS = 15_000;

/** {element, refresh() → rows} */
export function partitionTable(topic, signal) {
  const stored = new Stored(topic, signal, () => shown.refresh());
  const shown = table({
    columns: columns(topic, stored),
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

function columns(topic, stored) {
  const right = { align: "right" };
  const segments = (row) =>
    h("a", { href: to("storage", topic, String(row.partition)) }, count(stored.of(row.partition)?.segments));
  return [
    { name: "partition", title: "Partition", value: (row) => row.partition, sort: true, width: "5.6rem" },
    { name: "leader", title: "Leader", value: leader, sort: (row) => row.leader ?? "" },
    { name: "epoch", title: "Epoch", value: (row) => row.epoch, sort: true, narrow: false, width: "6rem", ...right },
    {
      name: "start",
      title: "Log start",
      value: (row) => count(row.log_start_offset),
      sort: (row) => row.log_start_offset,
      narrow: false,
      ...right,
    },
    {
      name: "end",
      title: "High watermark",
      value: (row) => count(row.high_watermark),
      sort: (row) => row.high_watermark,
      ...right,
    },
    {
      name: "committed",
      title: "In segments to",
      value: (row) => count(row.committed_end),
      sort: (row) => row.committed_end,
      narrow: false,
      ...right,
    },
    { name: "segments", title: "Segments", value: segments, narrow: false, width: "7rem", ...right },
    { name: "size", title: "Size", value: (row) => bytes(stored.of(row.partition)?.size), width: "5.6rem", ...right },
    {
      name: "lease",
      title: "Lease left",
      value: (row) => duration(row.lease_left_ms),
      sort: (row) => row.lease_left_ms,
      narrow: false,
      ...right,
    },
  ];
}

function leader(row) {
  if (row.leader !== null) return [row.leader, row.pinned_to && h("span", { class: "muted" }, " pinned")];
  return h("span", { class: "bad" }, row.waits_for ? `waits for ${row.waits_for}` : "nobody");
}

/** How much of a partition is in segments: asked for when it is first shown, a few at a time, and again after a while. */
class Stored {
  constructor(topic, signal, onNews) {
    Object.assign(this, { topic, signal, onNews, known: new Map(), wanted: new Set(), running: 0 });
  }

  of(partition) {
    const known = this.known.get(partition);
    if (!known || known.at < performance.now() - STORED_FOR_MS) {
      this.wanted.add(partition);
      this.go();
    }
    return known;
  }

  async go() {
    if (this.running >= AT_ONCE) return;
    this.running += 1;
    while (this.wanted.size && !this.signal.aborted) {
      const [partition] = this.wanted;
      this.known.set(partition, { ...this.known.get(partition), at: performance.now() });
      this.wanted.delete(partition);
      await this.ask(partition).catch(() => {}); // gone, or asked again in a while
    }
    this.running -= 1;
  }

  async ask(partition) {
    const segments = await all(at`topics/${this.topic}/partitions/${partition}/segments`, "segments", {}, this.signal);
    const size = segments.reduce((sum, segment) => sum + segment.size_bytes, 0);
    this.known.set(partition, { segments: segments.length, size, at: performance.now() });
    this.onNews();
  }
}
