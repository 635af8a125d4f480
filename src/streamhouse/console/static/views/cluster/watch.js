// What changed in the cluster between two looks at it: an agent that fell silent, partitions that changed hands.
// Only differences are told, so whoever opens the page sees fail-overs from then on; the last ones outlive a visit.

import { STATE_KINDS, stateOf } from "./agent_state.js";

const KEPT_EVENTS = 200;

export class ClusterWatch {
  constructor() {
    this.events = [];
    this.told = 0;
    this.agents = null;
    this.leaders = null;
    this.transfers = null;
  }

  /** Returns the partitions ("topic/3") that changed hands since the last look, for the drawing to point at. */
  look({ agents, partitions, transfers, nowMs }) {
    const moved = this.leaders === null ? [] : this.#changesOfLeaders(partitions, nowMs);
    if (this.agents !== null) this.#changesOfAgents(agents, nowMs);
    if (this.transfers !== null) this.#changesOfTransfers(transfers, nowMs);
    this.agents = new Map(agents.map((agent) => [agent.agent_id, agent]));
    this.leaders = this.#remembered(partitions);
    this.transfers = new Map(transfers.map((transfer) => [transfer.transfer_id, transfer]));
    return moved;
  }

  #tell(nowMs, kind, text) {
    this.told += 1;
    this.events.unshift({ atMs: nowMs, kind, text });
    this.events.length = Math.min(this.events.length, KEPT_EVENTS);
  }

  #changesOfAgents(agents, nowMs) {
    const seen = new Set();
    for (const agent of agents) {
      seen.add(agent.agent_id);
      const before = this.agents.get(agent.agent_id);
      if (before === undefined) this.#tell(nowMs, "good", `agent ${agent.agent_id} joined`);
      else if (before.started_at_ms !== agent.started_at_ms) {
        this.#tell(nowMs, "warn", `agent ${agent.agent_id} was started again`);
      } else if (stateOf(before) !== stateOf(agent)) {
        this.#tell(nowMs, STATE_KINDS[stateOf(agent)], `agent ${agent.agent_id}: ${stateOf(before)} → ${stateOf(agent)}`);
      }
    }
    for (const name of this.agents.keys()) {
      if (!seen.has(name)) this.#tell(nowMs, "warn", `agent ${name} left`);
    }
  }

  /** An agent that fails loses all its partitions at once: they are told as one line for each pair of agents. */
  #changesOfLeaders(partitions, nowMs) {
    const moved = [];
    const lost = new Map();
    const taken = new Map();
    for (const each of partitions) {
      const { leader } = each;
      const name = partitionName(each);
      const before = this.leaders.get(name);
      if (before === undefined || before.leader === leader) continue;
      moved.push(name);
      if (leader === null) collect(lost, before.leader, name);
      else if (before.last !== null) collect(taken, `${before.last}\n${leader}`, name);
    }
    for (const [agent, names] of lost) {
      this.#tell(nowMs, "bad", `${listed(names)} without a leader: the lease of ${agent} ended`);
    }
    for (const [pair, names] of taken) {
      const [from, to] = pair.split("\n");
      if (from === to) this.#tell(nowMs, "good", `${listed(names)}: led by ${to} again`);
      else this.#tell(nowMs, "warn", `${listed(names)}: ${from} → ${to}`);
    }
    return moved;
  }

  #remembered(partitions) {
    const lastOf = (name) => this.leaders?.get(name)?.last ?? null;
    return new Map(
      partitions.map((each) => {
        const name = partitionName(each);
        return [name, { leader: each.leader, last: each.leader ?? lastOf(name) }];
      }),
    );
  }

  #changesOfTransfers(transfers, nowMs) {
    const refused = new Map();
    for (const transfer of transfers) {
      const before = this.transfers.get(transfer.transfer_id);
      if (before !== undefined && before.state === transfer.state) continue;
      if (transfer.state !== "rejected" && transfer.state !== "failed") continue;
      const why = transfer.reason === "" ? "" : `: ${transfer.reason}`;
      collect(refused, `to ${transfer.to_agent_id} ${transfer.state}${why}`, partitionName(transfer));
    }
    for (const [how, names] of refused) this.#tell(nowMs, "bad", `hand-over of ${listed(names)} ${how}`);
  }
}

const SHOWN_NAMES = 3;

export function partitionName({ topic, partition }) {
  return `${topic}/${partition}`;
}

function collect(lists, key, value) {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

function listed(names) {
  const shown = names.slice(0, SHOWN_NAMES).join(", ");
  return names.length <= SHOWN_NAMES ? shown : `${shown} and ${names.length - SHOWN_NAMES} more ${names.length - SHOWN_NAMES === 1 ? "partition" : "partitions"}`;
}
