// How far behind a group was, partition by partition, for as long as the console has watched it.

import { History } from "../../lib/chart.js";

const KEPT_GROUPS = 20;
const SPAN_MS = 900_000;
/** Of a group with thousands of partitions only those that are furthest behind are remembered. */
const KEPT_PARTITIONS = 100;
const ALL = "all partitions";

const histories = new Map();

/** Kept when the user leaves and comes back; of the groups that were looked at, the last ones. */
export function historyOf(groupId) {
  const history = histories.get(groupId) ?? new LagHistory();
  histories.delete(groupId);
  histories.set(groupId, history);
  if (histories.size > KEPT_GROUPS) histories.delete(histories.keys().next().value);
  return history;
}

class LagHistory {
  constructor() {
    this.history = new History(SPAN_MS);
    this.worst = [];
  }

  add(group, most) {
    const behind = [...group.partitions].sort((one, other) => (other.lag ?? -1) - (one.lag ?? -1));
    for (const each of behind.slice(0, KEPT_PARTITIONS)) this.history.add(nameOf(each), each.lag);
    this.history.add(ALL, group.lag);
    this.worst = behind.slice(0, most).map(nameOf).sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  }

  ofAll() {
    return this.history.series(ALL);
  }

  /** Of those that are furthest behind now. */
  ofPartitions() {
    return this.worst.length > 0 ? this.history.series(...this.worst) : [];
  }
}

const nameOf = ({ topic, partition }) => `${topic}/${partition}`;
