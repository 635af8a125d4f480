// The state of a group, in its colour.

import { h } from "../../lib/dom.js";

const KINDS = { Stable: "good", Dead: "bad", Empty: "muted" };

export function groupState(state) {
  return h("span", { class: `tag ${KINDS[state] ?? "warn"}` }, state);
}
