// A topic's configuration: what is its own and what is the node's, and a form to change one of it.

import { at, get, patch } from "../../lib/api.js";
import { confirm, form, notify, problemBox } from "../../lib/dialog.js";
import { h, replace } from "../../lib/dom.js";
import { duration } from "../../lib/format.js";
import { below, field, middle } from "../../lib/page.js";
import { table } from "../../lib/table.js";

/** What is longer, as the largest number that there is, is no time that somebody chose. */
const LONGEST_MS = 100 * 365 * 86_400_000;

export function configuration(topic, signal) {
  let current = topic;
  const shown = table({
    columns: [
      { name: "name", title: "Name", value: nameOf, sort: (row) => row.name, width: "clamp(17rem, 27vw, 22rem)" },
      { name: "value", title: "Value", value: valueOf, narrow: false, width: "13.4rem" },
      { name: "source", title: "Set by", value: setBy, sort: (row) => row.source, narrow: false, width: "8rem" },
      { name: "default", title: "If not set", value: (row) => row.default, narrow: false, width: "9rem" },
      { name: "description", title: "What it means", value: (row) => row.description, narrow: false },
      { name: "edit", title: "", value: (row) => editButton(row), align: "right", width: "5.6rem" },
    ],
    key: (row) => row.name,
    filter: ({ name, value, description }) => `${name}=${value} ${description}`,
    onOpen: (row) => edit(row),
    label: "Configuration",
    wraps: true,
  });
  function editButton(row) {
    return h("button", { type: "button", "aria-label": `Edit ${row.name}`, onclick: () => edit(row) }, "Edit");
  }
  async function edit(row) {
    const changed = await change(current, row);
    current = changed ?? current;
    if (changed && !signal.aborted) await refresh();
  }
  async function refresh() {
    shown.update((await get(at`topics/${topic.name}/configs`, {}, signal)).configs);
  }
  const trouble = h("div");
  refresh().catch((problem) => signal.aborted || replace(trouble, problemBox(problem)));
  return h("div", {}, trouble, shown.element);
}

/** Who said so, for people. */
const SOURCES = {
  topic: "topic",
  given: "node's flag",
  node: "node",
  cluster: "all nodes",
  setting: "node's settings",
  default: "default",
};

function setBy({ source }) {
  return h("span", { class: source === "topic" ? "tag" : "muted" }, SOURCES[source] ?? source);
}

function nameOf(row) {
  const idle = row.no_effect_because && h("span", { class: "tag muted", title: `Since ${row.no_effect_because}` }, "no effect");
  return [h("code", {}, middle(row.name)), idle && h("div", {}, idle), below(h("div", { class: "set-to" }, valueOf(row)), row.description)];
}

const valueOf = ({ name, value }) => [value, h("span", { class: "muted" }, inWords(name, value))];

/** -1 is for ever where records are kept, and something else where something else is meant. */
function inWords(name, value) {
  const isDuration = name.endsWith(".ms") && /^\d+$/.test(value) && Number(value) <= LONGEST_MS;
  return isDuration || (name === "retention.ms" && value === "-1") ? ` ${duration(Number(value))}` : "";
}

/** The topic as it is then, or null. */
async function change(topic, { name, value, description, no_effect_because: why, default: otherwise }) {
  const input = h("input", { type: "text", value, autocomplete: "off", spellcheck: "false", autofocus: true });
  const isDefault = h("input", { type: "checkbox", onchange: () => (input.disabled = isDefault.checked) });
  let changed = null;
  await form({
    title: `Change ${name}`,
    action: "Save",
    body: [
      h("p", {}, description[0].toUpperCase() + description.slice(1)),
      why && h("p", { class: "warn" }, `It has no effect here: ${why}.`),
      h("p", { class: "muted break" }, `If it is not set: ${otherwise === "" ? "nothing" : otherwise}`),
      field(name, input),
      name in topic.config && h("label", {}, isDefault, " Back to the node's default"),
    ],
    submit: async () => {
      const wanted = isDefault.checked ? null : input.value;
      if (mayDelete(name, value, wanted) && !(await isMeant(topic.name, name, wanted))) return;
      changed = await patch(at`topics/${topic.name}`, { config: { [name]: wanted } });
    },
  });
  if (changed) notify(`${name} of ${topic.name} was changed.`);
  return changed;
}

/** Whether records that are kept now may go. What the node's default is, null, is not known here. */
function mayDelete(name, value, wanted) {
  if (name === "cleanup.policy") return wanted !== value;
  const isLimit = name === "retention.ms" || name === "retention.bytes";
  return isLimit && (wanted === null || limitOf(wanted) < limitOf(value));
}

const limitOf = (text) => (Number(text) < 0 ? Infinity : Number(text));

function isMeant(topic, name, wanted) {
  return confirm({
    title: `Change ${name} of ${topic}?`,
    text: `Records that are not kept with ${wanted === null ? "the node's default" : `${name}=${wanted}`} are deleted, and cannot be brought back.`,
    action: "Change",
  });
}
