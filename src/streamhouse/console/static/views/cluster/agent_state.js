// How an agent is: what the metadata store says of its heartbeats, and whether it answers the node that is asked.

import { h } from "../../lib/dom.js";
import { claim } from "../../lib/page.js";

export const STATE_KINDS = { live: "good", draining: "warn", silent: "bad", "no answer": "bad", "cut off": "bad" };

/** "no answer": its heartbeats are fresh, and it does not answer; "cut off": it answers, and its heartbeats come no more. */
export function stateOf({ state, answers }) {
  if (state === "silent") return answers === true ? "cut off" : state;
  return answers === false ? "no answer" : state;
}

const WHAT = {
  live: "its heartbeats come, and it answers",
  draining: "it gives away what it leads",
  silent: "no heartbeat for too long: taken for dead",
  "cut off": "it answers, but its heartbeats do not reach the metadata store",
};

export function stateTag(agent) {
  const state = stateOf(agent);
  const title = state === "no answer" ? `does not answer: ${agent.unanswered_why}` : WHAT[state];
  return claim(h("span", { class: `tag ${STATE_KINDS[state]}`, title }, state));
}
