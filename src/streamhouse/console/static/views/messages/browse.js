// Stored messages, a page at a time. A search looks at so many records a request, so it may take several to find some.

import { at, get, url } from "../../lib/api.js";

const PAGE = 200;
const MOST_ROUNDS = 20;
// As text even if it is JSON: parsed here, its numbers would be rounded.
const SHOWN_AS = { key_format: "text", value_format: "text" };

/** page(from) → {records, scanned, tooLong, unreadable, next}: from null at first, then from the `next` of a page, which
 * is null at the end. */
export function browse(topic, asked, signal) {
  return asked.mode === "offset" ? fromOffset(topic, asked, signal) : search(topic, asked, signal);
}

/** All that a search finds, as a file; null if it is none. */
export function downloadAddress(topic, asked, format) {
  if (asked.mode === "offset") return null;
  return url(at`topics/${topic}/messages/download`, { ...questionOf(asked), format });
}

function questionOf({ mode, partition, from, to, key, field, equals, contains, where, columns }) {
  const order = mode === "newest" ? "newest" : "oldest";
  return { partition, key, field, equals, contains, where, order, from_ms: from, to_ms: to, fields: columns };
}

function search(topic, asked, signal) {
  const question = { ...SHOWN_AS, ...questionOf(asked) };
  return async (from) => {
    const found = { records: [], scanned: 0, tooLong: 0, unreadable: [], next: from };
    for (let round = 0; round < MOST_ROUNDS && found.records.length < PAGE; round += 1) {
      const limit = PAGE - found.records.length;
      const answer = await get(at`topics/${topic}/messages`, { ...question, limit, next: found.next }, signal);
      found.records.push(...answer.records);
      found.scanned += answer.scanned_records;
      found.tooLong += answer.too_long;
      found.unreadable.push(...answer.unreadable);
      found.next = answer.next;
      if (found.next === null) break;
    }
    return found;
  };
}

function fromOffset(topic, { partition, offset }, signal) {
  return async (from) => {
    const answer = await get(
      at`topics/${topic}/partitions/${partition}/records`,
      { ...SHOWN_AS, offset: from ?? offset, limit: PAGE },
      signal,
    );
    const isEnd = answer.next_offset >= answer.high_watermark;
    const { records } = answer;
    return { records, scanned: records.length, tooLong: 0, unreadable: [], next: isEnd ? null : answer.next_offset };
  };
}
