// One consumer group: its members and what they read, how far behind they are and were, and where to move it.

import { at, del, get } from "../lib/api.js";
import { lineChart } from "../lib/chart.js";
import { confirm, notify } from "../lib/dialog.js";
import { h, replace } from "../lib/dom.js";
import { brief, count, counted } from "../lib/format.js";
import { agingWithStore, every } from "../lib/live.js";
import { button, claim, figure, middle, pageHead } from "../lib/page.js";
import { go, to } from "../lib/route.js";
import { table } from "../lib/table.js";
import { historyOf } from "./group/lag_history.js";
import { resetForm } from "./group/reset.js";
import { groupState } from "./group/state.js";

const REFRESH_MS = 2_000;
/** So many have colours of their own. */
const DRAWN_PARTITIONS = 6;
const LINKED_TOPICS = 5;

export async function render(root, { group: id }, signal) {
  const parts = makeParts(id);
  const history = historyOf(id);
  const old = agingWithStore(signal);
  const refresh = async () => {
    const group = await get(at`groups/${id}`, {}, signal);
    old(group.metadata_silent_since_ms);
    history.add(group, DRAWN_PARTITIONS);
    parts.reset ??= resetForm(id, topicsOf(group), refresh);
    showGroup(parts, group, history);
  };
  replace(root, pageHead({ title: id, crumbs: [["Groups", to("groups")]], actions: [parts.state, button("Delete", () => askToDelete(id))] }));
  await every(REFRESH_MS, signal, refresh);
  root.append(
    h("div", { class: "cards" }, Object.values(parts.figures).map(({ element }) => element)),
    h("div", { class: "columns" }, h("div", { class: "card" }, parts.total.element), h("div", { class: "card" }, parts.worst.element)),
    parts.timed.element,
    h("section", {}, h("h2", {}, "Partitions"), parts.partitions.element),
    h("section", {}, h("h2", {}, "Members"), parts.members.element),
    h("section", { class: "card" }, h("h2", {}, "Reset offsets"), parts.reset.element),
  );
}

function makeParts(id) {
  return {
    reset: null,
    state: h("span", {}),
    figures: { lag: figure("Lag"), members: figure("Members"), partitions: figure("Partitions"), protocol: figure("Protocol") },
    timed: timedLag(id),
    total: lineChart({ title: "Lag over time, in records", unit: brief }),
    worst: lineChart({ title: "Partitions that are furthest behind", unit: brief }),
    partitions: table({ columns: PARTITION_COLUMNS, key: partitionKey, label: "partitions", empty: "It has committed nothing, and reads nothing." }),
    members: table({ columns: MEMBER_COLUMNS, key: (member) => member.member_id, label: "members", empty: "Nobody reads as this group now." }),
  };
}

function showGroup({ state, figures, total, worst, timed, partitions, members, reset }, group, history) {
  const topics = topicsOf(group);
  replace(state, groupState(group.state));
  figures.lag.set(count(group.lag), whatWaits(group.partitions));
  figures.members.set(count(group.members.length), group.assignor && `assigned by ${group.assignor}`);
  figures.partitions.set(count(group.partitions.length), `of ${counted(topics.length, "topic")}`);
  figures.protocol.set(group.type, group.type === "consumer" ? "KIP-848" : "");
  total.update(history.ofAll());
  worst.update(history.ofPartitions());
  timed.update(topics);
  partitions.update(group.partitions);
  members.update(group.members);
  reset.update(group);
}

function whatWaits(partitions) {
  const unknown = partitions.filter(isUnknown);
  if (unknown.length) {
    const why = unknown.some((each) => each.end_offset === null) ? "who may have more of them was never heard" : "nothing committed";
    return `not known at ${counted(unknown.length, "partition")}: ${why}`;
  }
  const last = partitions.reduce((most, each) => ((each.lag ?? -1) > (most?.lag ?? -1) ? each : most), null);
  return last?.lag ? `most at ${partitionKey(last)}: ${count(last.lag)}` : claim("nothing is waiting");
}

/** Whether there may be records of which nobody can say that they were read. A topic that is gone has no log. */
const isUnknown = ({ lag, log_start_offset: start, end_offset: end }) => lag === null && start !== null && start !== end;

/** How far behind in time, which takes a look at records, is said where that is asked for: topic by topic. */
function timedLag(id) {
  const element = h("p", { class: "muted break" });
  let known = "";
  return {
    element,
    update(topics) {
      if (known === topics.join()) return; // somebody may be about to press one
      known = topics.join();
      const more = topics.length - LINKED_TOPICS;
      const links = topics.slice(0, LINKED_TOPICS).map((topic) => [" ", h("a", { href: to("topics", topic, { tab: "Consumers", group: id }) }, middle(topic))]);
      replace(element, topics.length > 0 && ["How far behind in time, and whether that grows:", links, more > 0 && ` and ${counted(more, "more topic")}`]);
    },
  };
}

const topicsOf = (group) => [...new Set(group.partitions.map((each) => each.topic))];

async function askToDelete(id) {
  const submitted = await confirm({ title: `Delete ${id}?`, text: "Its committed offsets are gone then: whoever reads as this group starts anew. A group that has members is not deleted.", typeToConfirm: id });
  if (!submitted) return;
  try {
    await del(at`groups/${id}`);
    notify(`${id} was deleted`);
    go("groups");
  } catch (problem) {
    notify(problem.hint ? `${problem.message}: ${problem.hint}` : problem.message, "bad");
  }
}

const partitionKey = ({ topic, partition }) => `${topic}/${partition}`;

function nextToRead({ partition, committed_offset: offset }) {
  return offset === null ? { partition } : { mode: "offset", partition, offset };
}

const PARTITION_COLUMNS = [
  { name: "topic", title: "Topic", value: (each) => h("a", { href: to("topics", each.topic, "messages", nextToRead(each)) }, middle(each.topic)), sort: (each) => each.topic },
  { name: "partition", title: "Partition", value: (each) => each.partition, sort: true, align: "right", width: "6.5rem" },
  { name: "committed", title: "Committed", value: (each) => count(each.committed_offset), sort: (each) => each.committed_offset, align: "right", narrow: false },
  { name: "end", title: "End", value: (each) => count(each.end_offset), sort: (each) => each.end_offset, align: "right", narrow: false },
  { name: "lag", title: "Lag", value: (each) => count(each.lag), sort: (each) => each.lag, align: "right", width: "6.5rem" },
  { name: "member", title: "Read by", value: (each) => (each.member_id === null ? "nobody" : middle(each.member_id)), sort: (each) => each.member_id ?? "", narrow: false },
];

const MEMBER_COLUMNS = [
  { name: "client", title: "Client", value: (member) => (member.client_id ? middle(member.client_id) : "–"), sort: (member) => member.client_id },
  { name: "member", title: "Member", value: (member) => middle(member.instance_id ?? member.member_id), sort: (member) => member.member_id, narrow: false },
  { name: "host", title: "Host", value: (member) => member.host, sort: true, narrow: false },
  { name: "assigned", title: "Assigned", value: (member) => assignmentOf(member.partitions), sort: (member) => member.partitions.length },
];

/** orders 0–2, 4; payments 2 */
function assignmentOf(partitions) {
  const byTopic = Map.groupBy(partitions, (each) => each.topic);
  const parts = [...byTopic].map(([topic, own]) => [topic, rangesOf(own.map((each) => each.partition).sort((one, other) => one - other))]);
  const title = parts.map((part) => part.join(" ")).join("; ");
  const shown = parts.map(([topic, numbers], index) => [index > 0 && "; ", h("span", {}, middle(topic)), h("span", { class: "rest" }, ` ${numbers}`)]);
  return parts.length ? h("span", { class: "names", title }, shown) : "nothing";
}

/** 0–2, 4 */
function rangesOf(numbers) {
  const ranges = [];
  for (const number of numbers) {
    if (ranges.at(-1)?.[1] === number - 1) ranges.at(-1)[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([first, last]) => (first === last ? first : `${first}–${last}`)).join(", ");
}
