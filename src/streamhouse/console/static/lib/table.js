// Tables of thousands of rows, sortable and searchable, all of it by keyboard.

import { h } from "./dom.js";
import { classOf, Rows } from "./rows.js";

const BY_NAME = new Intl.Collator("en", { numeric: true });

/** columns: {name, title: text or node, value(row) → text or node, sort?: true or (row) → number or text, align?: "right",
 * width?: CSS, narrow?: false leaves it out on small screens}. key(row) → text that stays the row's. onOpen(row): Enter
 * or click. filter(row) → the text to search in, which brings a search box. label: its name for those who cannot see
 * it. empty: what to say if there is nothing, once that is known. sorted: {name, isDown} to begin with. isFixed: a row
 * is what it is for ever, so that it is made once. wraps: each row is as high as it needs, for tables that are short.
 * Returns {element, update(rows), search(text), focus()}. */
export function table({ rows = null, ...options }) {
  return new Table({ label: "", empty: "Nothing here.", sorted: null, isFixed: false, wraps: false, ...options }).update(rows);
}

class Table {
  constructor({ columns, key, onOpen, filter, label, empty, sorted, isFixed, wraps }) {
    Object.assign(this, { columns, filter, empty, sorted });
    this.given = null;
    this.text = "";
    this.heads = columns.map((column) => this.head(column));
    this.rows = new Rows({ columns, key, onOpen, isFixed, wraps }, [
      h(
        "colgroup",
        {},
        columns.map((column) => h("col", { class: classOf(column), style: widthOf(column) })),
      ),
      h("thead", {}, h("tr", { "aria-rowindex": 1 }, this.heads)),
    ]);
    this.rows.grid.ariaLabel = label;
    this.note = h("p", { class: "muted table-note", role: "status" });
    this.box = filter ? this.searchBox(label) : null;
    const tools = this.box && h("div", { class: "table-tools" }, this.box, this.note);
    this.element = h("div", { class: "table" }, tools, this.rows.element, !tools && this.note);
  }

  /** Other rows, of which those that stay keep their place; null: nobody knows yet. */
  update(rows) {
    this.given = rows;
    this.arrange();
    return this;
  }

  search(text) {
    this.text = text.trim().toLowerCase();
    this.arrange(true);
  }

  focus() {
    this.rows.focus();
  }

  head(column) {
    const sort = () => this.sortBy(column);
    const title = column.sort
      ? h("button", { type: "button", class: "sort", onclick: sort }, column.title)
      : column.title;
    return h("th", { scope: "col", class: classOf(column), dataset: { name: column.name } }, title);
  }

  searchBox(label) {
    const listeners = { oninput: () => this.search(this.box.value), onkeydown: (event) => this.onSearchKey(event) };
    return h("input", { type: "search", placeholder: "Search ( / )", "aria-label": `Search ${label}`, ...listeners });
  }

  onSearchKey(event) {
    if (event.key === "ArrowDown" || event.key === "Enter") this.focus();
    else if (event.key === "Escape" && this.box.value) this.search((this.box.value = ""));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Up, then down, then as they came. */
  sortBy({ name }) {
    const isSame = this.sorted?.name === name;
    this.sorted = isSame && this.sorted.isDown ? null : { name, isDown: isSame };
    this.arrange(true);
  }

  arrange(isFromTop = false) {
    const matches = (row) => this.filter(row).toLowerCase().includes(this.text);
    const found = (this.given ?? []).filter((row) => !this.text || matches(row));
    const column = this.sorted && this.columns.find(({ name }) => name === this.sorted.name);
    if (column) sortRows(found, column.sort === true ? column.value : column.sort, this.sorted.isDown);
    for (const head of this.heads) head.ariaSort = this.direction(head.dataset.name);
    this.note.textContent = this.summary(found.length);
    this.rows.show(found, isFromTop);
  }

  direction(name) {
    if (this.sorted?.name !== name) return "none";
    return this.sorted.isDown ? "descending" : "ascending";
  }

  summary(found) {
    if (this.given === null) return "";
    if (this.text) return found ? `${found} of ${this.given.length}` : "Nothing matches.";
    if (!found) return this.empty;
    return this.box ? String(found) : "";
  }
}

function sortRows(rows, by, isDown) {
  const sign = isDown ? -1 : 1;
  rows.sort((left, right) => sign * compare(by(left), by(right)));
}

/** What is not known comes first. */
function compare(left, right) {
  if (typeof left === "string" && typeof right === "string") return BY_NAME.compare(left, right);
  return Number((left ?? -Infinity) > (right ?? -Infinity)) - Number((left ?? -Infinity) < (right ?? -Infinity));
}

const widthOf = (column) => (column.width ? { width: column.width } : {});
