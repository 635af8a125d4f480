// The live tail: what arrives is gathered and shown a few times a second, so that thousands of records a second leave the
// page free for the person. The newest are kept, the others only counted.

import { at, get, Problem, url } from "../../lib/api.js";
import { passedOver } from "./unreadable.js";

const KEPT = 1_000;
const SHOW_MS = 250;
const REFUSAL_MS = 5_000;

export class Tail {
  /** onNews({records: newest first, received}), onState(text), onTrouble(problem): `start` begins. */
  constructor(topic, { partition, key, field, equals, contains, where }, { onNews, onState, onTrouble }, signal) {
    const filters = { key, field, equals, contains, where };
    const query = { key_format: "text", value_format: "text", partitions: partition, ...filters };
    Object.assign(this, { topic, query, onNews, onState, onTrouble, signal });
    Object.assign(this, { waiting: [], kept: [], received: 0, positions: null, timer: 0, isRunning: false, source: null });
    signal.addEventListener("abort", () => this.stop());
  }

  /** On from where it stopped, if it did. */
  async start() {
    this.isRunning = true;
    this.onState("connecting…");
    try {
      const begin = this.positions ?? (await endsOf(this.topic, this.query.partitions, this.signal));
      this.positions ??= begin;
    } catch (problem) {
      return this.fail(problem);
    }
    // Meanwhile somebody may have paused it, and even let it go on.
    if (this.isRunning && this.source === null) this.connect();
  }

  connect() {
    const asked = [at`topics/${this.topic}/stream`, { ...this.query, positions: this.positions }];
    const source = new EventSource(url(...asked));
    source.onopen = () => this.onState("live");
    source.onmessage = (event) => this.receive(event);
    source.onerror = () => {
      if (source.readyState === EventSource.CONNECTING) return this.onState("connecting again…");
      this.stop("ended");
      return this.explain(asked);
    };
    source.addEventListener("unreadable", (event) => this.passOver(event));
    source.addEventListener("problem", (event) => this.fail(new Problem(JSON.parse(event.data))));
    this.source = source;
  }

  stop(state = "paused") {
    this.source?.close();
    this.source = null;
    this.isRunning = false;
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.signal.aborted) return;
    this.show();
    this.onState(state);
  }

  receive(event) {
    this.positions = event.lastEventId;
    this.received += 1;
    this.waiting.push(event.data);
    if (this.waiting.length > 2 * KEPT) this.waiting.splice(0, KEPT);
    this.timer ||= setTimeout(() => this.show(), SHOW_MS);
  }

  passOver(event) {
    this.positions = event.lastEventId;
    this.onTrouble(passedOver(JSON.parse(event.data)));
  }

  show() {
    this.timer = 0;
    const fresh = this.waiting
      .splice(0)
      .slice(-KEPT)
      .map((data) => JSON.parse(data))
      .reverse();
    this.kept = [...fresh, ...this.kept].slice(0, KEPT);
    this.onNews({ records: this.kept, received: this.received });
  }

  fail(problem) {
    if (this.signal.aborted) return;
    this.stop("ended");
    this.onTrouble(problem);
  }

  /** A stream that is refused does not say why: asked once more, the node does, unless it is not refused any more. */
  async explain(asked) {
    const enough = AbortSignal.any([this.signal, AbortSignal.timeout(REFUSAL_MS)]);
    const problem = await get(...asked, enough).catch((failure) => failure);
    if (problem instanceof Problem && !this.isRunning) this.onTrouble(problem);
  }
}

/** Where the log ends now, as the stream's positions: a tail that is paused before its first record goes on from here. */
async function endsOf(topic, partition, signal) {
  const asked = partition === "" ? {} : { limit: 1, after: Number(partition) - 1 };
  const { partitions } = await get(at`topics/${topic}/partitions`, asked, signal);
  return partitions.map((each) => `${each.partition}:${each.high_watermark}`).join(",");
}
