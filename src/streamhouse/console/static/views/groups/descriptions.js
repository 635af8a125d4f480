// What only a group's coordinator and the leaders of what it reads know: members and lag. It is asked for of the groups
// that are looked at, a few at a time, and again after a while.

import { at, get } from "../../lib/api.js";
import { isSayable } from "../group/names.js";

const AT_ONCE = 4;
const KNOWN_FOR_MS = 10_000;

export class Descriptions {
  /** onNews(): once a frame, if there are any. */
  constructor(signal, onNews) {
    Object.assign(this, { signal, onNews, answers: new Map(), wanted: new Set(), underWay: new Set(), running: 0, frame: 0 });
  }

  /** For groups of which nothing is known yet; that of others is asked for again and again. */
  get isAsking() {
    const isFirst = (groupId) => this.of(groupId) === undefined;
    return [...this.wanted, ...this.underWay].some(isFirst);
  }

  /** As far as it is known; null if it was asked for in vain, undefined if it was not. */
  of(groupId) {
    return this.answers.get(groupId)?.description;
  }

  /** The same, for somebody who looks at it. */
  shown(groupId) {
    const known = this.answers.get(groupId);
    if (isSayable(groupId) && (!known || known.at < performance.now() - KNOWN_FOR_MS)) this.ask([groupId]);
    return known?.description;
  }

  ask(groupIds) {
    for (const groupId of groupIds) this.wanted.add(groupId);
    while (this.wanted.size && this.running < AT_ONCE && !this.signal.aborted) this.work();
  }

  async work() {
    this.running += 1;
    while (this.wanted.size && !this.signal.aborted) {
      const [groupId] = this.wanted;
      this.wanted.delete(groupId);
      this.underWay.add(groupId);
      this.answers.set(groupId, { description: this.of(groupId), at: Infinity }); // until it answers
      // One that was deleted in between, or whose coordinator is away, is not known; the others are.
      const description = await get(at`groups/${groupId}`, {}, this.signal).catch(() => null);
      this.answers.set(groupId, { description, at: performance.now() });
      this.underWay.delete(groupId);
      this.frame ||= requestAnimationFrame(() => this.tell());
    }
    this.running -= 1;
  }

  tell() {
    this.frame = 0;
    if (!this.signal.aborted) this.onNews();
  }
}
