// All consumer groups, and of the first of them how far behind they are.

import { all, at, get } from "../lib/api.js";
import { h, replace } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { every } from "../lib/live.js";
import { pageHead } from "../lib/page.js";
import { go, to } from "../lib/route.js";
import { table } from "../lib/table.js";
import { isSayable } from "./group/names.js";
import { groupState } from "./group/state.js";

const LIST_MS = 5_000;
const LAG_MS = 10_000;
/** To know a group's lag its coordinator and every leader are asked: of so many, so many at a time. */
const DESCRIBED = 60;
const AT_ONCE = 4;

export async function render(root, _, signal) {
  const described = new Map();
  let groups = [];
  const list = table({ columns: columnsFor(described), key: (group) => group.group_id, onOpen: (group) => isSayable(group.group_id) && go("groups", group.group_id), filter: (group) => group.group_id, label: "consumer groups", empty: "No group has read anything yet. One appears with its first member, or its first commit." });
  replace(root, pageHead({ title: "Consumer groups" }), list.element);
  await every(LIST_MS, signal, async () => {
    groups = await all("groups", "groups", {}, signal);
    list.update(groups);
  });
  // The list does not wait for it: a partition without a leader keeps whoever asks for its end waiting.
  every(LAG_MS, signal, () => describeAll(groups.filter((group) => isSayable(group.group_id)).slice(0, DESCRIBED), described, () => list.update(groups), signal));
}

async function describeAll(groups, described, onKnown, signal) {
  const waiting = [...groups];
  const work = async () => {
    for (let group = waiting.shift(); group && !signal.aborted; group = waiting.shift()) {
      // One that was deleted in between, or whose coordinator is away, is not known; the others are.
      const known = await get(at`groups/${group.group_id}`, {}, signal).catch(() => null);
      described.set(group.group_id, known);
      if (!signal.aborted) onKnown();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

function nameShown({ group_id: id }) {
  if (isSayable(id)) return h("a", { href: to("groups", id) }, id);
  return h("span", { title: "Other doors have it: this name cannot be a part of an address." }, id);
}

function columnsFor(described) {
  const known = (group) => described.get(group.group_id);
  const topics = (group) => [...new Set(known(group)?.partitions.map((each) => each.topic))];
  return [
    { name: "group", title: "Group", value: nameShown, sort: (group) => group.group_id },
    { name: "state", title: "State", value: (group) => groupState(group.state), sort: (group) => group.state, width: "9rem" },
    { name: "type", title: "Protocol", value: (group) => group.type, sort: true, width: "7rem", narrow: false },
    { name: "topics", title: "Topics", value: (group) => topics(group).join(", "), narrow: false },
    { name: "members", title: "Members", value: (group) => count(known(group)?.members.length), sort: (group) => known(group)?.members.length, align: "right", width: "7rem", narrow: false },
    { name: "lag", title: "Lag", value: (group) => count(known(group)?.lag), sort: (group) => known(group)?.lag, align: "right", width: "7rem" },
  ];
}
