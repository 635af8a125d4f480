// A topic's configuration: what is its own and what is the node's, and a form to change one of it.

import { at, get, patch } from "../../lib/api.js";
import { confirm, form, notify, problemBox } from "../../lib/dialog.js";
import { h, replace } from "../../lib/dom.js";
import { duration } from "../../lib/format.js";
import { field } from "../../lib/page.js";
import { table } from "../../lib/table.js";

export function configuration(topic, signal) {
  let current = topic;
  const shown = table({
    columns: [
      { name: "name", title: "Name", value: nameOf, sort: (row) => row.name, width: "24%" },
      {
        name: "value",
        title: "Value",
        value: ({ name, value }) => [value, h("span", { class: "muted" }, inWords(name, value))],
      },
      { name: "source", title: "Set by", value: setBy, sort: (row) => row.source, narrow: false, width: "8rem" },
      { name: "default", title: "If not set", value: (row) => row.default, narrow: false, width: "12%" },
      {
        name: "description",
        title: "What it means",
        value: (row) => h("span", { title: row.description }, row.description),
        narrow: false,
        width: "30%",
      },
      { name: "edit", title: "", value: (row) => editButton(row), width: "5.6rem", align: "right" },
    ],
    key: (row) => row.name,
    filter: ({ name, value, description }) => `${name}=${value} ${description}`,
    onOpen: (row) => edit(row),
    label: "Configuration",
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

function nameOf({ name, no_effect_because: why }) {
  return [h("code", {}, name), why && [" ", h("span", { class: "tag muted", title: `Since ${why}` }, "no effect")]];
}

const inWords = (name, value) => (name.endsWith(".ms") && /^-?\d+$/.test(value) ? `  ${duration(Number(value))}` : "");

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
