// The keyboard, wherever one is: two keys to a page, one to search, one for help.

import { show } from "../lib/dialog.js";
import { h } from "../lib/dom.js";

const CHORD_MS = 1_500;
const TOPICS = "#/topics";
const ACTIVE_ROW = "tr[tabindex='0']";

/** pages: [{key, path, title}] */
export class Keyboard {
  constructor(pages, main) {
    Object.assign(this, { pages, main, chordUntil: 0 });
    addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") document.activeElement?.blur();
    else if (!event.target.closest?.("input, textarea, select") && this.act(event)) event.preventDefault();
  }

  /** Whether the key meant something. */
  act({ key, target }) {
    const page = performance.now() < this.chordUntil && this.pages.find((one) => one.key === key);
    this.chordUntil = 0;
    if (page) location.hash = `#/${page.path}`;
    else if (key === "g") this.chordUntil = performance.now() + CHORD_MS;
    else if (key === "/") this.focusSearch();
    else if (key === "?") this.help();
    else if (key === "ArrowDown" && this.isNowhere(target)) this.main.querySelector(ACTIVE_ROW)?.focus();
    else return false;
    return true;
  }

  /** Where nothing else has the keyboard, the arrows lead into the page's table. */
  isNowhere(target) {
    return (target === document.body || target === this.main) && this.main.querySelector(ACTIVE_ROW) !== null;
  }

  /** The page's own search, or that of the topics, as soon as it is there and if nobody has left by then. */
  focusSearch() {
    if (this.search()) return this.search().focus();
    location.hash = TOPICS;
    const watch = new MutationObserver(() => {
      const isThere = location.hash === TOPICS;
      if (isThere && !this.search()) return;
      watch.disconnect();
      if (isThere) this.search().focus();
    });
    watch.observe(this.main, { childList: true, subtree: true });
  }

  search() {
    return [...this.main.querySelectorAll("input[type=search]")].find((box) => box.checkVisibility());
  }

  help() {
    const keys = [
      ...this.pages.map(({ key, title }) => [["g", key], title]),
      [["/"], "Search"],
      [["↑", "↓"], "Move in a table"],
      [["Enter"], "Open a row"],
      [["Esc"], "Close, or leave a field"],
      [["?"], "This help"],
    ];
    const rows = keys.map(([names, what]) => {
      const caps = names.map((name) => h("kbd", {}, name));
      return [h("dt", {}, caps), h("dd", {}, what)];
    });
    show({ title: "Keyboard", body: h("dl", { class: "keys" }, rows) });
  }
}
