// How an agent is: what the metadata store says of its heartbeats, and whether it answers the node that is asked.

import { h } from "../../lib/dom.js";
import { claim } from "../../lib/page.js";

const NO_ANSWER = "no answer";
const MUTE_DRAIN = "draining, no answer";
export const STATE_KINDS = { live: "good", draining: "warn", silent: "bad", [NO_ANSWER]: "bad", [MUTE_DRAIN]: "bad", "cut off": "bad" };

/** "no answer": its heartbeats are fresh, and it does not answer; "cut off": it answers, and its heartbeats come no more. */
export function stateOf({ state, answers }) {
  if (state === "silent") return answers === true ? "cut off" : state;
  if (answers !== false) return state;
  return state === "draining" ? MUTE_DRAIN : NO_ANSWER;
}

const WHAT = {
  live: "its heartbeats come, and it answers",
  draining: "it gives away what it leads",
  silent: "no heartbeat for too long: taken for dead",
  "cut off": "it answers, but its heartbeats do not reach the metadata store",
};

export function stateTag(agent) {
  const state = stateOf(agent);
  const isMute = state === NO_ANSWER || state === MUTE_DRAIN;
  const title = isMute ? `does not answer: ${agent.unanswered_why}` : WHAT[state];
  return claim(h("span", { class: `tag ${STATE_KINDS[state]}`, title }, state));
}
