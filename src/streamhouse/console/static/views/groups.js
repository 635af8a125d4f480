// All consumer groups, and of those that somebody looked at how far behind they are.

import { all } from "../lib/api.js";
import { h, replace } from "../lib/dom.js";
import { count, counted } from "../lib/format.js";
import { agingWithStore, every } from "../lib/live.js";
import { button, middle, names, pageHead } from "../lib/page.js";
import { go, to } from "../lib/route.js";
import { table } from "../lib/table.js";
import { isSayable } from "./group/names.js";
import { groupState } from "./group/state.js";
import { Descriptions } from "./groups/descriptions.js";

const LIST_MS = 5_000;

export async function render(root, _, signal) {
  let groups = [];
  const descriptions = new Descriptions(signal, () => show());
  const list = table({ columns: columnsFor(descriptions), key: (group) => group.group_id, onOpen: (group) => isSayable(group.group_id) && go("groups", group.group_id), filter: (group) => group.group_id, label: "consumer groups", empty: "No group has read anything yet. One appears with its first member, or its first commit." });
  const unknown = unknownNote(() => descriptions.ask(missing()));
  const missing = () => groups.map((group) => group.group_id).filter((id) => isSayable(id) && descriptions.of(id) === undefined);

  function show() {
    list.update(groups);
    unknown.update(missing().length, descriptions.isAsking);
  }

  replace(root, pageHead({ title: "Consumer groups" }), unknown.element, list.element);
  const old = agingWithStore(signal);
  await every(LIST_MS, signal, async () => {
    groups = await all("groups", "groups", {}, signal, (page) => old(page.metadata_silent_since_ms));
    show();
  });
}

/** To know a group's lag its coordinator and every leader are asked: of all groups only if somebody wants to. */
function unknownNote(onAsk) {
  const text = h("span", { class: "muted", role: "status" });
  const element = h("div", { class: "bar", hidden: true }, text, button("Ask for all", onAsk));
  return {
    element,
    /** Not for the moment that those on screen take. */
    update(missing, isAsking) {
      element.hidden = missing === 0 || (element.hidden && isAsking);
      text.textContent = `Members and lag of ${counted(missing, "group")} that nobody looked at are not known yet.`;
    },
  };
}

function nameShown({ group_id: id }) {
  if (isSayable(id)) return h("a", { href: to("groups", id) }, middle(id));
  return h("span", { title: "Other doors have it: this name cannot be a part of an address." }, middle(id));
}

function columnsFor(descriptions) {
  const known = (group) => descriptions.of(group.group_id);
  const shown = (group) => descriptions.shown(group.group_id);
  const topics = (group) => [...new Set(shown(group)?.partitions.map((each) => each.topic))];
  return [
    { name: "group", title: "Group", value: nameShown, sort: (group) => group.group_id },
    { name: "state", title: "State", value: (group) => groupState(group.state), sort: (group) => group.state, width: "clamp(10.5rem, 14vw, 11.5rem)" },
    { name: "type", title: "Protocol", value: (group) => group.type, sort: true, width: "7rem", narrow: false },
    { name: "topics", title: "Topics", value: (group) => names(topics(group)), narrow: false },
    { name: "members", title: "Members", value: (group) => count(shown(group)?.members.length), sort: (group) => known(group)?.members.length, align: "right", width: "7rem", narrow: false },
    { name: "lag", title: "Lag", value: (group) => count(shown(group)?.lag), sort: (group) => known(group)?.lag, align: "right", width: "clamp(5.2rem, 9vw, 7rem)" },
  ];
}
