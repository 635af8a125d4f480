// What the tables of the cluster's page say of agents, leases and hand-overs.

import { h } from "../../lib/dom.js";
import { ago, count, duration, time } from "../../lib/format.js";
import { middle } from "../../lib/page.js";
import { to } from "../../lib/route.js";
import { agentClass } from "./agent_colours.js";
import { stateOf, stateTag } from "./agent_state.js";
import { partitionName } from "./watch.js";

const TRANSFER_KINDS = { pending: "warn", accepted: "warn", completed: "good", rejected: "bad", failed: "bad" };

const tag = (text, kind) => h("span", { class: `tag ${kind}` }, text);

/** With the colour that the agent has on the ring. */
export function agentName(agentId) {
  if (agentId === null) return tag("nobody", "bad");
  return [h("i", { class: `swatch ${agentClass(agentId)}` }), middle(agentId)];
}

export const AGENT_COLUMNS = [
  { name: "agent", title: "Agent", value: (agent) => agentName(agent.agent_id), sort: (agent) => agent.agent_id },
  { name: "state", title: "State", value: stateTag, sort: stateOf, width: "clamp(10.4rem, 15vw, 11.5rem)" },
  { name: "zone", title: "Zone", value: (agent) => (agent.zone ? middle(agent.zone) : "–"), sort: (agent) => agent.zone, narrow: false },
  { name: "led", title: "Leads", value: (agent) => count(agent.partitions_led), sort: (agent) => agent.partitions_led, align: "right", width: "clamp(4.2rem, 8vw, 5.5rem)" },
  { name: "owns", title: "Should lead", value: (agent) => count(agent.owns), sort: (agent) => agent.owns, align: "right", narrow: false, width: "7.2rem" },
  { name: "kafka", title: "Kafka", value: (agent) => middle(agent.kafka_address), sort: (agent) => agent.kafka_address, narrow: false },
  { name: "heartbeat", title: "Heartbeat", value: (agent) => `${duration(agent.silent_ms)} ago`, sort: (agent) => agent.silent_ms, align: "right", narrow: false, width: "8.5rem" },
  { name: "started", title: "Started", value: (agent) => h("span", { title: time(agent.started_at_ms) }, ago(agent.started_at_ms)), sort: (agent) => agent.started_at_ms, align: "right", narrow: false, width: "9.5rem" },
];

export const LEASE_COLUMNS = [
  { name: "partition", title: "Partition", value: (each) => h("a", { href: to("topics", each.topic) }, middle(partitionName(each))), sort: partitionName },
  { name: "leader", title: "Leader", value: (each) => agentName(each.leader), sort: (each) => each.leader ?? "" },
  { name: "epoch", title: "Epoch", value: (each) => count(each.epoch), sort: (each) => each.epoch, align: "right", width: "5.5rem", narrow: false },
  { name: "left", title: "Lease left", value: timeLeft, sort: (each) => each.lease_left_ms, align: "right", width: "clamp(6.4rem, 14vw, 11rem)" },
  { name: "note", title: "Note", value: (each) => h("span", { title: noteOf(each) }, noteOf(each)), sort: noteOf, narrow: false, width: "34%" },
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
  { name: "partition", title: "Partition", value: (each) => middle(partitionName(each)), sort: partitionName },
  { name: "from", title: "From", value: (each) => agentName(each.from_agent_id), sort: (each) => each.from_agent_id, narrow: false },
  { name: "to", title: "To", value: (each) => agentName(each.to_agent_id), sort: (each) => each.to_agent_id },
  { name: "state", title: "State", value: (each) => tag(each.state, TRANSFER_KINDS[each.state]), sort: (each) => each.state, width: "7rem" },
  { name: "reason", title: "Reason", value: (each) => h("span", { title: each.reason }, each.reason), sort: (each) => each.reason, narrow: false, width: "30%" },
];
