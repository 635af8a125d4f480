// Who reads a topic: each group's lag in records and in time, whether it grows, and who of it reads which partition.

import { at, get } from "../../lib/api.js";
import { sparkline } from "../../lib/chart.js";
import { problemBox } from "../../lib/dialog.js";
import { h, replace } from "../../lib/dom.js";
import { count, counted, duration } from "../../lib/format.js";
import { agingWithStore, later } from "../../lib/live.js";
import { below, button, claim, middle } from "../../lib/page.js";
import { keepQuery, to } from "../../lib/route.js";
import { table } from "../../lib/table.js";

const PERIOD_MS = 5_000;
const MOST_GROUPS = 100;
const right = { align: "right" };
const TONES = { growing: "bad", falling: "good", steady: "muted" };

/** The element; it asks while it is seen. `chosen`: the group of which the partitions are shown, if any. */
export function consumers(topic, chosen, signal) {
  const note = h("p", { class: "muted" });
  const trouble = h("div");
  const groups = table({
    columns: GROUP_COLUMNS,
    key: (group) => group.group_id,
    onOpen: (group) => choose(group),
    label: "Consumers",
    empty: "No group has read this topic.",
  });
  const partitions = h("div");
  const element = h("div", { class: "page" }, note, trouble, groups.element, partitions);
  function choose(group) {
    chosen = group.group_id;
    keepQuery({ tab: "Consumers", group: chosen });
    showPartitions(group);
  }
  function showPartitions(group) {
    const shown = table({
      columns: partitionColumns(topic),
      rows: group.partitions,
      key: (each) => each.partition,
      label: `Partitions read by ${group.group_id}`,
    });
    replace(partitions, h("h2", {}, `What ${group.group_id} reads`), shown.element);
  }
  const old = agingWithStore(signal);
  const refresh = async () => {
    if (element.offsetParent === null) return old(null); // what is not shown is not old
    const found = [];
    let after = "";
    do {
      const answer = await get(at`topics/${topic}/consumers`, { limit: 20, after }, signal);
      old(answer.metadata_silent_since_ms);
      found.push(...answer.groups);
      after = answer.next;
    } while (after !== null && found.length < MOST_GROUPS);
    const more = after === null ? "" : `; those are the first ${MOST_GROUPS}`;
    note.textContent = `${counted(found.length, "group")}${more}. Time behind is the age of the next record to read, by the record's own time.`;
    replace(trouble);
    groups.update(found);
    const group = found.find((each) => each.group_id === chosen);
    if (group) showPartitions(group);
  };
  const show = () => refresh().catch((problem) => signal.aborted || replace(trouble, problemBox(problem)));
  // Seen when its tab is chosen, and not before.
  const watch = new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && show());
  watch.observe(element);
  signal.addEventListener("abort", () => watch.disconnect());
  later(PERIOD_MS, signal, refresh);
  element.prepend(h("div", { class: "bar" }, button("Look again", show)));
  return element;
}

const GROUP_COLUMNS = [
  {
    name: "group",
    title: "Group",
    value: (group) => [h("a", { href: to("groups", group.group_id) }, middle(group.group_id)), below(trendInWords(group))],
    sort: (group) => group.group_id,
  },
  { name: "state", title: "State", value: (group) => claim(group.state), sort: true, narrow: false, width: "9rem" },
  { name: "lag", title: "Lag", value: (group) => count(group.lag), sort: (group) => group.lag, width: "clamp(5rem, 9vw, 6.5rem)", ...right },
  {
    name: "time",
    title: "Time behind",
    value: (group) => duration(group.lag_ms),
    sort: (group) => group.lag_ms,
    width: "clamp(6.4rem, 10vw, 8rem)",
    ...right,
  },
  { name: "trend", title: "Trend", value: trendOf, sort: (group) => group.trend ?? "", width: "13rem", narrow: false },
  {
    name: "partitions",
    title: "Partitions",
    value: (group) => group.partitions.length,
    sort: true,
    narrow: false,
    width: "7rem",
    ...right,
  },
];

function trendInWords({ trend }) {
  return trend === null ? "trend not known yet" : claim(h("span", { class: TONES[trend] }, `lag ${trend}`));
}

function trendOf({ trend, lag_times_ms: times, lag_history: lags }) {
  if (trend === null) return h("span", { class: "muted" }, "not known yet");
  const points = times.map((time, index) => [time, lags[index]]);
  return [claim(h("span", { class: TONES[trend] }, trend)), sparkline(points, `Lag of the last hour, ${trend}`)];
}

const partitionColumns = (topic) => [
  {
    name: "partition",
    title: "Partition",
    value: (each) => h("a", { href: to("topics", topic, "messages", nextToRead(each)) }, String(each.partition)),
    sort: (each) => each.partition,
    width: "clamp(5.1rem, 9vw, 6.5rem)",
  },
  { name: "committed", title: "Committed", value: (each) => count(each.committed_offset), sort: (each) => each.committed_offset, ...right },
  { name: "end", title: "End", value: (each) => count(each.end_offset), sort: (each) => each.end_offset, narrow: false, ...right },
  { name: "lag", title: "Lag", value: (each) => count(each.lag), sort: (each) => each.lag, width: "clamp(5rem, 9vw, 8rem)", ...right },
  { name: "time", title: "Time behind", value: (each) => duration(each.lag_ms), sort: (each) => each.lag_ms, width: "clamp(6.2rem, 10vw, 8rem)", ...right },
  {
    name: "member",
    title: "Read by",
    value: (each) => (each.member_id === null ? h("span", { class: "muted" }, "nobody") : h("span", { title: each.member_id }, middle(each.client_id || each.member_id))),
    sort: (each) => each.client_id ?? "",
    narrow: false,
  },
];

function nextToRead({ partition, committed_offset: offset }) {
  return offset === null ? { partition } : { mode: "offset", partition, offset };
}
