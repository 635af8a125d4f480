// Lines over time, small. Whoever does not see them reads the same in words.

import { h, replace, svg } from "./dom.js";
import { brief, clock, zone } from "./format.js";

const USUAL_WIDTH = 600;
const HEIGHT = 160;
const LEFT = 62;
const BOTTOM = 20;
const TOP = 8;

/** series: [{name, points: [[time in ms, number or null], …]}], oldest first; unit(number) → text; title.
 * isBinary: the unit goes up by 1024. Returns {element, update(series)}. */
export function lineChart({ series = [], unit = brief, title = "", isBinary = false }) {
  const picture = svg("svg", { role: "img" });
  const legend = h("figcaption", { class: "legend" });
  const element = h("figure", { class: "chart" }, title && h("h3", {}, title), picture, legend);
  let shown = series;
  const draw = () => {
    const width = picture.clientWidth || USUAL_WIDTH;
    picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    replace(picture, drawing(shown, unit, width, isBinary ? nextPowerOfTwo : niceTop));
  };
  const chart = {
    element,
    update(given) {
      shown = given;
      draw();
      picture.setAttribute("aria-label", inWords(title, given, unit));
      replace(
        legend,
        given.map((one, index) =>
          h("span", {}, h("i", { class: `key line-${index % 6}` }), one.name, " ", h("b", {}, unit(last(one)))),
        ),
      );
      return chart;
    },
  };
  new ResizeObserver(draw).observe(picture);
  return chart.update(series);
}

const SPARK_WIDTH = 96;
const SPARK_HEIGHT = 24;

/** A line in a row of a table, from 0 up; whoever does not see it hears `label`. points: as for `lineChart`. */
export function sparkline(points, label) {
  const size = { viewBox: `0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`, class: "spark", role: "img", "aria-label": label };
  const known = points.filter(([, value]) => value !== null);
  if (known.length < 2) return svg("svg", size);
  const [from, to] = extent(known.map(([time]) => time));
  const top = Math.max(1, ...known.map(([, value]) => value));
  const x = (time) => 1 + ((time - from) / Math.max(1, to - from)) * (SPARK_WIDTH - 2);
  const y = (value) => 2 + (1 - value / top) * (SPARK_HEIGHT - 4);
  return svg("svg", size, svg("path", { d: path(points, x, y), class: "line line-0" }));
}

/** A memory of measurements for a chart: of the last `span` milliseconds. */
export class History {
  constructor(span = 300_000) {
    this.span = span;
    this.points = new Map();
  }

  /** What somebody else has measured before: points as `lineChart` takes them, by name. */
  begin(points) {
    this.points = new Map(Object.entries(points));
  }

  add(name, value, now = Date.now()) {
    const points = this.points.get(name) ?? [];
    points.push([now, value]);
    const first = points.findIndex(([at]) => at >= now - this.span);
    points.splice(0, first);
    this.points.set(name, points);
  }

  series(...names) {
    return (names.length ? names : [...this.points.keys()]).map((name) => ({
      name,
      points: this.points.get(name) ?? [],
    }));
  }
}

function drawing(series, unit, width, topOf) {
  const points = series.flatMap((one) => one.points).filter(([, value]) => value !== null && value !== undefined);
  if (points.length < 2)
    return svg("text", { x: width / 2, y: HEIGHT / 2, class: "axis", "text-anchor": "middle" }, "measuring…");
  const [from, to] = extent(points.map(([time]) => time));
  const top = topOf(Math.max(...points.map(([, value]) => value)));
  const x = (time) => LEFT + ((time - from) / Math.max(1, to - from)) * (width - LEFT - 6);
  const y = (value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
  return [
    [0, top / 2, top].map((value) => [
      svg("line", { x1: LEFT, x2: width, y1: y(value), y2: y(value), class: "grid-line" }),
      svg("text", { x: LEFT - 6, y: y(value) + 4, class: "axis", "text-anchor": "end" }, unit(value)),
    ]),
    svg("text", { x: LEFT, y: HEIGHT - 4, class: "axis" }, clock(from)),
    svg("text", { x: width - 4, y: HEIGHT - 4, class: "axis", "text-anchor": "end" }, `${clock(to)} ${zone(to)}`),
    series.map((one, index) => svg("path", { d: path(one.points, x, y), class: `line line-${index % 6}` })),
  ];
}

/** With a gap wherever nothing is known. */
function path(points, x, y) {
  let isOpen = false;
  return points
    .map(([time, value]) => {
      if (value === null || value === undefined) return ((isOpen = false), "");
      const step = `${isOpen ? "L" : "M"}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
      isOpen = true;
      return step;
    })
    .join("");
}

function inWords(title, series, unit) {
  const lines = series.map((one) => {
    const values = one.points.map(([, value]) => value).filter((value) => value !== null && value !== undefined);
    if (!values.length) return `${one.name}: nothing known yet`;
    const [least, most] = extent(values);
    return `${one.name}: now ${unit(last(one))}, between ${unit(least)} and ${unit(most)}`;
  });
  return `${title}. ${lines.join("; ")}`;
}

const last = (one) => one.points.at(-1)?.[1] ?? null;

function extent(values) {
  let [least, most] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return [least, most];
}

const nextPowerOfTwo = (most) => (most <= 1 ? 1 : 2 ** Math.ceil(Math.log2(most)));

/** The next of 1, 2, 5, 10, … so that the axis says round numbers. */
function niceTop(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].find((step) => step * power >= most) * power;
}
