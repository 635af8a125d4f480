// All topics, found by name; make one.

import { all, get } from "../lib/api.js";
import { h, replace } from "../lib/dom.js";
import { ago, bytes, count, duration, rate } from "../lib/format.js";
import { agingWithStore, later } from "../lib/live.js";
import { below, button, middle, names, pageHead } from "../lib/page.js";
import { go, to } from "../lib/route.js";
import { table } from "../lib/table.js";
import { createTopic } from "./topics/create.js";

const PERIOD_MS = 15_000;
const ACTIVITY_MS = 5_000;
const FIRST_PAGE = 60;

const right = { align: "right" };
const NO_ACTIVITY = {};

/** What goes on in a topic is asked for by itself, and may not be known yet: a dash, which sorts before all. */
function activityColumn(name, title, show, { sort = (row) => row.activity[name], ...rest } = {}) {
  return { name, title, value: (row) => show(row.activity[name]), sort, ...right, ...rest };
}

const lastWrite = ({ last_write_ms: at }) => (at ? `written ${ago(at)}` : "");

const COLUMNS = [
  {
    name: "name",
    title: "Name",
    value: (topic) => [
      h("a", { href: to("topics", topic.name) }, middle(topic.name)),
      below(lastWrite(topic.activity)),
    ],
    sort: (topic) => topic.name,
  },
  {
    name: "partitions",
    title: "Partitions",
    value: (topic) => topic.partition_count,
    sort: true,
    narrow: false,
    width: "6.8rem",
    ...right,
  },
  activityColumn("records", "Records", count, { width: "clamp(5.2rem, 10vw, 7.5rem)" }),
  activityColumn("stored_bytes", "Size", bytes, { width: "clamp(5.9rem, 9vw, 7rem)" }),
  activityColumn("written_per_s", "Written", rate, { narrow: false, width: "7.5rem" }),
  activityColumn("read_per_s", "Read", rate, { narrow: false, width: "7.5rem" }),
  activityColumn("last_write_ms", "Last write", (at) => ago(at), { narrow: false, width: "9.6rem" }),
  activityColumn("groups", "Groups with commits", count, { narrow: false, width: "7.4rem" }),
  {
    name: "retention",
    title: "Kept for",
    value: (topic) => duration(topic.retention_ms),
    sort: (topic) => (topic.retention_ms < 0 ? Infinity : topic.retention_ms),
    narrow: false,
    width: "6.6rem",
    ...right,
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
  let listed = [];
  let activity = new Map();
  const draw = () => {
    const rows = listed.map((topic) => ({ ...topic, activity: activity.get(topic.name) ?? NO_ACTIVITY }));
    return topics.update(rows);
  };
  const unheard = h("p", { class: "muted", hidden: true });
  const old = agingWithStore(signal);
  const showState = ({ metadata_silent_since_ms: since, without }) => {
    old(since);
    unheard.hidden = without.length === 0;
    replace(unheard, "Records are without those of ", names(without), ", which this node has not heard since it started.");
  };
  const askActivity = async () => {
    const rows = await all("topic-activity", "topics", {}, signal, showState);
    activity = new Map(rows.map((row) => [row.name, row]));
    draw();
  };
  // The first screen comes with a short page, however many there are; the rest follow.
  const first = await get("topics", { limit: FIRST_PAGE }, signal);
  listed = first.topics;
  replace(root, pageHead({ title: "Topics", actions: [create] }), unheard, draw().element);
  if (first.next !== null) {
    listed = [...listed, ...(await all("topics", "topics", { after: first.next }, signal))];
    draw();
  }
  later(PERIOD_MS, signal, async () => {
    listed = await all("topics", "topics", {}, signal);
    draw();
  });
  // That it is not known is no reason to show no list; what is wrong with it is told by the next try.
  await askActivity().catch(() => {});
  later(ACTIVITY_MS, signal, askActivity);
}
