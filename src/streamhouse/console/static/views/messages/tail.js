// The live tail: what arrives is gathered and shown a few times a second, so that thousands of records a second leave the
// page free for the person. The newest are kept, the others only counted.

import { at, Problem, url } from "../../lib/api.js";

const KEPT = 1_000;
const SHOW_MS = 250;

export class Tail {
  /** onNews({records: newest first, received}), onState(text) */
  constructor(topic, { partition, key, field, equals }, { onNews, onState }, signal) {
    const query = { key_format: "text", value_format: "text", partitions: partition, key, field, equals };
    Object.assign(this, {
      topic,
      query,
      onNews,
      onState,
      signal,
      waiting: [],
      kept: [],
      received: 0,
      positions: null,
      timer: 0,
    });
    signal.addEventListener("abort", () => this.stop());
    this.start();
  }

  get isRunning() {
    return this.source !== null;
  }

  /** On from where it stopped, if it did. */
  start() {
    this.source = new EventSource(url(at`topics/${this.topic}/stream`, { ...this.query, positions: this.positions }));
    this.source.onopen = () => this.onState("live");
    this.source.onmessage = (event) => this.receive(event);
    this.source.onerror = () =>
      this.onState(this.source?.readyState === EventSource.CONNECTING ? "connecting again…" : "ended");
    this.source.addEventListener("problem", (event) => this.fail(new Problem(JSON.parse(event.data))));
  }

  stop() {
    this.source?.close();
    this.source = null;
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.signal.aborted) this.show();
  }

  receive(event) {
    this.positions = event.lastEventId;
    this.received += 1;
    this.waiting.push(event.data);
    if (this.waiting.length > 2 * KEPT) this.waiting.splice(0, KEPT);
    this.timer ||= setTimeout(() => this.show(), SHOW_MS);
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
    this.stop();
    this.onState(problem.message);
  }
}
