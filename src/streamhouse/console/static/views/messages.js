// A topic's messages: browsed by offset or time, searched, or followed live.

import { at, get } from "../lib/api.js";
import { problemBox } from "../lib/dialog.js";
import { h, replace } from "../lib/dom.js";
import { count, rate, time } from "../lib/format.js";
import { button, middle, pageHead } from "../lib/page.js";
import { keepQuery, to } from "../lib/route.js";
import { table } from "../lib/table.js";
import { browse, downloadAddress } from "./messages/browse.js";
import { preview } from "./messages/bytes.js";
import { produceRecord } from "./messages/produce.js";
import { LIVE, QueryForm } from "./messages/query.js";
import { showRecords } from "./messages/record.js";
import { Tail } from "./messages/tail.js";
import { passedOver } from "./messages/unreadable.js";

const shown = (text, format) => preview(text, format) ?? h("span", { class: "muted" }, "null");

const PLACE = [
  { name: "partition", title: "Part.", value: (record) => record.partition, sort: true, align: "right", width: "clamp(3.6rem, 6vw, 4.5rem)" },
  { name: "offset", title: "Offset", value: (record) => record.offset, sort: true, align: "right", width: "clamp(5.2rem, 9vw, 6.5rem)" },
  {
    name: "time",
    title: "Time",
    value: (record) => time(record.timestamp_ms),
    sort: (record) => record.timestamp_ms,
    narrow: false,
    width: "20rem",
  },
  { name: "key", title: "Key", value: (record) => shown(record.key, record.key_format), narrow: false, width: "18%" },
];
const VALUE = {
  name: "value",
  title: "Value",
  value: (record) => h("span", { class: "mono" }, shown(record.value, record.value_format)),
};

/** The chosen fields, as the node names them, take the place of the value. */
function columnsOf(names) {
  if (!names.length) return [...PLACE, VALUE];
  const fields = names.map((title, index) => ({
    name: `field-${index}`,
    title: middle(title),
    value: (record) => record.fields?.[index] ?? h("span", { class: "muted" }, "–"),
    sort: (record) => sortable(record.fields?.[index]),
  }));
  return [...PLACE, ...fields];
}

const sortable = (text) => (text && !Number.isNaN(Number(text)) ? Number(text) : (text ?? null));

export async function render(root, { topic: name, query }, signal) {
  const topic = await get(at`topics/${name}`, {}, signal);
  const messages = new Messages(name, signal);
  const form = new QueryForm(query, topic.partition_count, (asked) => messages.ask(asked));
  const produce = async () => {
    const stored = await produceRecord(name, topic.partition_count);
    if (stored && form.mode.value !== LIVE) form.ask();
  };
  const crumbs = [
    ["Topics", to("topics")],
    [name, to("topics", name)],
  ];
  const head = pageHead({ title: "Messages", crumbs, actions: [button("Produce", produce, "primary")] });
  replace(root, head, form.element, messages.element);
  form.ask();
}

/** As the node reads them: with commas between, but for those in quotes. */
const namesOf = (columns) =>
  (columns.match(/(?:\["(?:[^"\\]|\\.)*"\]|[^,])+/g) ?? []).map((name) => name.trim()).filter(Boolean);

/** What is found, on all pages, as a file that the node makes. */
function downloads(topic, asked) {
  const title = "All that is found, up to 100,000 messages or 64 MiB; the last line says if that was not all";
  const link = (format, name) => {
    const href = downloadAddress(topic, asked, format);
    return href && h("a", { class: "button", href, download: "", title }, name);
  };
  return [link("ndjson", "Download JSON lines"), link("csv", "CSV")];
}

function searchText({ key, value, headers }) {
  return [key, value, ...headers.flatMap(({ name, value: text }) => [name, text])].join(" ");
}

/** The list below the form: of one question at a time, the last one. */
class Messages {
  constructor(topic, signal) {
    this.topic = topic;
    this.pageSignal = signal;
    this.asking = new AbortController();
    this.state = h("span", { class: "muted", role: "status" });
    this.tools = h("span", { class: "bar push" });
    this.trouble = h("div");
    this.place = h("div");
    this.showTable("");
    this.element = h(
      "section",
      { class: "page", "aria-label": "Messages" },
      h("div", { class: "bar" }, this.state, this.tools),
      this.trouble,
      this.place,
    );
  }

  /** One with these columns; what was searched for in the last one is left. */
  showTable(columns) {
    if (columns === this.columns) return;
    this.columns = columns;
    this.table = table({
      columns: columnsOf(namesOf(columns)),
      key: (record) => `${record.partition}:${record.offset}`,
      filter: searchText,
      onOpen: (record) => showRecords(this.topic, this.table.rows.rows, record),
      label: "Messages",
      empty: "",
      isFixed: true,
    });
    replace(this.place, this.table.element);
  }

  ask(asked) {
    this.asking.abort();
    this.asking = new AbortController();
    keepQuery(asked.mode === "newest" ? { ...asked, mode: "" } : asked);
    replace(this.tools);
    replace(this.trouble);
    this.showTable(asked.columns);
    this.table.empty = "";
    this.table.update([]);
    const signal = AbortSignal.any([this.pageSignal, this.asking.signal]);
    if (asked.mode === LIVE) this.follow(asked, signal);
    else this.browse(asked, signal);
  }

  browse(asked, signal) {
    const page = browse(this.topic, asked, signal);
    const starts = [null];
    let place = 0;
    const previous = button("Previous", () => load(place - 1));
    const next = button("Next", () => load(place + 1));
    const load = async (wanted) => {
      const pressed = [previous, next].find((each) => each === document.activeElement);
      previous.disabled = next.disabled = true;
      this.state.textContent = "Looking…";
      try {
        const found = await page(starts[wanted]);
        if (signal.aborted) return;
        place = wanted;
        starts[place + 1] = found.next;
        this.show(found, place);
      } catch (problem) {
        if (signal.aborted) return;
        this.state.textContent = "";
        replace(this.trouble, problemBox(problem));
      }
      previous.disabled = place === 0;
      next.disabled = (starts[place + 1] ?? null) === null;
      if (pressed) [pressed, previous, next].find((each) => !each.disabled)?.focus();
    };
    replace(this.tools, downloads(this.topic, asked), previous, next);
    load(0);
  }

  show({ records, scanned, tooLong, unreadable, next }, place) {
    replace(
      this.trouble,
      unreadable.map((each) => problemBox(passedOver(each))),
    );
    this.table.empty = "No messages.";
    this.table.search("");
    this.table.update(records);
    const without = tooLong ? `, ${count(tooLong)} too long to be read as JSON` : "";
    const found = `Page ${place + 1}: ${count(records.length)} found in ${count(scanned)} looked at${without}`;
    this.state.textContent = next === null ? `${found}, to the end` : found;
  }

  follow(asked, signal) {
    let before = { at: performance.now(), received: 0 };
    const total = h("span", { class: "muted" });
    const toggle = button("", () => (tail.isRunning ? tail.stop() : tail.start()));
    const onNews = ({ records, received }) => {
      const now = { at: performance.now(), received };
      this.table.update(records);
      const seconds = Math.max(1, now.at - before.at) / 1000;
      total.textContent = `${count(received)} received · ${rate((received - before.received) / seconds)}`;
      if (now.at - before.at > 1_000) before = now;
    };
    const onState = (text) => {
      if (signal.aborted) return;
      this.state.textContent = text;
      toggle.textContent = tail.isRunning ? "Pause" : "Go on";
      this.table.empty = tail.isRunning ? "Waiting for new messages." : "No messages.";
      this.table.update(tail.kept);
      replace(this.trouble);
    };
    const onTrouble = (problem) => replace(this.trouble, problemBox(problem));
    replace(this.tools, total, toggle);
    const tail = new Tail(this.topic, asked, { onNews, onState, onTrouble }, signal);
    tail.start();
  }
}
