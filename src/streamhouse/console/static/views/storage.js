// Where records are kept: this node's write-ahead logs, and a partition's segments, down to the blocks of one.

import { all, at, get } from "../lib/api.js";
import { h, replace } from "../lib/dom.js";
import { bytes, count, counted, time } from "../lib/format.js";
import { every } from "../lib/live.js";
import { choice, field, middle, pageHead } from "../lib/page.js";
import { go, keepQuery, to } from "../lib/route.js";
import { table } from "../lib/table.js";
import { openedSegment } from "./storage/opened_segment.js";
import { SegmentAxis } from "./storage/segment_axis.js";
import { walCards } from "./storage/wal.js";

const REFRESH_MS = 3_000;
const MOST_SEGMENTS = 10_000;
/** With more segments than this every tenth look is enough: each of them gets the whole list. */
const MANY_SEGMENTS = 2_000;

export async function render(root, params, signal) {
  if (params.topic === undefined) await renderTopics(root, params.query, signal);
  else await renderPartition(root, params, signal);
}

async function renderTopics(root, query, signal) {
  const wal = walCards(query.get("agent"));
  const topics = table({ columns: TOPIC_COLUMNS, key: (topic) => topic.name, onOpen: (topic) => go("storage", topic.name, 0), filter: (topic) => topic.name, label: "topics", empty: "There are no topics yet." });
  replace(root, pageHead({ title: "Storage" }), wal.element, h("section", {}, h("h2", {}, "Segments by topic"), topics.element));
  await every(REFRESH_MS, signal, async () => wal.update(await get("wals", {}, signal)));
  topics.update(await all("topics", "topics", {}, signal));
}

async function renderPartition(root, { topic, partition, query }, signal) {
  const { partition_count: partitionCount } = await get(at`topics/${topic}`, {}, signal);
  const choose = choice(Array.from({ length: partitionCount }, (_, number) => [number, number]), partition, { onchange: () => go("storage", topic, choose.value) });
  const summary = h("p", { class: "muted", role: "status" });
  const pointed = h("p", { class: "muted" }, POINT_HINT);
  const axis = new SegmentAxis({ onPoint: (segment) => (pointed.textContent = segment ? describe(segment) : POINT_HINT), onOpen: (segment) => open(segment.base_offset) });
  const list = table({ columns: SEGMENT_COLUMNS, key: (segment) => String(segment.base_offset), onOpen: (segment) => open(segment.base_offset), label: "segments", sorted: { name: "base", isDown: true }, empty: "Nothing of it is in a segment yet." });
  const opened = h("div", {});
  let turn = 0;
  let opening = new AbortController();
  let shown = { segments: [], logStart: 0, committedEnd: 0, end: 0, openedBase: null };

  /** The last one that was asked for, whichever comes first. */
  async function open(base) {
    opening.abort();
    opening = new AbortController();
    const wanted = AbortSignal.any([signal, opening.signal]);
    shown = { ...shown, openedBase: base };
    axis.update(shown);
    keepQuery({ segment: base });
    await openedSegment(opened, topic, partition, base, wanted);
    if (!wanted.aborted) opened.scrollIntoView({ block: "nearest" });
  }

  replace(
    root,
    pageHead({ title: `${topic}/${partition}`, crumbs: [["Storage", to("storage")], [topic, to("topics", topic)]], actions: field("Partition", choose) }),
    h("section", { class: "card" }, h("h2", {}, "Segments by time and offset"), summary, axis.element, pointed),
    opened,
    h("section", {}, h("h2", {}, "Segments"), list.element),
  );
  signal.addEventListener("abort", () => axis.close());
  await every(REFRESH_MS, signal, async () => {
    if (shown.segments.length > MANY_SEGMENTS && ++turn % 10) return;
    shown = { ...(await read(topic, partition, signal)), openedBase: shown.openedBase };
    summary.textContent = summaryOf(shown);
    axis.update(shown);
    list.update(shown.segments);
  });
  if (query.has("segment")) await open(Number(query.get("segment")));
}

async function read(topic, partition, signal) {
  const number = Number(partition);
  const [stored, { partitions }] = await Promise.all([
    get(at`topics/${topic}/partitions/${partition}/segments`, { limit: MOST_SEGMENTS }, signal),
    get(at`topics/${topic}/partitions`, { limit: 1, after: number - 1 }, signal),
  ]);
  const end = Math.max(stored.committed_end, partitions[0]?.high_watermark ?? 0);
  return { segments: stored.segments, logStart: stored.log_start_offset, committedEnd: stored.committed_end, end, hasMore: stored.next !== null };
}

function summaryOf({ segments, logStart, committedEnd, end, hasMore }) {
  const size = segments.reduce((sum, segment) => sum + segment.size_bytes, 0);
  const amount = `${hasMore ? "the oldest " : ""}${counted(segments.length, "segment")}, ${bytes(size)}`;
  return `Offsets ${count(logStart)} to ${count(end)}: ${amount}; ${count(end - committedEnd)} records in no segment yet.`;
}

const POINT_HINT = "Each box is a segment: from its first to its last record in time, from its first to its last offset. Click one to open it.";

function describe(segment) {
  return `${count(segment.base_offset)} to ${count(segment.end_offset - 1)}: ${count(segment.record_count)} records, ${bytes(segment.size_bytes)}, ${time(segment.min_timestamp_ms)} to ${time(segment.max_timestamp_ms)}`;
}

const TOPIC_COLUMNS = [
  { name: "name", title: "Topic", value: (topic) => h("a", { href: to("storage", topic.name, 0) }, middle(topic.name)), sort: (topic) => topic.name },
  { name: "partitions", title: "Partitions", value: (topic) => count(topic.partition_count), sort: (topic) => topic.partition_count, align: "right", width: "8rem" },
  { name: "cleanup", title: "Clean-up", value: (topic) => topic.cleanup_policy, sort: true, narrow: false, width: "12rem" },
];

const SEGMENT_COLUMNS = [
  { name: "base", title: "From offset", value: (segment) => count(segment.base_offset), sort: (segment) => segment.base_offset, align: "right", width: "clamp(7.2rem, 12vw, 10rem)" },
  { name: "records", title: "Records", value: (segment) => count(segment.record_count), sort: (segment) => segment.record_count, align: "right", width: "clamp(5.5rem, 9vw, 8rem)" },
  { name: "size", title: "Size", value: (segment) => bytes(segment.size_bytes), sort: (segment) => segment.size_bytes, align: "right", width: "clamp(5.5rem, 9vw, 8rem)" },
  { name: "first", title: "First record", value: (segment) => time(segment.min_timestamp_ms), sort: (segment) => segment.min_timestamp_ms, narrow: false },
  { name: "last", title: "Last record", value: (segment) => time(segment.max_timestamp_ms), sort: (segment) => segment.max_timestamp_ms, narrow: false },
  { name: "epoch", title: "Epoch", value: (segment) => count(segment.epoch), sort: (segment) => segment.epoch, align: "right", narrow: false, width: "5.5rem" },
];
