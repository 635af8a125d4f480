// What the tables of the cluster's page say of agents, leases and hand-overs.

import { h } from "../../lib/dom.js";
import { ago, count, duration, percent, time } from "../../lib/format.js";
import { to } from "../../lib/route.js";
import { agentClass } from "./agent_colours.js";
import { partitionName } from "./watch.js";

const AGENT_KINDS = { live: "good", draining: "warn", silent: "bad" };
const TRANSFER_KINDS = { pending: "warn", accepted: "warn", completed: "good", rejected: "bad", failed: "bad" };

const tag = (text, kind) => h("span", { class: `tag ${kind}` }, text);

/** With the colour that the agent has on the ring. */
export function agentName(agentId) {
  if (agentId === null) return tag("nobody", "bad");
  return [h("i", { class: `swatch ${agentClass(agentId)}` }), agentId];
}

export const AGENT_COLUMNS = [
  { name: "agent", title: "Agent", value: (agent) => agentName(agent.agent_id), sort: (agent) => agent.agent_id },
  { name: "state", title: "State", value: (agent) => tag(agent.state, AGENT_KINDS[agent.state]), sort: (agent) => agent.state, width: "6.5rem" },
  { name: "zone", title: "Zone", value: (agent) => agent.zone || "–", sort: (agent) => agent.zone, narrow: false },
  { name: "led", title: "Leads", value: (agent) => count(agent.partitions_led), sort: (agent) => agent.partitions_led, align: "right", width: "5.5rem" },
  { name: "share", title: "Of the ring", value: (agent) => percent(agent.share), sort: (agent) => agent.share, align: "right", narrow: false },
  { name: "kafka", title: "Kafka", value: (agent) => agent.kafka_address, sort: (agent) => agent.kafka_address, narrow: false },
  { name: "heartbeat", title: "Heartbeat", value: (agent) => `${duration(agent.silent_ms)} ago`, sort: (agent) => agent.silent_ms, align: "right", narrow: false },
  { name: "started", title: "Started", value: (agent) => h("span", { title: time(agent.started_at_ms) }, ago(agent.started_at_ms)), sort: (agent) => agent.started_at_ms, align: "right", narrow: false },
];

export const LEASE_COLUMNS = [
  { name: "partition", title: "Partition", value: (each) => h("a", { href: to("topics", each.topic) }, partitionName(each)), sort: partitionName },
  { name: "leader", title: "Leader", value: (each) => agentName(each.leader), sort: (each) => each.leader ?? "" },
  { name: "epoch", title: "Epoch", value: (each) => count(each.epoch), sort: (each) => each.epoch, align: "right", width: "5.5rem", narrow: false },
  { name: "left", title: "Lease left", value: timeLeft, sort: (each) => each.lease_left_ms, align: "right" },
  { name: "note", title: "Note", value: noteOf, sort: noteOf, narrow: false },
];

function timeLeft({ leader, lease_left_ms: left, lease_left_share: share }) {
  if (leader === null) return "–";
  return [h("span", { class: "lease-bar wide-only", "aria-hidden": "true" }, h("i", { style: { width: `${share * 100}%` } })), duration(Math.round(left / 100) * 100)];
}

function noteOf({ owner, leader, pinned_to: pinned, waits_for: waits }) {
  if (waits !== null) return `waits for ${waits}, whose disk may hold acknowledged records`;
  if (pinned !== null) return `pinned to ${pinned}`;
  if (owner !== leader && owner !== null) return `on its way to ${owner}`;
  return "";
}

export const TRANSFER_COLUMNS = [
  { name: "at", title: "Begun", value: (each) => h("span", { title: time(each.created_at_ms) }, ago(each.created_at_ms)), sort: (each) => each.created_at_ms, width: "9rem", narrow: false },
  { name: "partition", title: "Partition", value: partitionName, sort: true },
  { name: "from", title: "From", value: (each) => agentName(each.from_agent_id), sort: (each) => each.from_agent_id, narrow: false },
  { name: "to", title: "To", value: (each) => agentName(each.to_agent_id), sort: (each) => each.to_agent_id },
  { name: "state", title: "State", value: (each) => tag(each.state, TRANSFER_KINDS[each.state]), sort: (each) => each.state, width: "7rem" },
  { name: "reason", title: "Reason", value: (each) => each.reason, sort: true, narrow: false },
];
