// How far behind a group was, partition by partition: in the last hour as the node saw it, and since then as the console
// does.

import { at, get } from "../../lib/api.js";
import { History } from "../../lib/chart.js";

const KEPT_GROUPS = 20;
const HOUR_MS = 3_600_000;
/** Of a group with thousands of partitions only those that are furthest behind are remembered. */
const KEPT_PARTITIONS = 100;
const ALL = "all partitions";

const histories = new Map();

/** Kept when the user leaves and comes back, and then brought up to date; of the groups that were looked at, the last
 * ones. */
export function historyOf(groupId) {
  const history = histories.get(groupId) ?? new LagHistory();
  histories.delete(groupId);
  histories.set(groupId, history);
  if (histories.size > KEPT_GROUPS) histories.delete(histories.keys().next().value);
  history.begin(groupId);
  return history;
}

class LagHistory {
  constructor() {
    this.history = new History(HOUR_MS);
    this.worst = [];
  }

  /** What the node has measured all the time, while the console did only while somebody looked. */
  async begin(groupId) {
    const past = await get(at`groups/${groupId}/history`).catch(() => null);
    if (!past?.times_ms.length) return;
    // By the browser's clock, which need not be the node's.
    const times = past.times_ms.map((time) => time + Date.now() - past.at_ms);
    const line = (name, values) => {
      const since = (this.history.points.get(name) ?? []).filter(([time]) => time > times.at(-1));
      return [name, [...times.map((time, index) => [time, values[index]]), ...since]];
    };
    const lines = [line(ALL, past.lag), ...past.partitions.map((each) => line(nameOf(each), each.lag))];
    this.history.begin({ ...Object.fromEntries(this.history.points), ...Object.fromEntries(lines) });
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
