// Produce one record by hand.

import { at, post } from "../../lib/api.js";
import { form, notify } from "../../lib/dialog.js";
import { h, replace } from "../../lib/dom.js";
import { button, choice, command, field } from "../../lib/page.js";
import { curlProduce, produceBody } from "./commands.js";

const FORMATS = [
  ["json", "JSON"],
  ["text", "text"],
  ["base64", "base64"],
];

/** Where it is then, {partition, offset}, or null. */
export async function produceRecord(topic, partitionCount) {
  const inputs = makeInputs(partitionCount);
  const asCommand = h("div");
  let stored = null;
  await form({
    title: `Produce to ${topic}`,
    action: "Produce",
    body: [layout(inputs), button("Show as curl", () => showCommand(asCommand, topic, inputs)), asCommand],
    submit: async () => {
      const { records } = await post(at`topics/${topic}/records`, bodyOf(inputs));
      if (records[0].error) throw Object.assign(new Error(records[0].error.detail), records[0].error);
      stored = records[0];
    },
  });
  if (stored) notify(`Stored in partition ${stored.partition} at offset ${stored.offset}.`);
  return stored;
}

function makeInputs(partitionCount) {
  const value = h("textarea", { rows: 6, spellcheck: "false", autofocus: true });
  return {
    key: h("input", { type: "text", placeholder: "none", autocomplete: "off", spellcheck: "false" }),
    keyFormat: choice([FORMATS[1], FORMATS[0], FORMATS[2]], "text"),
    value,
    valueFormat: choice(FORMATS, "json"),
    isNull: h("input", { type: "checkbox", onchange: (event) => (value.disabled = event.target.checked) }),
    headers: h("textarea", { rows: 2, spellcheck: "false", placeholder: "name: value" }),
    partition: h("input", { type: "number", min: 0, max: partitionCount - 1, placeholder: "by its key" }),
  };
}

function layout({ key, keyFormat, value, valueFormat, isNull, headers, partition }) {
  return [
    h("div", { class: "fields" }, field("Key", key), field("Key is", keyFormat), field("Partition", partition)),
    field("Value", value),
    h(
      "div",
      { class: "fields" },
      field("Value is", valueFormat),
      h("label", {}, isNull, " null, which deletes the key when compacted"),
    ),
    field("Headers, one a line", headers),
  ];
}

function showCommand(place, topic, inputs) {
  try {
    replace(place, command("curl", curlProduce(topic, bodyOf(inputs))));
  } catch (problem) {
    replace(place, h("p", { class: "bad", role: "alert" }, problem.message));
  }
}

function bodyOf({ key, keyFormat, value, valueFormat, isNull, headers, partition }) {
  const given = {
    key: key.value === "" ? null : checked("key", key.value, keyFormat.value),
    value: isNull.checked ? null : checked("value", value.value, valueFormat.value),
  };
  return produceBody({
    ...given,
    keyFormat: keyFormat.value,
    valueFormat: valueFormat.value,
    headers: parseHeaders(headers.value),
    partition: partition.value === "" ? null : Number(partition.value),
  });
}

/** It becomes part of a request as it is: what is not JSON must not get there. */
function checked(name, text, format) {
  if (format === "json") {
    try {
      JSON.parse(text);
    } catch (problem) {
      throw new Error(`The ${name} is not JSON: ${problem.message}`);
    }
  }
  return text;
}

function parseHeaders(text) {
  return text
    .split("\n")
    .filter((line) => line.trim())
    .map((line) => {
      const [, name, value] = /^([^:]*):\s?(.*)$/.exec(line) ?? [];
      if (name === undefined) throw new Error(`Header "${line}" is not name: value`);
      return { name: name.trim(), value };
    });
}
