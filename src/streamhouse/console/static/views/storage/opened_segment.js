// A segment opened to its blocks: as a strip of the object's bytes, and as a table.

import { at, get } from "../../lib/api.js";
import { problemBox } from "../../lib/dialog.js";
import { h, replace, svg } from "../../lib/dom.js";
import { bytes, count, percent, time } from "../../lib/format.js";
import { button, facts } from "../../lib/page.js";
import { to } from "../../lib/route.js";
import { table } from "../../lib/table.js";

const PAGE = 200;

export async function openedSegment(root, topic, partition, base, signal) {
  const path = at`topics/${topic}/partitions/${partition}/segments/${base}`;
  try {
    const opened = await get(path, { limit: PAGE }, signal);
    if (!signal.aborted) showSegment(root, path, opened, signal);
  } catch (problem) {
    if (!signal.aborted) replace(root, problemBox(problem));
  }
}

function showSegment(root, path, { topic, partition, segment, ...opened }, signal) {
  const strip = h("div", {});
  const trouble = h("div", {});
  const blocks = table({ columns: BLOCK_COLUMNS, key: (block) => String(block.block), label: "blocks" });
  const more = button("More blocks", () => showMore());
  let shown = opened.blocks;
  let next = opened.next;

  function showBlocks() {
    blocks.update(shown);
    replace(strip, blockStrip(shown, opened.index_position, segment.size_bytes));
    more.hidden = next === null;
  }
  async function showMore() {
    more.disabled = true;
    try {
      const page = await get(path, { limit: PAGE, after: next }, signal);
      shown = [...shown, ...page.blocks];
      next = page.next;
      replace(trouble);
      showBlocks();
    } catch (problem) {
      if (!signal.aborted) replace(trouble, problemBox(problem));
    }
    more.disabled = false;
  }

  showBlocks();
  const messages = h("a", { class: "button", href: to("topics", topic, "messages", { mode: "offset", partition, offset: segment.base_offset }) }, "Its records");
  replace(
    root,
    h("section", { class: "card", "aria-label": "Opened segment" },
      h("div", { class: "bar" }, h("h2", {}, `Segment from offset ${count(segment.base_offset)}`), h("span", { class: "push" }), messages),
      facts(factsOf(segment, opened)), strip, blocks.element, trouble, more,
    ),
  );
}

function factsOf(segment, { block_count: blockCount }) {
  return [
    ["Offsets", `${count(segment.base_offset)} to ${count(segment.end_offset - 1)}`],
    ["Records", count(segment.record_count)],
    ["Written", `${time(segment.min_timestamp_ms)} to ${time(segment.max_timestamp_ms)}`],
    ["Size", `${bytes(segment.size_bytes)} in ${count(blockCount)} ${blockCount === 1 ? "block" : "blocks"}`],
    ["Object", h("code", {}, segment.object_key)],
    ["Stored", `${time(segment.created_at_ms)}, by the leader of epoch ${segment.epoch}`],
  ];
}

/** The object's bytes from left to right: its blocks, and the index behind them. */
function blockStrip(blocks, indexPosition, size) {
  const place = (from, until, kind, text) => svg("rect", { x: from, y: 0, width: Math.max(0, until - from), height: 1, class: kind, "vector-effect": "non-scaling-stroke" }, svg("title", {}, text));
  const label = `${blocks.length} blocks in ${bytes(size)}`;
  return svg(
    "svg",
    { class: "block-strip", viewBox: `0 0 ${size} 1`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    blocks.map((block) => place(block.position, block.position + block.size_bytes, block.problem ? "is-bad" : block.block % 2 ? "is-odd" : null, `Block ${block.block}: ${count(block.record_count)} records, ${bytes(block.size_bytes)}`)),
    place(indexPosition, size, "is-index", `Index, ${bytes(size - indexPosition)}`),
  );
}

const BLOCK_COLUMNS = [
  { name: "block", title: "Block", value: (block) => block.block, sort: true, align: "right", width: "clamp(3.9rem, 6vw, 5rem)" },
  { name: "offsets", title: "Offsets", value: (block) => `${count(block.first_offset)} – ${count(block.end_offset - 1)}`, sort: (block) => block.first_offset, width: "clamp(10rem, 16vw, 13rem)" },
  { name: "records", title: "Records", value: (block) => count(block.record_count), sort: (block) => block.record_count, align: "right", narrow: false },
  { name: "size", title: "Size", value: (block) => bytes(block.size_bytes), sort: (block) => block.size_bytes, align: "right" },
  { name: "ratio", title: "Of raw", value: (block) => (block.raw_bytes ? percent(block.size_bytes / block.raw_bytes) : "–"), sort: (block) => block.size_bytes / (block.raw_bytes ?? Infinity), align: "right", narrow: false },
  { name: "codec", title: "Codec", value: (block) => block.problem ?? block.codec ?? "–", sort: true, narrow: false },
  { name: "position", title: "At byte", value: (block) => count(block.position), sort: (block) => block.position, align: "right", narrow: false },
  { name: "last", title: "Latest record", value: (block) => time(block.max_timestamp_ms), sort: (block) => block.max_timestamp_ms, narrow: false, width: "20rem" },
];
