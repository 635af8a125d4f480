// The form that makes a topic.

import { post } from "../../lib/api.js";
import { form, notify } from "../../lib/dialog.js";
import { h } from "../../lib/dom.js";
import { choice, field } from "../../lib/page.js";

const DAY_MS = 86_400_000;
const KEPT = [
  ["", "the node's default"],
  [3_600_000, "1 hour"],
  [DAY_MS, "1 day"],
  [7 * DAY_MS, "7 days"],
  [30 * DAY_MS, "30 days"],
  [-1, "forever"],
];
const CLEANUP = [
  ["", "the node's default"],
  ["delete", "delete"],
  ["compact", "compact"],
  ["compact,delete", "compact,delete"],
];

/** The name of the new topic, or null. */
export async function createTopic() {
  const name = h("input", {
    type: "text",
    required: true,
    maxlength: 249,
    pattern: "[A-Za-z0-9._\\-]+",
    autocomplete: "off",
    spellcheck: "false",
    autofocus: true,
  });
  const partitions = h("input", { type: "number", min: 1, max: 10_000, placeholder: "default" });
  const kept = choice(KEPT, "");
  const cleanup = choice(CLEANUP, "");
  const config = h("textarea", { rows: 3, spellcheck: "false", placeholder: "segment.bytes=1048576" });
  const isDone = await form({
    title: "Create topic",
    action: "Create",
    body: [
      field("Name", name, "Letters, digits, '.', '_' and '-'"),
      h(
        "div",
        { class: "fields" },
        field("Partitions", partitions),
        field("Kept for", kept),
        field("Cleanup", cleanup),
      ),
      field("Other configuration, one name=value a line", config),
    ],
    submit: () => post("topics", newTopic(name.value, partitions.value, kept.value, cleanup.value, config.value)),
  });
  if (!isDone) return null;
  notify(`Topic ${name.value} was created.`);
  return name.value;
}

function newTopic(name, partitions, kept, cleanup, config) {
  return {
    name,
    partition_count: partitions === "" ? null : Number(partitions),
    retention_ms: kept === "" ? null : Number(kept),
    cleanup_policy: cleanup === "" ? null : cleanup,
    config: parseConfig(config),
  };
}

function parseConfig(text) {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = /^([^=]+)=(.*)$/.exec(line) ?? [];
      if (name === undefined) throw new Error(`"${line}" is not name=value`);
      return [name.trim(), value.trim()];
    }),
  );
}
