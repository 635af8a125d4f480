// Spark pipelines of this node's machine: how they run, how fast, how far behind, and what they could not process.

import { get } from "../lib/api.js";
import { History, lineChart } from "../lib/chart.js";
import { h, replace } from "../lib/dom.js";
import { ago, brief, clock, count, duration, rate, time, zone } from "../lib/format.js";
import { every } from "../lib/live.js";
import { claim, facts, middle, pageHead } from "../lib/page.js";
import { keepQuery } from "../lib/route.js";
import { table } from "../lib/table.js";
import { deadLetters } from "./pipelines/dead_letters.js";

const REFRESH_MS = 2_000;
const STATE_KINDS = { running: "good", silent: "bad", unknown: "warn", ended: "muted", failed: "bad", died: "bad" };
/** The query that writes the dead letters: its rows are none of the pipeline's own. */
const DEAD_LETTER_QUERY = "dead_letter";

const HOUR_MS = 3_600_000;

// By pipeline; kept while the console is open.
const histories = new Map();

export async function render(root, { query }, signal) {
  let pipelines = [];
  let details = null;
  const list = table({ columns: PIPELINE_COLUMNS, key: (pipeline) => pipeline.name, onOpen: choose, filter: (pipeline) => pipeline.name, label: "pipelines", empty: "No pipeline has run on this node's machine, as its user: `streamhouse pipeline run FILE` starts one." });
  const place = h("div", { class: "page" });

  function choose(pipeline) {
    keepQuery({ name: pipeline.name });
    details = pipelineDetails(pipeline, signal);
    replace(place, details.element);
  }

  replace(root, pageHead({ title: "Pipelines" }), list.element, place);
  // The node has measured all the time, the page only while somebody looked.
  begin(await get("pipelines/history", {}, signal));
  await every(REFRESH_MS, signal, async () => {
    ({ pipelines } = await get("pipelines", {}, signal));
    pipelines.forEach(remember);
    list.update(pipelines);
    const known = pipelines.find((pipeline) => pipeline.name === details?.name);
    if (known) details.update(known);
  });
  const wanted = pipelines.find((pipeline) => pipeline.name === query.get("name")) ?? pipelines[0];
  if (wanted) choose(wanted);
}

function begin({ at_ms: now, pipelines }) {
  const ahead = Date.now() - now; // the browser's clock, of the node's
  for (const { name, times_ms: times, rows_per_second: rows, lag } of pipelines) {
    const points = (values) => times.map((time, index) => [time + ahead, values[index]]);
    historyOf(name).begin({ "rows per second": points(rows), lag: points(lag) });
  }
}

function historyOf(name) {
  if (!histories.has(name)) histories.set(name, new History(HOUR_MS));
  return histories.get(name);
}

function remember(pipeline) {
  const history = historyOf(pipeline.name);
  history.add("rows per second", pipeline.state === "running" ? rowsPerSecond(pipeline) : null);
  history.add("lag", lagOf(pipeline));
}

function pipelineDetails(pipeline, signal) {
  const state = h("div", { class: "card" });
  const speed = lineChart({ title: "Rows per second", unit: rate });
  const lag = lineChart({ title: "Lag, in records", unit: brief });
  const queries = table({ columns: QUERY_COLUMNS, key: (each) => each.query, label: "queries" });
  const letters = deadLetters(pipeline, signal);
  const details = {
    name: pipeline.name,
    element: [
      h("section", {}, h("h2", {}, pipeline.name), state),
      h("div", { class: "columns" }, h("div", { class: "card" }, speed.element), h("div", { class: "card" }, lag.element)),
      h("section", {}, h("h2", {}, "Queries"), queries.element),
      letters.element,
    ],
    update(now) {
      replace(state, facts(factsOf(now)));
      speed.update(historyOf(now.name).series("rows per second"));
      lag.update(historyOf(now.name).series("lag"));
      queries.update(now.queries);
      letters.update(now);
    },
  };
  details.update(pipeline);
  return details;
}

function factsOf(pipeline) {
  const rows = [
    ["State", stateTag(pipeline)],
    ["File", h("code", {}, pipeline.file)],
    ["Spark", `${pipeline.master}, process ${pipeline.pid}`],
    ["Started", time(pipeline.started_at_ms)],
    ["Last heard of", `${time(pipeline.updated_at_ms)}, ${ago(pipeline.updated_at_ms)}`],
  ];
  if (pipeline.error) rows.push(["Error", h("pre", { class: "bad" }, pipeline.error)]);
  return rows;
}

function stateTag(pipeline) {
  const tag = h("span", { class: `tag ${STATE_KINDS[pipeline.state]}` }, pipeline.state);
  return pipeline.state === "silent" ? [claim(tag), h("span", { class: "bad" }, ` since ${clock(pipeline.updated_at_ms)} ${zone(pipeline.updated_at_ms)}`)] : claim(tag);
}
const ownQueries = ({ queries }) => queries.filter((each) => each.query !== DEAD_LETTER_QUERY);
const rowsPerSecond = (pipeline) => ownQueries(pipeline).reduce((sum, each) => sum + each.rows_per_second, 0);
/** null: nothing is known of what it reads, or not yet. */
const queryLag = ({ lag }) => (Object.keys(lag).length ? Object.values(lag).reduce((sum, each) => sum + each, 0) : null);
const lagOf = (pipeline) => {
  const known = ownQueries(pipeline).map(queryLag).filter((lag) => lag !== null);
  return known.length ? Math.max(...known) : null;
};

const PIPELINE_COLUMNS = [
  { name: "name", title: "Pipeline", value: (pipeline) => middle(pipeline.name), sort: (pipeline) => pipeline.name },
  { name: "state", title: "State", value: stateTag, sort: (pipeline) => pipeline.state, width: "11.5rem" },
  { name: "rate", title: "Rows", value: (pipeline) => (pipeline.state === "running" ? rate(rowsPerSecond(pipeline)) : "–"), sort: rowsPerSecond, align: "right", narrow: false, width: "8rem" },
  { name: "lag", title: "Lag", value: (pipeline) => count(lagOf(pipeline)), sort: lagOf, align: "right", width: "6rem" },
  { name: "letters", title: "Dead letters", value: (pipeline) => h("span", { class: pipeline.dead_letters ? "bad" : null }, count(pipeline.dead_letters)), sort: (pipeline) => pipeline.dead_letters, align: "right", narrow: false },
  { name: "updated", title: "Last heard of", value: (pipeline) => h("span", { title: time(pipeline.updated_at_ms) }, ago(pipeline.updated_at_ms)), sort: (pipeline) => pipeline.updated_at_ms, align: "right", narrow: false, width: "9.5rem" },
];

const QUERY_COLUMNS = [
  { name: "query", title: "Sink", value: (each) => middle(each.query), sort: (each) => each.query },
  { name: "guarantee", title: "Guarantee", value: (each) => each.guarantee, sort: true, narrow: false },
  { name: "batch", title: "Batch", value: (each) => count(each.batch_id), sort: (each) => each.batch_id, align: "right", narrow: false, width: "6rem" },
  { name: "in", title: "Rows in", value: (each) => count(each.input_rows), sort: (each) => each.input_rows, align: "right" },
  { name: "out", title: "Rows out", value: (each) => count(each.output_rows), sort: (each) => each.output_rows, align: "right" },
  { name: "rate", title: "Speed", value: (each) => rate(each.rows_per_second), sort: (each) => each.rows_per_second, align: "right", narrow: false },
  { name: "time", title: "Batch time", value: (each) => duration(each.batch_ms), sort: (each) => each.batch_ms, align: "right", narrow: false },
  { name: "lag", title: "Lag", value: (each) => h("span", { title: Object.entries(each.lag).map(([topic, lag]) => `${topic}: ${lag}`).join("\n") }, count(queryLag(each))), sort: queryLag, align: "right" },
  { name: "watermark", title: "Watermark", value: (each) => each.watermark ?? "–", sort: (each) => each.watermark ?? "", narrow: false },
  { name: "late", title: "Late rows", value: (each) => count(each.late_rows), sort: (each) => each.late_rows, align: "right", narrow: false },
];
