// Stored messages, a page at a time. A search looks at so many records a request, so it may take several to find some.

import { at, get } from "../../lib/api.js";

const PAGE = 200;
const MOST_ROUNDS = 20;
// As text even if it is JSON: parsed here, its numbers would be rounded.
const SHOWN_AS = { key_format: "text", value_format: "text" };

/** next() → {records, scanned, unreadable, isEnd}, as often as one likes. */
export function browse(topic, asked, signal) {
  return asked.mode === "offset" ? fromOffset(topic, asked, signal) : search(topic, asked, signal);
}

function search(topic, { mode, partition, time, key, field, equals }, signal) {
  const order = mode === "newest" ? "newest" : "oldest";
  const query = {
    ...SHOWN_AS,
    partition,
    key,
    field,
    equals,
    order,
    limit: PAGE,
    from_ms: time && new Date(time).getTime(),
  };
  let from = null;
  return async () => {
    const found = { records: [], scanned: 0, unreadable: [], isEnd: false };
    for (let round = 0; round < MOST_ROUNDS && !found.isEnd && found.records.length < PAGE; round += 1) {
      const answer = await get(at`topics/${topic}/messages`, { ...query, next: from }, signal);
      found.records.push(...answer.records);
      found.scanned += answer.scanned_records;
      found.unreadable.push(...answer.unreadable);
      from = answer.next;
      found.isEnd = from === null;
    }
    return found;
  };
}

function fromOffset(topic, { partition, offset }, signal) {
  let from = offset;
  return async () => {
    const answer = await get(
      at`topics/${topic}/partitions/${partition}/records`,
      { ...SHOWN_AS, offset: from, limit: PAGE },
      signal,
    );
    from = answer.next_offset;
    return {
      records: answer.records,
      scanned: answer.records.length,
      unreadable: [],
      isEnd: answer.next_offset >= answer.high_watermark,
    };
  };
}
