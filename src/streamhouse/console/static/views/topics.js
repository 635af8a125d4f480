// All topics, found by name; make one.

import { all, get } from "../lib/api.js";
import { h, replace } from "../lib/dom.js";
import { duration, time } from "../lib/format.js";
import { later } from "../lib/live.js";
import { button, pageHead } from "../lib/page.js";
import { go, to } from "../lib/route.js";
import { table } from "../lib/table.js";
import { createTopic } from "./topics/create.js";

const PERIOD_MS = 15_000;
const FIRST_PAGE = 60;

const COLUMNS = [
  {
    name: "name",
    title: "Name",
    value: (topic) => h("a", { href: to("topics", topic.name), class: "break", title: topic.name }, topic.name),
    sort: (topic) => topic.name,
    width: "40%",
  },
  { name: "partitions", title: "Partitions", value: (topic) => topic.partition_count, sort: true, align: "right" },
  { name: "cleanup", title: "Cleanup", value: (topic) => topic.cleanup_policy, sort: true, narrow: false },
  {
    name: "retention",
    title: "Kept for",
    value: (topic) => duration(topic.retention_ms),
    sort: (topic) => (topic.retention_ms < 0 ? Infinity : topic.retention_ms),
    align: "right",
  },
  {
    name: "created",
    title: "Created",
    value: (topic) => time(topic.created_at_ms).slice(0, 16),
    sort: (topic) => topic.created_at_ms,
    align: "right",
    narrow: false,
  },
];

export async function render(root, params, signal) {
  const topics = table({
    columns: COLUMNS,
    key: (topic) => topic.name,
    filter: (topic) => topic.name,
    onOpen: (topic) => go("topics", topic.name),
    label: "Topics",
    empty: "There are no topics yet: create one.",
  });
  const create = button(
    "Create topic",
    async () => {
      const name = await createTopic();
      if (name !== null) go("topics", name);
    },
    "primary",
  );
  // The first screen comes with a short page, however many there are; the rest follow.
  const first = await get("topics", { limit: FIRST_PAGE }, signal);
  replace(root, pageHead({ title: "Topics", actions: [create] }), topics.update(first.topics).element);
  if (first.next !== null)
    topics.update([...first.topics, ...(await all("topics", "topics", { after: first.next }, signal))]);
  later(PERIOD_MS, signal, async () => topics.update(await all("topics", "topics", {}, signal)));
}
