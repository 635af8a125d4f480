// The agent or the partition that somebody came for: all that is known of it, and what can be done.

import { h, replace } from "../../lib/dom.js";
import { ago, count, duration, time } from "../../lib/format.js";
import { button, command, facts } from "../../lib/page.js";
import { to } from "../../lib/route.js";
import { drain, move, unpin } from "./acts.js";
import { stateOf, stateTag } from "./agent_state.js";
import { agentName } from "./columns.js";
import { partitionName } from "./watch.js";

/** {element, show(what), update({agents, partitions})}; what: {agent} or {partition: "topic/3"}. */
export function chosenCard() {
  const title = h("h2", {});
  const about = h("div", {});
  const acts = h("div", { class: "bar chosen-acts" });
  const commands = h("div", {});
  const element = h("section", { class: "card", "aria-label": "Chosen", hidden: true }, title, about, acts, commands);
  let what = {};
  let known = { agents: [], partitions: [] };
  let offered = "";

  function update(now) {
    known = now;
    const agent = known.agents.find(({ agent_id: name }) => name === what.agent);
    const partition = known.partitions.find((each) => partitionName(each) === what.partition);
    element.hidden = !what.agent && !what.partition;
    if (agent) showAgent(agent);
    else if (partition) showPartition(partition);
    else say(what.agent ?? what.partition ?? "", h("p", { class: "muted" }, "There is none of this name."), [], []);
  }

  /** What can be pressed stays where it is while what is known of it changes. */
  function say(name, body, buttons, lines) {
    title.textContent = name;
    replace(about, body);
    const now = JSON.stringify([name, buttons.map(([text]) => text), lines]);
    if (now === offered) return;
    offered = now;
    replace(acts, buttons.map(([text, act]) => button(text, act)));
    replace(commands, lines.map(([text, line]) => [h("p", { class: "muted" }, text), command("command", line)]));
  }

  function showAgent(agent) {
    const state = stateOf(agent);
    const buttons = state === "live" || state === "no answer" ? [["Drain", () => drain(current(), othersOf(current()))]] : [];
    const lines = state === "silent" ? [[FORGET, `streamhouse agent forget ${agent.agent_id} --metadata postgresql://…`]] : [];
    say(`Agent ${agent.agent_id}`, facts(agentFacts(agent)), buttons, lines);
  }

  const current = () => known.agents.find(({ agent_id: name }) => name === what.agent);

  /** Who else may lead what it leads. */
  const othersOf = ({ agent_id: id, agent_group: group }) =>
    known.agents.filter((agent) => agent.agent_id !== id && agent.agent_group === group && agent.state === "live");

  function showPartition(partition) {
    const now = () => known.partitions.find((each) => partitionName(each) === what.partition);
    const able = () => known.agents.filter((agent) => stateOf(agent) === "live").map((agent) => agent.agent_id);
    const buttons = [["Move", () => move(now(), able())]];
    if (partition.pinned_to !== null) buttons.push(["Let the ring decide", () => unpin(now())]);
    const lines = partition.waits_for === null ? [] : [[ELECT, `streamhouse partition elect ${partition.topic} ${partition.partition} --unclean --metadata postgresql://…`]];
    say(`Partition ${partitionName(partition)}`, facts(partitionFacts(partition)), buttons, lines);
  }

  return {
    element,
    show(chosen) {
      what = chosen;
      update(known);
      element.scrollIntoView({ block: "nearest" });
    },
    update,
  };
}

const FORGET = "If it is gone for good, whoever has the database takes it off the list. Refused while its disk may hold acknowledged records:";
const ELECT = "If the disk of that agent is lost, whoever has the database gives up the acknowledged records that were only there, and lets others lead:";

function agentFacts(agent) {
  const rows = [
    ["State", stateTag(agent)],
    ["Leads", `${count(agent.partitions_led)} partitions, coordinates ${count(agent.shards_coordinated)} shards of groups`],
    ["Last heartbeat", `${duration(agent.silent_ms)} ago`],
    ["Started", `${time(agent.started_at_ms)}, ${ago(agent.started_at_ms)}`],
    ["Kafka clients reach it at", h("code", {}, agent.kafka_address)],
    ["Other agents reach it at", agent.address ? h("code", {}, agent.address) : "nowhere"],
    ["Zone", agent.zone || "–"],
    ["Agent group", agent.agent_group],
    ["Node id", agent.node_id],
  ];
  if (agent.answers === false) rows.splice(1, 0, ["Does not answer", `since ${time(agent.unanswered_since_ms)}: ${agent.unanswered_why}`]);
  return rows;
}

function partitionFacts(partition) {
  const { leader, owner, waits_for: waits, pinned_to: pinned } = partition;
  const rows = [
    ["Topic", h("a", { href: to("topics", partition.topic) }, partition.topic)],
    ["Leader", agentName(leader)],
    ["Should be led by", owner ?? "nobody that is alive"],
    ["Epoch", count(partition.epoch)],
    ["Segments", h("a", { href: to("storage", partition.topic, String(partition.partition)) }, "in the object store")],
  ];
  if (pinned !== null) rows.push(["Pinned to", pinned]);
  if (waits !== null) rows.push(["Waits for", `${waits}, whose disk may hold acknowledged records`]);
  return rows;
}
