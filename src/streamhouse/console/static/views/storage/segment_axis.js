// A partition's segments as boxes on two axes: when their records were written, and their offsets. What is not in a
// segment yet is the band above them. Offsets never overlap, so the height of the pointer says which segment it means.

import { replace, svg } from "../../lib/dom.js";
import { brief, count, time, zone } from "../../lib/format.js";

const HEIGHT = 320;
const LEFT = 78;
const RIGHT = 12;
const TOP = 12;
const BOTTOM = 34;
const SMALLEST_BOX = 3;
const TICKS_ACROSS = 180;
const TICKS_UP = 5;
const DAY_MS = 86_400_000;
// Parts of 2026-01-31 14:05:09.123.
const TIME_OF_DAY = [11, 19];
const DATE_AND_TIME = [5, 16];

export class SegmentAxis {
  /** `onPoint` and `onOpen` are told the segment that the pointer is at; null is nothing. */
  constructor({ onPoint, onOpen }) {
    this.shown = null;
    this.element = svg("svg", { class: "segment-axis", role: "img", "aria-label": "Segments by time and offset" });
    this.element.addEventListener("pointermove", (event) => onPoint(this.#segmentAt(event)));
    this.element.addEventListener("pointerleave", () => onPoint(null));
    this.element.addEventListener("click", (event) => {
      const segment = this.#segmentAt(event);
      if (segment !== null) onOpen(segment);
    });
    this.resized = new ResizeObserver(() => this.#draw());
    this.resized.observe(this.element);
  }

  /** What to show: segments, logStart, committedEnd, end, and openedBase of the one that is open. */
  update(shown) {
    this.shown = shown;
    this.#draw();
  }

  close() {
    this.resized.disconnect();
  }

  #draw() {
    const width = this.element.clientWidth;
    if (this.shown === null || width === 0) return;
    const { segments, openedBase } = this.shown;
    this.element.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.element.setAttribute("aria-label", describe(this.shown));
    const scale = scaleOf(this.shown, width);
    this.scale = scale;
    const opened = segments.find((segment) => segment.base_offset === openedBase);
    replace(
      this.element,
      ...grid(scale, width),
      band(scale, this.shown, width),
      svg("path", { class: "segment-box", d: segments.map((segment) => box(scale, segment)).join("") }),
      opened === undefined ? null : svg("path", { class: "segment-box is-opened", d: box(scale, opened) }),
    );
  }

  #segmentAt(event) {
    if (this.shown === null || this.scale === undefined) return null;
    const { top, height } = this.element.getBoundingClientRect();
    const offset = this.scale.offsetAt(((event.clientY - top) / height) * HEIGHT);
    return segmentOf(this.shown.segments, offset);
  }
}

function scaleOf({ segments, logStart, end }, width) {
  const first = segments.reduce((least, each) => Math.min(least, each.min_timestamp_ms), Infinity);
  const last = segments.reduce((most, each) => Math.max(most, each.max_timestamp_ms), -Infinity);
  const start = Number.isFinite(first) ? first : 0;
  const span = Math.max(1, Number.isFinite(last) ? last - start : 1);
  const offsets = Math.max(1, end - logStart);
  const across = width - LEFT - RIGHT;
  const up = HEIGHT - TOP - BOTTOM;
  return {
    start,
    span,
    logStart,
    offsets,
    isEmpty: segments.length === 0,
    x: (timeMs) => LEFT + ((timeMs - start) / span) * across,
    y: (offset) => TOP + up - ((offset - logStart) / offsets) * up,
    offsetAt: (y) => logStart + ((TOP + up - y) / up) * offsets,
  };
}

function box(scale, { base_offset: base, end_offset: end, min_timestamp_ms: from, max_timestamp_ms: to }) {
  const left = scale.x(from);
  const wide = Math.max(SMALLEST_BOX, scale.x(to) - left);
  const upper = scale.y(end);
  const high = Math.max(SMALLEST_BOX, scale.y(base) - upper);
  return `M${left.toFixed(1)} ${upper.toFixed(1)}h${wide.toFixed(1)}v${high.toFixed(1)}h${(-wide).toFixed(1)}z`;
}

/** [committed end, end): acknowledged, and in a write-ahead log until the next segment. */
function band(scale, { committedEnd, end }, width) {
  if (end <= committedEnd) return null;
  const upper = scale.y(end);
  const high = Math.max(SMALLEST_BOX, scale.y(committedEnd) - upper);
  return svg(
    "rect",
    { class: "segment-pending", x: LEFT, y: upper, width: width - LEFT - RIGHT, height: high },
    svg("title", {}, `${count(end - committedEnd)} records in no segment yet`),
  );
}

function grid(scale, width) {
  const lines = [];
  for (let tick = 0; tick <= TICKS_UP; tick++) {
    const offset = Math.round(scale.logStart + (scale.offsets * tick) / TICKS_UP);
    const y = scale.y(offset);
    lines.push(svg("line", { class: "axis-line", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }));
    lines.push(svg("text", { class: "axis-text is-right", x: LEFT - 6, y: y + 4 }, offset < 1e8 ? count(offset) : brief(offset)));
  }
  if (scale.isEmpty) return lines;
  const ticks = Math.max(1, Math.floor((width - LEFT - RIGHT) / TICKS_ACROSS));
  for (let tick = 0; tick <= ticks; tick++) {
    const timeMs = scale.start + (scale.span * tick) / ticks;
    const place = tick === 0 ? "is-left" : tick === ticks ? "is-right" : "is-middle";
    const at = { class: `axis-text ${place}`, x: scale.x(timeMs), y: HEIGHT - BOTTOM + 18 };
    const text = time(timeMs).slice(...(scale.span < DAY_MS ? TIME_OF_DAY : DATE_AND_TIME));
    lines.push(svg("text", at, tick === ticks ? `${text} ${zone(timeMs)}` : text));
  }
  return lines;
}

/** Segments are in the order of their offsets; compaction and clean-up may leave gaps between them. */
function segmentOf(segments, offset) {
  let low = 0;
  let high = segments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (segments[middle].end_offset <= offset) low = middle + 1;
    else high = middle;
  }
  const found = segments[low];
  return found !== undefined && found.base_offset <= offset ? found : null;
}

function describe({ segments, logStart, committedEnd, end }) {
  const kept = `offsets ${logStart} to ${end}`;
  return `${segments.length} segments by time and offset, ${kept}, ${end - committedEnd} records in no segment yet`;
}
