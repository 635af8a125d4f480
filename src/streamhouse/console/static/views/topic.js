// One topic: its partitions with who leads them and how far they are, and its configuration.

import { at, del, get } from "../lib/api.js";
import { confirm, notify } from "../lib/dialog.js";
import { h, replace } from "../lib/dom.js";
import { count, time } from "../lib/format.js";
import { every } from "../lib/live.js";
import { button, claim, facts, names, pageHead, tabs } from "../lib/page.js";
import { go, stepQuery, to } from "../lib/route.js";
import { produceRecord } from "./messages/produce.js";
import { configuration } from "./topic/configuration.js";
import { consumers } from "./topic/consumers.js";
import { addPartitions } from "./topic/growth.js";
import { partitionTable } from "./topic/partitions.js";

const PERIOD_MS = 3_000;
const FIRST_TAB = "Partitions";

export async function render(root, { topic: name, query }, signal) {
  const topic = await get(at`topics/${name}`, {}, signal);
  const partitions = partitionTable(name, signal);
  const kept = h("span");
  const leaderless = h("span");
  const partitionCount = h("span", {}, count(topic.partition_count));
  replace(
    root,
    pageHead({ title: name, crumbs: [["Topics", to("topics")]], actions: actions(topic) }),
    h(
      "div",
      { class: "card" },
      facts([
        ["Partitions", partitionCount],
        ["Records", kept],
        ["Without a leader", leaderless],
        ["Created", time(topic.created_at_ms)],
        ["Id", h("code", {}, topic.topic_id)],
      ]),
    ),
    tabs(
      "Parts of the topic",
      {
        [FIRST_TAB]: partitions.element,
        Consumers: consumers(name, query.get("group"), signal),
        Configuration: configuration(topic, signal),
      },
      { chosen: query.get("tab"), onChoose: (tab) => stepQuery({ tab: tab === FIRST_TAB ? null : tab }) },
    ),
  );
  await every(PERIOD_MS, signal, async () => {
    const rows = await partitions.refresh();
    partitionCount.textContent = count(rows.length);
    showKept(kept, rows);
    const missing = rows.filter((row) => row.leader === null).length;
    replace(leaderless, missing ? h("span", { class: "bad" }, count(missing)) : claim(h("span", { class: "good" }, "0")));
  });
}

function showKept(element, rows) {
  const records = count(rows.reduce((sum, row) => sum + row.high_watermark - row.log_start_offset, 0));
  const unheard = [...new Set(rows.map((row) => row.unheard))].filter((agent) => agent !== null);
  replace(element, records, unheard.length > 0 && [" · without ", names(unheard)]);
}

function actions(topic) {
  return [
    h("a", { class: "button primary", href: to("topics", topic.name, "messages") }, "Messages"),
    button("Produce", () => produceRecord(topic.name, topic.partition_count)),
    button("Add partitions", () => addPartitions(topic.name)),
    button("Delete", () => deleteTopic(topic.name)),
  ];
}

async function deleteTopic(name) {
  const isMeant = await confirm({
    title: `Delete topic ${name}?`,
    text: "All its records go with it, and cannot be brought back.",
    typeToConfirm: name,
    action: "Delete topic",
  });
  if (!isMeant) return;
  try {
    await del(at`topics/${name}`);
    notify(`Topic ${name} was deleted.`);
    go("topics");
  } catch (problem) {
    notify(problem.message, "bad");
  }
}
