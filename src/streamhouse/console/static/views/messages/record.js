// One record, all of it: key, value as JSON, text or hex, headers, and the commands that get it.

import { get } from "../../lib/api.js";
import { show } from "../../lib/dialog.js";
import { h, replace } from "../../lib/dom.js";
import { bytes, time } from "../../lib/format.js";
import { prettyJson } from "../../lib/json.js";
import { button, command, facts } from "../../lib/page.js";
import { bytesOf, hexDump } from "./bytes.js";
import { curlProduce, curlRead, kcatRead, produceBody } from "./commands.js";

/** One of the records that are listed, and from there those beside it. */
export function showRecords(topic, listed, record) {
  const records = [...listed];
  let place = records.indexOf(record);
  const body = h("div", { class: "record" });
  const previous = button("Previous message", () => turn(-1));
  const next = button("Next message", () => turn(1));
  const draw = () => {
    replace(body, parts(topic, records[place]));
    previous.disabled = place <= 0;
    next.disabled = place >= records.length - 1;
  };
  draw();
  const dialog = show({ title: titleOf(topic, record), body, actions: [previous, next] });
  function turn(step) {
    place += step;
    draw();
    dialog.rename(titleOf(topic, records[place]));
    if (document.activeElement?.disabled !== false) (step > 0 ? previous : next).focus();
  }
}

const titleOf = (topic, { partition, offset }) => `${topic} / ${partition} @ ${offset}`;

function parts(topic, record) {
  const commands = h("details", {}, h("summary", {}, "Copy as a command"));
  kafkaAddress().then((address) => commands.append(...commandsOf(topic, record, address)));
  return [
    facts([
      ["Time", time(record.timestamp_ms)],
      ["Partition", record.partition],
      ["Offset", record.offset],
    ]),
    content("Key", record.key, record.key_format),
    content("Value", record.value, record.value_format),
    headerList(record.headers),
    commands,
  ];
}

function content(name, text, format) {
  if (text === null) return h("section", { "aria-label": name }, h("h3", {}, name), h("p", { class: "muted" }, "null"));
  const data = bytesOf(text, format);
  const json = format === "base64" ? null : prettyJson(text);
  const ways = {
    JSON:
      json &&
      (() => json.map(([kind, part]) => (kind === "other" ? part : h("span", { class: `json-${kind}` }, part)))),
    Text: format !== "base64" && (() => text),
    Hex: () => hexDump(data),
  };
  const names = Object.keys(ways).filter((way) => ways[way]);
  const body = h("pre", { class: "value", tabindex: 0 });
  const buttons = names.map((way) => button(way, () => choose(way)));
  function choose(way) {
    replace(body, ways[way]());
    body.classList.toggle("hex", way === "Hex");
    buttons.forEach((one, index) => (one.ariaPressed = String(names[index] === way)));
  }
  choose(name === "Key" && names.includes("Text") ? "Text" : names[0]);
  const head = h(
    "div",
    { class: "bar" },
    h("h3", {}, name),
    h("span", { class: "muted" }, bytes(data.length)),
    h("span", { class: "push bar small" }, buttons),
  );
  return h("section", { "aria-label": name }, head, body);
}

function headerList(headers) {
  if (!headers.length) return h("p", { class: "muted" }, "No headers");
  const shown = ({ value, format }) =>
    value === null ? "null" : format === "base64" ? hexDump(bytesOf(value, format)) : value;
  return h(
    "section",
    { "aria-label": "Headers" },
    h("h3", {}, "Headers"),
    facts(headers.map((header) => [header.name, h("pre", {}, shown(header))])),
  );
}

/** Any agent does: it knows who leads. */
async function kafkaAddress() {
  const agents = await get("agents").then(
    (answer) => answer.agents,
    () => [],
  );
  return (agents.find((agent) => agent.state === "live") ?? agents[0])?.kafka_address ?? `${location.hostname}:9092`;
}

function commandsOf(topic, record, address) {
  const again = produceBody({
    key: record.key,
    keyFormat: record.key_format ?? "text",
    value: record.value,
    valueFormat: record.value_format ?? "text",
    headers: record.headers,
  });
  return [
    command("curl", curlRead(topic, record)),
    command("kcat", kcatRead(topic, record, address)),
    command("curl to produce it again", curlProduce(topic, again)),
  ];
}
