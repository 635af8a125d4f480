// A topic's configuration: what is its own and what is the node's, and a form to change one of it.

import { at, patch } from "../../lib/api.js";
import { confirm, form, notify } from "../../lib/dialog.js";
import { h } from "../../lib/dom.js";
import { duration } from "../../lib/format.js";
import { field } from "../../lib/page.js";
import { table } from "../../lib/table.js";

export function configuration(topic, signal) {
  let current = topic;
  const shown = table({
    columns: [
      { name: "name", title: "Name", value: ([name]) => h("code", {}, name), sort: ([name]) => name, width: "38%" },
      {
        name: "value",
        title: "Value",
        value: ([name, value]) => [value, h("span", { class: "muted" }, inWords(name, value))],
      },
      {
        name: "source",
        title: "Set by",
        value: ([name]) =>
          name in current.config ? h("span", { class: "tag" }, "topic") : h("span", { class: "muted" }, "node"),
        narrow: false,
        width: "8rem",
      },
      { name: "edit", title: "", value: (row) => editButton(row), width: "6.5rem", align: "right" },
    ],
    rows: rows(topic),
    key: ([name]) => name,
    filter: ([name, value]) => `${name}=${value}`,
    onOpen: (row) => edit(row),
    label: "Configuration",
  });
  function editButton(row) {
    return h("button", { type: "button", "aria-label": `Edit ${row[0]}`, onclick: () => edit(row) }, "Edit");
  }
  async function edit([name, value]) {
    current = (await change(current, name, value)) ?? current;
    if (!signal.aborted) shown.update(rows(current));
  }
  return shown.element;
}

const rows = (topic) => Object.entries(topic.effective_config).sort(([left], [right]) => left.localeCompare(right));

const inWords = (name, value) => (name.endsWith(".ms") && /^-?\d+$/.test(value) ? `  ${duration(Number(value))}` : "");

/** The topic as it is then, or null. */
async function change(topic, name, value) {
  const input = h("input", { type: "text", value, autocomplete: "off", spellcheck: "false", autofocus: true });
  const isDefault = h("input", { type: "checkbox", onchange: () => (input.disabled = isDefault.checked) });
  let changed = null;
  await form({
    title: `Change ${name}`,
    action: "Save",
    body: [field(name, input), name in topic.config && h("label", {}, isDefault, " Back to the node's default")],
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
