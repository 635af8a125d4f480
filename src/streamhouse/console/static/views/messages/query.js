// Which messages are asked for: the form, what it says, and what the address keeps of it.

import { h, replace } from "../../lib/dom.js";
import { choice, field } from "../../lib/page.js";

export const LIVE = "live";
const MODES = [
  ["newest", "Newest first"],
  ["oldest", "Oldest first"],
  ["offset", "From an offset"],
  ["time", "From a time"],
  [LIVE, "Live tail"],
];
/** So many partitions are followed at once. */
const MOST_FOLLOWED = 64;
const FILTERED = new Set(["newest", "oldest", "time", LIVE]);

/** {element, mode, ask()}; onAsk({mode, partition, …}) is called with what is asked for. */
export class QueryForm {
  constructor(given, partitionCount, onAsk) {
    const fixed = { type: "text", autocomplete: "off", spellcheck: "false" };
    const input = (name, rest) => h("input", { ...fixed, ...rest, value: given.get(name) ?? "" });
    const isMode = MODES.some(([mode]) => mode === given.get("mode"));
    this.onAsk = onAsk;
    this.partitionCount = partitionCount;
    this.mode = choice(MODES, isMode ? given.get("mode") : "newest", { onchange: () => this.changeMode() });
    this.partition = input("partition", { type: "number", min: 0, max: partitionCount - 1, placeholder: "all" });
    this.offset = input("offset", { type: "number", min: 0, placeholder: "0" });
    this.time = input("time", { type: "datetime-local", step: 1 });
    this.key = input("key", { placeholder: "any" });
    this.field = input("field", { placeholder: "customer.id" });
    this.equals = input("equals", { placeholder: "7" });
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
    const isFiltered = FILTERED.has(mode);
    replace(
      this.place,
      field("Show", this.mode),
      field("Partition", this.partition),
      mode === "offset" && field("Offset", this.offset),
      mode === "time" && field("Time", this.time),
      isFiltered && field("Key is", this.key),
      isFiltered && field("JSON field", this.field),
      isFiltered && field("equals", this.equals),
      h("button", { type: "submit", class: "primary" }, mode === LIVE ? "Follow" : "Show"),
    );
  }

  missing() {
    const { mode, partition, field: path, equals } = this.read();
    if (mode === "offset" && partition === "") return "An offset is of one partition: say which.";
    if (mode === LIVE && partition === "" && this.partitionCount > MOST_FOLLOWED)
      return `Up to ${MOST_FOLLOWED} partitions are followed at once: say which one of the ${this.partitionCount}.`;
    if (mode === "time" && this.time.value === "") return "Say from which time.";
    if ((path === "") !== (equals === "")) return "Give a field and what it equals, or neither.";
    return "";
  }

  read() {
    const isFiltered = FILTERED.has(this.mode.value);
    return {
      mode: this.mode.value,
      partition: this.partition.value,
      offset: this.mode.value === "offset" ? this.offset.value || "0" : "",
      time: this.mode.value === "time" ? this.time.value : "",
      key: isFiltered ? this.key.value : "",
      field: isFiltered ? this.field.value : "",
      equals: isFiltered ? this.equals.value : "",
    };
  }
}
