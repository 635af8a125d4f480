// The state of a group, in its colour.

import { h } from "../../lib/dom.js";
import { claim } from "../../lib/page.js";

const KINDS = { Stable: "good", Dead: "bad", Empty: "muted" };

export function groupState(state) {
  return claim(h("span", { class: `tag ${KINDS[state] ?? "warn"}` }, state));
}
