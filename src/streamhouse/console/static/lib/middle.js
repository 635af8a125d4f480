// Names that lose their middle where there is no room for all of them: "orders-2026…per-minute.v1".

import { h } from "./dom.js";

const SHORT_NAME = 10;
const NAME_END = 7;

/** A name that is cut in its middle where there is no room for it, as beginnings are alike and ends tell apart. */
export function middle(name) {
  const text = String(name);
  const letters = [...text];
  if (letters.length <= SHORT_NAME) return text;
  const seen = (part) => h("span", { "aria-hidden": "true", dataset: { part, seen: part } });
  // The name itself is there in one piece, to be found, copied and read out.
  const whole = h("span", { class: "visually-hidden" }, text);
  const begin = seen(letters.slice(0, -NAME_END).join(""));
  widths.observe(begin);
  return h("span", { class: "middle", title: text }, whole, begin, seen(letters.slice(-NAME_END).join("")));
}

/** Some names in a line, of which each keeps its end: those that there is room for, and how many there are beside. */
export function names(all, most = 2) {
  const more = all.length - most;
  const shown = all.slice(0, most).map((name, index) => [index > 0 && ", ", h("span", {}, middle(name))]);
  return h("span", { class: "names", title: all.join(", ") }, shown, more > 0 && ` and ${more} more`);
}

/** A browser cuts a text where a letter ends and leaves the rest of its place free, which would look like a space in the
 * name. So it is cut here, and the end put where the cut is: before anything of it is painted. */
const widths = new ResizeObserver((changed) => {
  const cuts = changed.map(({ target }) => ({ target, ...cutOf(target) }));
  for (const { target, seen, free } of cuts) {
    target.dataset.seen = seen;
    target.nextSibling.style.setProperty("transform", `translateX(${-free}px)`);
  }
});

const pen = document.createElement("canvas").getContext("2d");

/** As much of it as there is room for, and how much of the room is left then. */
function cutOf(begin) {
  const { part } = begin.dataset;
  const room = begin.getBoundingClientRect().width;
  if (begin.scrollWidth <= room + 1) return { seen: part, free: 0 };
  pen.font = getComputedStyle(begin).font;
  const letters = [...part];
  const textOf = (length) => `${letters.slice(0, length).join("")}…`;
  const widthOf = (length) => pen.measureText(textOf(length)).width;
  let [length, most] = [0, letters.length];
  while (length < most) {
    const tried = Math.ceil((length + most) / 2);
    if (widthOf(tried) <= room) length = tried;
    else most = tried - 1;
  }
  return { seen: textOf(length), free: Math.max(0, room - widthOf(length)) };
}
