// A pipeline's dead letters, newest first: each record that failed with the why and whence, which its headers say.

import { at, get } from "../../lib/api.js";
import { problemBox } from "../../lib/dialog.js";
import { h, replace } from "../../lib/dom.js";
import { count, time } from "../../lib/format.js";
import { prettyJson } from "../../lib/json.js";
import { button, facts } from "../../lib/page.js";
import { to } from "../../lib/route.js";

const PREFIX = "streamhouse.";
const PAGE = 50;

export function deadLetters(pipeline, signal) {
  const { name, dead_letter_topic: topic } = pipeline;
  const title = h("h2", {}, "Dead letters");
  const list = h("div", { class: "letters" });
  const trouble = h("div", {});
  const more = button("Older", () => load(next));
  const renew = button("Newest", () => load(null));
  let next = null;
  let known = pipeline.dead_letters;
  let loading = new AbortController();

  /** Pipelines may share a topic: what is another's is left out. A load ends the one before, so that none is twice. */
  async function load(from) {
    loading.abort();
    loading = new AbortController();
    const wanted = AbortSignal.any([signal, loading.signal]);
    try {
      const query = { limit: PAGE, value_format: "text", next: from };
      const page = await get(at`topics/${topic}/messages`, query, wanted);
      next = page.next;
      if (from === null) replace(list);
      list.append(...page.records.filter((record) => saidOf(record).pipeline === name).map((record) => letter(topic, record)));
      replace(trouble);
    } catch (problem) {
      if (!wanted.aborted) replace(trouble, problemBox(problem));
    }
    more.hidden = next === null;
  }

  const parts = h("div", { class: "page" });
  let hasTopic = null;

  /** The topic is made with the first letter: until then there is nothing to ask for. */
  function showTopic(isThere) {
    if (isThere === hasTopic) return;
    hasTopic = isThere;
    if (!isThere) return void replace(parts, h("p", { class: "muted" }, topic ? [h("code", {}, topic), " does not exist yet: the first record that cannot be processed makes it."] : "This pipeline has no topic for dead letters."));
    const whole = h("a", { class: "button", href: to("topics", topic, "messages") }, "All of the topic");
    replace(parts, h("div", { class: "bar" }, renew, whole), list, trouble, more);
    load(null);
  }

  showTopic(pipeline.has_dead_letter_topic);
  return {
    element: h("section", { class: "page", "aria-label": "Dead letters" }, title, parts),
    /** New ones do not push away what somebody reads. */
    update({ dead_letters: letters, has_dead_letter_topic: isThere }) {
      showTopic(isThere);
      replace(title, `Dead letters: ${count(letters)} in this run`);
      if (isThere && letters !== known && !list.querySelector("[open]")) renew.click();
      known = letters;
    },
  };
}

function letter(topic, record) {
  const said = saidOf(record);
  return h(
    "details", { class: "letter" },
    h("summary", {}, h("strong", { class: "bad" }, said.error ?? "no reason was kept"), " ", h("span", { class: "muted" }, time(record.timestamp_ms))),
    facts([
      ["Step", said.step ?? "–"],
      ["Came from", whence(said)],
      ["Is now at", h("a", { href: to("topics", topic, "messages", { mode: "offset", partition: record.partition, offset: record.offset }) }, `${topic}/${record.partition}, offset ${record.offset}`)],
      ["Key", record.key === null ? "null" : h("code", {}, record.key)],
      ...ownHeaders(record).map(({ name, value }) => [`Header ${name}`, h("code", {}, value ?? "null")]),
    ]),
    h("h3", {}, record.value_format === "base64" ? "Failed record, as base64" : "Failed record"),
    h("pre", {}, valueText(record)),
  );
}

function whence(said) {
  if (said.file) return h("code", {}, said.file);
  if (!said.topic) return "a row that names no record";
  if (said.offset === undefined) return `${said.topic}/${said.partition}`;
  const text = `${said.topic}/${said.partition}, offset ${said.offset}`;
  const link = h("a", { href: to("topics", said.topic, "messages", { mode: "offset", partition: said.partition, offset: said.offset }) }, text);
  return said.timestamp ? [link, ` of ${said.timestamp}`] : link;
}

/** The record's own headers come first and may be named as ours are: the last of a name is ours. */
function saidOf(record) {
  const ours = record.headers.filter(({ name }) => name.startsWith(PREFIX));
  return Object.fromEntries(ours.map(({ name, value }) => [name.slice(PREFIX.length), value]));
}

const ownHeaders = (record) => record.headers.filter(({ name }) => !name.startsWith(PREFIX));

function valueText({ value, value_format: format }) {
  if (value === null) return "null";
  const pretty = format === "text" ? prettyJson(value) : null;
  return pretty === null ? value : pretty.map(([, text]) => text).join("");
}
