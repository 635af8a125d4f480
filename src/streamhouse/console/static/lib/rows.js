// The rows of a table that are on screen, and no others: between two spacers as high as all the rest; or, where rows
// differ in height, all of a short one. They keep the keyboard's place, and what a person reads or presses stays where it
// is while others come and go.

import { h, replace } from "./dom.js";

const ROW_PX = 38;
const SPARE_ROWS = 12;
const CONTROLS = "a, button, input";

export class Rows {
  constructor({ columns, key, onOpen, isFixed, wraps }, head) {
    Object.assign(this, { columns, key, onOpen, isFixed, wraps });
    this.rows = [];
    this.made = new Map();
    this.active = null;
    this.frame = 0;
    this.isHeld = false;
    this.waiting = null;
    this.body = h("tbody", { onpointerdown: (event) => event.button === 0 && this.hold() });
    this.grid = h("table", { role: "grid" }, head, this.body);
    const listeners = { onscroll: () => this.soon(), onkeydown: (event) => this.onKey(event) };
    this.element = h("div", { class: wraps ? "rows wraps" : "rows", ...listeners }, this.grid);
    new ResizeObserver(() => this.soon()).observe(this.element);
  }

  /** These from now on; what is at the top of the screen stays there if it is still among them, unless they are to be
   * seen from their beginning. */
  show(rows, isFromTop = false) {
    if (this.isHeld) {
      this.waiting = { rows, isFromTop: isFromTop || Boolean(this.waiting?.isFromTop) };
      return;
    }
    if (isFromTop) this.element.scrollTop = 0;
    const top = Math.floor(this.element.scrollTop / ROW_PX);
    const anchor = top > 0 && top < this.rows.length ? this.key(this.rows[top]) : null;
    const place = anchor === null ? -1 : rows.findIndex((row) => this.key(row) === anchor);
    this.rows = rows;
    this.grid.ariaRowCount = rows.length + 1;
    if (!this.isFixed) this.made.clear();
    const isKept = place >= 0 && !this.wraps;
    this.draw(this.element.scrollTop + (isKept ? (place - top) * ROW_PX : 0));
  }

  focus() {
    this.body.querySelector("tr[tabindex='0']")?.focus({ preventScroll: true });
  }

  soon() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw(top = this.element.scrollTop) {
    if (this.isHeld) return;
    const [first, last] = this.wraps ? [0, this.rows.length] : this.around(top);
    const seen = this.rows.slice(first, last);
    const activePlace = Math.max(
      0,
      seen.findIndex((row) => this.key(row) === this.active),
    );
    const focused = this.focusedPlace();
    const lines = seen.map((row, index) => this.line(row, first + index, index === activePlace));
    replace(this.body, spacer(first), lines, spacer(this.rows.length - last));
    this.made = new Map(seen.map((row, index) => [row, lines[index]]));
    if (this.element.scrollTop !== top) this.element.scrollTop = top;
    if (focused !== null) this.restoreFocus(focused);
  }

  /** Which rows are on screen there, and some beside. */
  around(top) {
    const height = this.element.clientHeight || innerHeight;
    const first = Math.max(0, Math.min(Math.floor(top / ROW_PX), this.rows.length - 1) - SPARE_ROWS);
    return [first, Math.min(this.rows.length, first + Math.ceil(height / ROW_PX) + 2 * SPARE_ROWS)];
  }

  /** -1: the keyboard is on a row, else on which of the row's controls; null: elsewhere. */
  focusedPlace() {
    const focused = document.activeElement;
    const line = this.body.contains(focused) ? focused.closest("tr") : null;
    return line && [...line.querySelectorAll(CONTROLS)].indexOf(focused);
  }

  restoreFocus(place) {
    const line = this.body.querySelector("tr[tabindex='0']");
    (line?.querySelectorAll(CONTROLS)[place] ?? line)?.focus({ preventScroll: true });
  }

  line(row, index, isActive) {
    const line = this.made.get(row) ?? this.make(row);
    markActive(line, isActive);
    line.ariaRowIndex = index + 2;
    line.dataset.index = index;
    return line;
  }

  make(row) {
    const open = this.onOpen && ((event) => event.target.closest(CONTROLS) || this.onOpen(row));
    const cells = this.columns.map((column) =>
      h("td", { class: classOf(column), role: "gridcell" }, column.value(row)),
    );
    return h("tr", { class: open && "opens", onclick: open, onfocusin: () => this.activate(this.key(row)) }, cells);
  }

  /** Tab leads to one row and what is in it, and from there out of the table; the arrows lead to the others. */
  activate(key) {
    this.active = key;
    for (const [row, line] of this.made) markActive(line, this.key(row) === key);
  }

  /** A row that is pressed has to be there when it is let go, and where it was, or it was never clicked: other rows, and
   * the way to their beginning, wait. */
  hold() {
    const ends = ["pointerup", "pointercancel"];
    const letGo = () => {
      ends.forEach((name) => removeEventListener(name, letGo));
      // The click comes right after.
      setTimeout(() => {
        const { waiting } = this;
        this.isHeld = false;
        this.waiting = null;
        if (waiting) this.show(waiting.rows, waiting.isFromTop);
        else this.draw();
      });
    };
    this.isHeld = true;
    ends.forEach((name) => addEventListener(name, letGo));
  }

  onKey(event) {
    if (event.target.localName !== "tr") return;
    const index = Number(event.target.dataset.index);
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_PX) - 2);
    const moves = {
      ArrowDown: index + 1,
      ArrowUp: index - 1,
      PageDown: index + page,
      PageUp: index - page,
      Home: 0,
      End: this.rows.length - 1,
    };
    if (event.key === "Enter") this.open(event.target, this.rows[index]);
    else if (event.key in moves) this.moveTo(moves[event.key]);
    else return;
    event.preventDefault();
  }

  /** Where a row itself leads nowhere, its link does. */
  open(line, row) {
    if (this.onOpen) this.onOpen(row);
    else line.querySelector("a")?.click();
  }

  moveTo(index) {
    const place = Math.min(this.rows.length - 1, Math.max(0, index));
    this.active = this.key(this.rows[place]);
    const top = place * ROW_PX;
    const room = this.element.clientHeight - 2 * ROW_PX - 2;
    this.draw(this.wraps ? undefined : Math.min(top, Math.max(top - room, this.element.scrollTop)));
    this.focus();
    // The window has its own edges.
    this.body.querySelector("tr[tabindex='0']")?.scrollIntoView({ block: "nearest" });
  }
}

function markActive(line, isActive) {
  for (const each of [line, ...line.querySelectorAll(CONTROLS)]) each.tabIndex = isActive ? 0 : -1;
}

export function classOf(column) {
  const classes = [column.align === "right" && "right", column.narrow === false && "wide-only"];
  return classes.filter(Boolean).join(" ") || null;
}

const spacer = (rows) =>
  rows > 0 && h("tr", { class: "spacer", "aria-hidden": "true", style: { height: `${rows * ROW_PX}px` } });
