// How all of it is, live: what flows, how fast it is stored, who lags, who is there, what needs a person.

import { get } from "../lib/api.js";
import { History, lineChart } from "../lib/chart.js";
import { h, replace } from "../lib/dom.js";
import { brief, byteRate, bytes, count, counted, duration, percent, rate } from "../lib/format.js";
import { agingWithStore, every } from "../lib/live.js";
import { claim, figure, pageHead } from "../lib/page.js";
import { alertCards } from "./overview/alerts.js";

const PERIOD_MS = 2_000;

const HOUR_MS = 3_600_000;
/** What the node calls what the charts show. */
const SERIES = {
  in: "records_in",
  out: "records_out",
  "bytes in": "bytes_in",
  "bytes out": "bytes_out",
  p50: "produce_p50_ms",
  p99: "produce_p99_ms",
  lag: "lag",
};

const history = new History(HOUR_MS);
let before = null;

export async function render(root, _, signal) {
  const figures = makeFigures();
  const charts = makeCharts();
  const alerts = alertCards();
  const old = agingWithStore(signal);
  const where = h("p", { class: "muted break" });
  replace(
    root,
    pageHead({ title: "Overview" }),
    alerts.element,
    h(
      "div",
      { class: "cards" },
      Object.values(figures).map(({ element }) => element),
    ),
    h(
      "div",
      { class: "columns" },
      Object.values(charts).map(({ chart }) => h("div", { class: "card" }, chart.element)),
    ),
    where,
  );
  // The node has measured all the time, the page only while somebody looked.
  let past = await get("metrics/history", {}, signal);
  await every(PERIOD_MS, signal, async () => {
    const now = await get("overview", {}, signal);
    if (past) beginWith(past, Date.now() - now.at_ms);
    const rates = measure(now, past !== null);
    past = null;
    showFigures(figures, now, rates);
    for (const { chart, names } of Object.values(charts)) chart.update(history.series(...names));
    alerts.update(now.alerts);
    where.textContent = whereFrom(now);
    // By the node's clock, which need not be the browser's.
    old(now.metadata_silent_since_ms, Date.now() - (now.at_ms - now.cluster_at_ms));
  });
}

/** `ahead`: how much the browser's clock is ahead of the node's. */
function beginWith({ times_ms: times, series }, ahead) {
  const pointsOf = (values) => times.map((at, index) => [at + ahead, values[index]]);
  history.begin(Object.fromEntries(Object.entries(SERIES).map(([name, theirs]) => [name, pointsOf(series[theirs])])));
}

function whereFrom({ nodes, node, unanswered, cluster }) {
  const own = node.node_id < 0 ? "a server without an agent" : `agent ${node.agent_id}`;
  const unknown = unanswered.length ? `; what ${some(names(unanswered))} ${unanswered.length === 1 ? "does" : "do"} is not known` : "";
  return `Figures of ${counted(nodes.length, "node")} that answered${unknown}. Seen from ${own} of cluster ${cluster.cluster_id}; the charts are the last hour as it saw it, from its start on.`;
}

const NAMED = 3;

const names = (unanswered) => unanswered.map(({ agent_id: name }) => name);

function some(agents) {
  const more = agents.length - NAMED;
  const named = agents.slice(0, NAMED).join(", ");
  return more > 0 ? `${named} and ${more} more` : named;
}

function makeFigures() {
  return {
    in: figure("Records in"),
    out: figure("Records out"),
    latency: figure("Produce latency, p99"),
    stored: figure("Stored", { href: "#/storage" }),
    lag: figure("Lag of all groups", { href: "#/groups" }),
    agents: figure("Agents", { href: "#/cluster" }),
    topics: figure("Topics", { href: "#/topics" }),
    buffered: figure("Buffered"),
  };
}

function makeCharts() {
  const chart = (title, unit, ...names) => ({ chart: lineChart({ title, unit, isBinary: unit === byteRate }), names });
  return {
    records: chart("Records per second", rate, "in", "out"),
    bytes: chart("Throughput", byteRate, "bytes in", "bytes out"),
    latency: chart("Produce latency", duration, "p50", "p99"),
    lag: chart("Lag of all groups", brief, "lag"),
  };
}

/** Rates since the last time, of all nodes together; null where they are not known, as after a restart. The first look
 * alone says no rate, which is no gap in what the node has measured. */
function measure(now, isFirst) {
  const seconds = before && before.node.agent_id === now.node.agent_id ? (now.at_ms - before.at_ms) / 1000 : 0;
  const known = new Map(before?.nodes.map((node) => [node.agent_id, node]));
  const since = (field) => {
    const grown = now.nodes.map((node) => node[field] - known.get(node.agent_id)?.[field]).filter((more) => more >= 0);
    return seconds > 0 && seconds < 30 && grown.length ? grown.reduce((sum, more) => sum + more) / seconds : null;
  };
  const rates = {
    in: since("records_in"),
    out: since("records_out"),
    "bytes in": since("bytes_in"),
    "bytes out": since("bytes_out"),
    p50: slowest(now.nodes, "produce_p50_ms"),
    p99: slowest(now.nodes, "produce_p99_ms"),
    lag: now.cluster.without.length ? null : now.cluster.total_lag,
  };
  for (const [name, value] of Object.entries(rates)) if (value !== null || !isFirst) history.add(name, value);
  before = now;
  return rates;
}

const total = (nodes, field) => nodes.reduce((sum, node) => sum + node[field], 0);

/** Of the node where producers wait the longest; null if nobody produces. */
function slowest(nodes, field) {
  const known = nodes.map((node) => node[field]).filter((value) => value !== null);
  return known.length ? Math.max(...known) : null;
}

const withoutThese = (agents) => (agents.length ? ` · without ${some(agents)}` : "");

/** What a node counts ends with it: totals are of what is stored, and of nodes only what they do now. */
function showFigures(figures, { nodes, unanswered, cluster }, rates) {
  const without = withoutThese(names(unanswered));
  const unheard = withoutThese(cluster.without);
  figures.in.set(rate(rates.in), `${byteRate(rates["bytes in"])}${without} · ${count(cluster.records_written)} in all${unheard}`);
  figures.out.set(rate(rates.out), `${byteRate(rates["bytes out"])}${without}`);
  figures.latency.set(
    duration(rates.p99),
    rates.p50 !== null ? `half of them within ${duration(rates.p50)}` : rates.p99 === null ? "nothing was produced lately" : "nothing has been answered yet",
  );
  figures.stored.set(bytes(cluster.stored_bytes), counted(cluster.stored_segments, "segment"));
  figures.lag.set(count(cluster.total_lag), cluster.groups === null ? "" : `${counted(cluster.groups, "group")}${unheard}`);
  figures.agents.set(`${cluster.answering_agents} of ${cluster.agents}`, claim(`cluster ${cluster.status}`));
  figures.topics.set(
    count(cluster.topics),
    `${counted(cluster.partitions, "partition")} · ${counted(cluster.records_kept, "record")}${unheard}`,
  );
  const [buffered, room] = [total(nodes, "buffered_bytes"), total(nodes, "buffer_limit_bytes")];
  figures.buffered.set(bytes(buffered), `${percent(buffered / room)} of ${bytes(room)}${without}`);
}
