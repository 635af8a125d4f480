// What most pages are made of: a head, figures, facts, tabs.

import { h, replace } from "./dom.js";
import { zone } from "./format.js";

export { middle, names } from "./middle.js";

/** crumbs: [[title, address], …] that lead here; actions: buttons and links. */
export function pageHead({ title, crumbs = [], actions = [] }) {
  const path =
    crumbs.length > 0 &&
    h(
      "nav",
      { class: "crumbs", "aria-label": "Where this is" },
      crumbs.map(([name, address]) => [h("a", { href: address }, name), " / "]),
    );
  return h("div", {}, path, h("div", { class: "page-head" }, h("h1", {}, title), h("div", { class: "bar" }, actions)));
}

export const button = (title, onclick, kind = null) => h("button", { type: "button", class: kind, onclick }, title);

/** One number with its name: {element, set(number, more)}. */
export function figure(name, { href = null } = {}) {
  const number = h("span", { class: "number" }, "–");
  const more = h("span", { class: "more" });
  const title = href ? h("a", { href }, name) : name;
  return {
    element: h(
      "div",
      { class: "card figure", role: "group", "aria-label": name },
      h("span", { class: "name" }, title),
      number,
      more,
    ),
    set(value, detail = "") {
      number.textContent = value;
      replace(more, detail);
    },
  };
}

/** Something that is so now, such as that all is well: when what is on screen turns old, nobody knows it any more. */
export const claim = (...now) => [
  h("span", { class: "claim-now" }, now),
  h("span", { class: "claim-old tag warn" }, "not known"),
];

/** What a cell says in a second line on a small screen, where the column that says it is left out. */
export const below = (...text) => h("span", { class: "below" }, text);

/** [[name, text or node], …] */
export function facts(rows) {
  return h(
    "dl",
    { class: "facts" },
    rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}

/** panels: {title: element}; all of them exist and one is seen, the chosen one at first. onChoose(title): somebody did. */
export function tabs(label, panels, { chosen = "", onChoose = () => {} } = {}) {
  const names = Object.keys(panels);
  const buttons = names.map((name) =>
    h(
      "button",
      { type: "button", role: "tab", onclick: () => turnTo(name), onkeydown: (event) => onKey(event, name) },
      name,
    ),
  );
  const places = names.map((name) => h("section", { role: "tabpanel", "aria-label": name }, panels[name]));
  function choose(chosen) {
    names.forEach((name, index) => {
      buttons[index].ariaSelected = String(name === chosen);
      buttons[index].tabIndex = name === chosen ? 0 : -1;
      places[index].hidden = name !== chosen;
    });
  }
  function onKey(event, name) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (names.indexOf(name) + step + names.length) % names.length;
    turnTo(names[next]);
    buttons[next].focus();
    event.preventDefault();
  }
  function turnTo(name) {
    choose(name);
    onChoose(name);
  }
  choose(names.includes(chosen) ? chosen : names[0]);
  return [h("div", { role: "tablist", "aria-label": label }, buttons), ...places];
}

let fields = 0;

/** A field of a form with its name, and perhaps a hint. */
export function field(name, control, hint = null) {
  const id = (control.id ||= `field-${++fields}`);
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  const shownHint = hint && h("span", { class: "muted", id: `${id}-hint` }, hint);
  return h("div", { class: "field" }, h("label", { for: id }, name), control, shownHint);
}

/** A field for a time here; its name says of which zone that is. */
export function timeField(name, input) {
  const title = h("span", {});
  const say = () => (title.textContent = `${name} (${zone(input.value ? new Date(input.value).getTime() : Date.now())})`);
  input.oninput = say;
  say();
  const element = field(title, input);
  element.classList.add("wide");
  return element;
}

/** options: [[value, title], …] */
export function choice(options, value, attributes = {}) {
  return h(
    "select",
    { ...attributes, value },
    options.map(([option, title]) => h("option", { value: option }, title)),
  );
}

/** Put text where the person can paste it from; where the browser does not let us, select it. */
export async function copy(text, source) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return false;
  }
}

/** A command to copy. */
export function command(title, text) {
  const source = h("pre", { class: "command" }, text);
  const done = h("span", { class: "muted", role: "status" });
  const act = button(`Copy ${title}`, async () =>
    replace(done, (await copy(text, source)) ? "copied" : "selected: press Ctrl+C"),
  );
  return h("div", { class: "copyable" }, h("div", { class: "bar" }, act, done), source);
}
