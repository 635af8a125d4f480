// Which messages are asked for: the form, what it says, and what the address keeps of it.

import { h, replace } from "../../lib/dom.js";
import { time } from "../../lib/format.js";
import { choice, field, timeField } from "../../lib/page.js";

export const LIVE = "live";
const MODES = [
  ["newest", "Newest first"],
  ["oldest", "Oldest first"],
  ["offset", "From an offset"],
  [LIVE, "Live tail"],
];
/** So many partitions are followed at once. */
const MOST_FOLLOWED = 64;
const FILTERS = ["key", "field", "equals", "contains", "where"];
/** What means something in each mode, beside the partition. */
const FIELDS = {
  newest: ["from", "to", ...FILTERS, "columns"],
  oldest: ["from", "to", ...FILTERS, "columns"],
  offset: ["offset"],
  [LIVE]: FILTERS,
};
const CONDITION = 'value.amount > 3 and key == "a"';

/** {element, mode, ask()}; onAsk({mode, partition, …}) is called with what is asked for. */
export class QueryForm {
  constructor(given, partitionCount, onAsk) {
    const fixed = { type: "text", autocomplete: "off", spellcheck: "false" };
    const input = (name, rest) => h("input", { ...fixed, ...rest, value: given.get(name) ?? "" });
    const moment = (name) => h("input", { type: "datetime-local", step: 1, value: localTime(given.get(name)) });
    const isMode = MODES.some(([mode]) => mode === given.get("mode"));
    this.onAsk = onAsk;
    this.partitionCount = partitionCount;
    this.mode = choice(MODES, isMode ? given.get("mode") : "newest", { onchange: () => this.changeMode() });
    this.partition = input("partition", { type: "number", min: 0, max: partitionCount - 1, placeholder: "all" });
    this.inputs = {
      offset: input("offset", { type: "number", min: 0, placeholder: "0" }),
      from: moment("from"),
      to: moment("to"),
      key: input("key", { placeholder: "any" }),
      field: input("field", { placeholder: "customer.id" }),
      equals: input("equals", { placeholder: "7" }),
      contains: input("contains", { placeholder: "text in key, value or a header" }),
      where: input("where", { placeholder: CONDITION, maxlength: 1000 }),
      columns: input("columns", { placeholder: "value.amount, headers.trace" }),
    };
    this.note = h("p", { class: "bad", role: "alert" });
    this.place = h("div", { class: "fields" });
    const onsubmit = (event) => {
      event.preventDefault();
      this.ask();
    };
    this.element = h("form", { class: "card", "aria-label": "Which messages", onsubmit }, this.place, this.note);
    this.arrange();
  }

  /** If it says enough to be asked. */
  ask() {
    this.note.textContent = this.missing();
    if (!this.missing()) this.onAsk(this.read());
  }

  changeMode() {
    this.arrange();
    this.mode.focus(); // it was put in anew
    this.ask();
  }

  /** Only what means something in this mode. */
  arrange() {
    const mode = this.mode.value;
    const shown = (name, title, hint) => FIELDS[mode].includes(name) && field(title, this.inputs[name], hint);
    const moment = (name, title) => FIELDS[mode].includes(name) && timeField(title, this.inputs[name]);
    const where = shown("where", "Where");
    const columns = shown("columns", "Columns");
    const contains = shown("contains", "Contains");
    for (const wide of [contains, where, columns]) if (wide) wide.classList.add("wide");
    replace(
      this.place,
      field("Show", this.mode),
      field("Partition", this.partition),
      shown("offset", "Offset"),
      moment("from", "From"),
      moment("to", "To"),
      contains,
      shown("field", "JSON field"),
      shown("equals", "equals"),
      shown("key", "Key is"),
      where,
      columns,
      h("button", { type: "submit", class: "primary" }, mode === LIVE ? "Follow" : "Show"),
    );
  }

  missing() {
    const { mode, partition, field: path, equals, from, to } = this.read();
    if (mode === "offset" && partition === "") return "An offset is of one partition: say which.";
    if (mode === LIVE && partition === "" && this.partitionCount > MOST_FOLLOWED)
      return `Up to ${MOST_FOLLOWED} partitions are followed at once: say which one of the ${this.partitionCount}.`;
    if (from !== "" && to !== "" && from >= to) return "The time from which must be before the one to which.";
    if ((path === "") !== (equals === "")) return "Give a field and what it equals, or neither.";
    return "";
  }

  /** Times as milliseconds since 1970, which are the same for whoever is given the address. */
  read() {
    const mode = this.mode.value;
    const asked = { mode, partition: this.partition.value };
    for (const [name, input] of Object.entries(this.inputs)) {
      const value = FIELDS[mode].includes(name) ? input.value.trim() : "";
      asked[name] = value !== "" && input.type === "datetime-local" ? new Date(value).getTime() : value;
    }
    if (mode === "offset") asked.offset ||= "0";
    return asked;
  }
}

const localTime = (ms) => (/^\d+$/.test(ms ?? "") ? time(Number(ms)).slice(0, 19).replace(" ", "T") : "");
