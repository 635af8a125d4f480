// What the cluster's page can do: let an agent give away what it leads, and say who leads a partition.

import { at, del, post, put } from "../../lib/api.js";
import { confirm, form, notify } from "../../lib/dialog.js";
import { h } from "../../lib/dom.js";
import { counted } from "../../lib/format.js";
import { choice, field } from "../../lib/page.js";

/** The order is kept in the metadata store, where the agent finds it if it is well. `others`: who could take over. */
export async function drain({ agent_id: agentId, partitions_led: led, answers, agent_group: group }, others) {
  const what = `the ${counted(led, "partition")} that it leads`;
  const now = others.length
    ? `${agentId} hands over ${what}, one by one, while clients go on, and leads nothing until it is started again.`
    : `No other agent of agent group ${group} is alive: ${what} stay with ${agentId} until it stops, and new partitions get no leader until an agent is started.`;
  const later = `${agentId} does not answer. The order is kept for it: it gives away ${what} when it goes on, and nothing until then. If it is started anew instead, the order is void.`;
  const isMute = answers === false;
  if (!(await confirm({ title: `Drain ${agentId}?`, text: isMute ? later : now, action: "Drain" }))) return;
  const done = isMute ? `${agentId} is to drain: it gives away what it leads when it answers again` : `${agentId} drains`;
  await told(post(at`agents/${agentId}/drain`, undefined), done);
}

/** Who may lead: live agents that answer; the one that leads it now may be named to keep it there. */
export async function move({ topic, partition, leader }, agents) {
  const name = `${topic}/${partition}`;
  const choose = choice(agents.map((agent) => [agent, agent]), agents.find((agent) => agent !== leader) ?? agents[0]);
  const text = `${leader ?? "Nobody"} leads it now. It is handed over soon, while clients go on, and stays with the agent that you choose for as long as that is alive, whatever the ring says.`;
  const done = await form({
    title: `Move ${name}`,
    body: [h("p", {}, text), field("To the agent", choose)],
    action: "Move",
    submit: () => put(at`topics/${topic}/partitions/${partition}/pin`, { agent_id: choose.value }),
  });
  if (done) notify(`${name} is to be led by ${choose.value}`);
}

export async function unpin({ topic, partition, pinned_to: pinned }) {
  const name = `${topic}/${partition}`;
  const text = `It is pinned to ${pinned}. From then on the ring says who leads it, and it may be handed over at once.`;
  if (!(await confirm({ title: `Let the ring decide on ${name}?`, text, action: "Let the ring decide" }))) return;
  await told(del(at`topics/${topic}/partitions/${partition}/pin`), `the ring decides who leads ${name}`);
}

async function told(call, done) {
  try {
    const answer = await call;
    notify(answer?.note ? `${done}; ${answer.note}` : done);
  } catch (problem) {
    notify(`${problem.message}${problem.hint ? `: ${problem.hint}` : ""}`, "bad");
  }
}
