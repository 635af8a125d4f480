// The cluster: the hash ring with its agents and partitions, leases, hand-overs, and fail-overs as they happen.

import { get } from "../lib/api.js";
import { h, replace } from "../lib/dom.js";
import { clock, count, duration, zone } from "../lib/format.js";
import { every } from "../lib/live.js";
import { claim, pageHead } from "../lib/page.js";
import { keepQuery } from "../lib/route.js";
import { table } from "../lib/table.js";
import { chosenCard } from "./cluster/chosen.js";
import { AGENT_COLUMNS, LEASE_COLUMNS, TRANSFER_COLUMNS, agentName } from "./cluster/columns.js";
import { RingDrawing } from "./cluster/ring_drawing.js";
import { ClusterWatch, partitionName } from "./cluster/watch.js";

const REFRESH_MS = 2_000;
/** With more partitions than this every third look is enough: each of them reads all placements. */
const MANY_PARTITIONS = 3_000;
const MOST_PARTITIONS = 20_000;
const RING_PAGE = 2_000;
const SHOWN_TRANSFERS = 200;
/** Beside the ring; the table has all of them. */
const NAMED_AGENTS = 12;
const STATUS_KINDS = { ok: "good", degraded: "warn", down: "bad" };

const watch = new ClusterWatch();

export async function render(root, { query }, signal) {
  const status = h("span", {});
  const pointed = h("p", { class: "ring-pointed muted" }, POINT_HINT);
  const legend = h("p", { class: "legend", role: "group", "aria-label": "Agents on the ring" });
  const ring = new RingDrawing((partition) => (pointed.textContent = partition ? describe(partition) : POINT_HINT));
  const events = h("ol", { class: "events", "aria-live": "polite", "aria-label": "Events" });
  const agents = table({ columns: AGENT_COLUMNS, key: (agent) => agent.agent_id, label: "agents", onOpen: ({ agent_id: agent }) => choose({ agent }), empty: "No agent has registered." });
  const leases = table({ columns: LEASE_COLUMNS, key: partitionName, filter: partitionText, onOpen: (each) => choose({ partition: partitionName(each) }), label: "leases", empty: "There are no partitions yet." });
  const transfers = table({ columns: TRANSFER_COLUMNS, key: (transfer) => transfer.transfer_id, label: "transfers", empty: "No partition was handed over yet." });

  const chosen = chosenCard();

  function choose(what) {
    keepQuery(what);
    chosen.show(what);
  }

  replace(events, watch.events.length ? watch.events.map(eventShown) : h("li", { class: "muted" }, NO_EVENTS));
  replace(
    root,
    pageHead({ title: "Cluster", actions: status }),
    h("div", { class: "columns" },
      h("section", { class: "card" }, h("h2", {}, "Hash ring"), ring.element, legend, pointed),
      h("section", { class: "card" }, h("h2", {}, "As it happens"), events),
    ),
    chosen.element,
    h("section", {}, h("h2", {}, "Agents"), agents.element),
    h("section", {}, h("h2", {}, "Leases"), leases.element),
    h("section", {}, h("h2", {}, "Hand-overs"), transfers.element),
  );

  let turn = 0;
  let last = null;
  await every(REFRESH_MS, signal, async () => {
    if (last && last.ring.partitions.length > MANY_PARTITIONS && ++turn % 3) return;
    last = await look(signal);
    const told = watch.told;
    const moved = watch.look({ agents: last.agents, partitions: last.ring.partitions, transfers: last.transfers, nowMs: Date.now() });
    replace(status, claim(h("span", { class: `tag ${STATUS_KINDS[last.health.status]}` }, last.health.status)));
    ring.update(last.ring, moved);
    replace(legend, last.ring.agents.slice(0, NAMED_AGENTS).map((agent) => h("span", {}, agentName(agent.agent_id))));
    agents.update(joined(last.agents, last.ring.agents));
    leases.update(leasesOf(last.ring.partitions));
    transfers.update(last.transfers);
    chosen.update({ agents: last.agents, partitions: last.ring.partitions });
    if (watch.told > told) showNews(events, watch.told - told);
  });
  if (query.has("agent")) choose({ agent: query.get("agent") });
  else if (query.has("partition")) choose({ partition: query.get("partition") });
}

async function look(signal) {
  const [ring, { agents }, { transfers }, health] = await Promise.all([
    wholeRing(signal),
    get("agents", {}, signal),
    get("transfers", { limit: SHOWN_TRANSFERS }, signal),
    get("cluster/health", {}, signal),
  ]);
  const answers = new Map(agents.map((agent) => [agent.agent_id, agent.answers]));
  for (const agent of ring.agents) agent.answers = answers.get(agent.agent_id);
  return { ring, agents, transfers, health };
}

async function wholeRing(signal) {
  const ring = await get("ring", { limit: RING_PAGE }, signal);
  for (let after = ring.next; after !== null && ring.partitions.length < MOST_PARTITIONS; ) {
    const page = await get("ring", { limit: RING_PAGE, after }, signal);
    ring.partitions.push(...page.partitions);
    after = page.next;
  }
  return ring;
}

function joined(agents, ringAgents) {
  const owned = new Map(ringAgents.map((agent) => [agent.agent_id, agent.owns]));
  return agents.map((agent) => ({ ...agent, owns: owned.get(agent.agent_id) ?? 0 }));
}

/** How long a lease is, nobody says; the longest one seen is about that. */
let longestLeaseMs = 1;

function leasesOf(partitions) {
  for (const each of partitions) longestLeaseMs = Math.max(longestLeaseMs, each.lease_left_ms);
  return partitions.map((each) => ({ ...each, lease_left_share: each.lease_left_ms / longestLeaseMs }));
}

const NO_EVENTS = "Nothing has changed since this page was opened. Agents that come, go or fall silent, and partitions that change hands, appear here.";

/** Those before stay as they are: what is put in again is read out again. */
function showNews(list, fresh) {
  list.prepend(...watch.events.slice(0, fresh).map(eventShown));
  while (list.children.length > watch.events.length) list.lastChild.remove();
}

function eventShown({ atMs, kind, text }) {
  return h("li", {}, h("time", { class: "muted mono" }, `${clock(atMs)} ${zone(atMs)}`), " ", h("span", { class: kind }, text));
}

const POINT_HINT = "Outside, what the ring names each agent for, as long as none has more than its part; inside, a tick for each partition in the colour of its leader.";

function describe(partition) {
  const leader = partition.leader === null ? "no leader" : `led by ${partition.leader} for another ${duration(partition.lease_left_ms)}`;
  const owner = partition.owner === null || partition.owner === partition.leader ? "" : `, on its way to ${partition.owner}`;
  return `${partitionName(partition)}: ${leader}, epoch ${count(partition.epoch)}${owner}`;
}

const partitionText = (each) => `${partitionName(each)} ${each.leader ?? "nobody"}`;
