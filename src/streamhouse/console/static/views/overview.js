// How all of it is, live: what flows, how fast it is stored, who lags, who is there, what needs a person.

import { get } from "../lib/api.js";
import { History, lineChart } from "../lib/chart.js";
import { h, replace } from "../lib/dom.js";
import { brief, byteRate, bytes, count, counted, duration, percent, rate } from "../lib/format.js";
import { every } from "../lib/live.js";
import { figure, pageHead } from "../lib/page.js";

const PERIOD_MS = 2_000;

// Kept while the console is open, so that the lines go on where they were when somebody comes back.
const history = new History();
let before = null;

export async function render(root, _, signal) {
  const figures = makeFigures();
  const charts = makeCharts();
  const alerts = h("section", { "aria-label": "Alerts", class: "page" });
  const where = h("p", { class: "muted break" });
  replace(
    root,
    pageHead({ title: "Overview" }),
    alerts,
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
  await every(PERIOD_MS, signal, async () => {
    const now = await get("overview", {}, signal);
    const rates = measure(now);
    showFigures(figures, now, rates);
    for (const { chart, names } of Object.values(charts)) chart.update(history.series(...names));
    replace(alerts, alertCards(now.alerts));
    where.textContent = `Figures of ${counted(now.nodes.length, "node")} that answered, seen from ${now.node.node_id < 0 ? "a server without an agent" : `agent ${now.node.agent_id}`} of cluster ${now.cluster.cluster_id}.`;
  });
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
  const chart = (title, unit, ...names) => ({ chart: lineChart({ title, unit }), names });
  return {
    records: chart("Records per second", rate, "in", "out"),
    bytes: chart("Throughput", byteRate, "bytes in", "bytes out"),
    latency: chart("Produce latency", duration, "p50", "p99"),
    lag: chart("Lag of all groups", brief, "lag"),
  };
}

/** Rates since the last time, of all nodes together; null where they are not known, as after a restart. */
function measure(now) {
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
    lag: now.cluster.total_lag,
  };
  for (const [name, value] of Object.entries(rates)) history.add(name, value);
  before = now;
  return rates;
}

const total = (nodes, field) => nodes.reduce((sum, node) => sum + node[field], 0);

/** Of the node where producers wait the longest; null if nobody produces. */
function slowest(nodes, field) {
  const known = nodes.map((node) => node[field]).filter((value) => value !== null);
  return known.length ? Math.max(...known) : null;
}

function showFigures(figures, { nodes, cluster }, rates) {
  figures.in.set(rate(rates.in), `${byteRate(rates["bytes in"])} · ${count(total(nodes, "records_in"))} in all`);
  figures.out.set(rate(rates.out), `${byteRate(rates["bytes out"])} · ${count(total(nodes, "records_out"))} in all`);
  figures.latency.set(
    duration(rates.p99),
    rates.p50 === null ? "nothing was produced lately" : `half of them within ${duration(rates.p50)}`,
  );
  figures.stored.set(bytes(cluster.stored_bytes), counted(cluster.stored_segments, "segment"));
  figures.lag.set(count(cluster.total_lag), cluster.groups === null ? "" : counted(cluster.groups, "group"));
  figures.agents.set(`${cluster.live_agents} of ${cluster.agents}`, `cluster ${cluster.status}`);
  figures.topics.set(
    count(cluster.topics),
    `${counted(cluster.partitions, "partition")} · ${counted(cluster.records_kept, "record")}`,
  );
  const [buffered, room] = [total(nodes, "buffered_bytes"), total(nodes, "buffer_limit_bytes")];
  figures.buffered.set(bytes(buffered), `${percent(buffered / room)} of ${bytes(room)}`);
}

function alertCards(alerts) {
  if (!alerts.length)
    return h("p", { class: "muted" }, h("span", { class: "good", "aria-hidden": "true" }, "● "), "No alerts");
  return alerts.map(({ severity, code, text, what_to_do }) =>
    h(
      "div",
      { class: `card alert ${severity}` },
      h("strong", {}, `${severity}: ${text}`),
      h("span", {}, what_to_do),
      h("span", { class: "muted mono" }, code),
    ),
  );
}
