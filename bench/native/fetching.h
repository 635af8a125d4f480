/* Fetch v11: writes a request, and walks a response as it streams in, keeping nothing of the records. */
#ifndef BENCH_FETCHING_H
#define BENCH_FETCHING_H

#include "wire.h"

enum { BATCH_HEADER = 61, SCRATCH_BYTES = 1 << 20 };
enum stage { SIZE, TOPIC_NAME, PARTITION, RECORDS_SIZE, BATCH, SKIP };

struct fetch_limits { int max_wait_ms, max_bytes; };

/* One partition read by one connection, with one request unanswered. */
struct fetcher {
    int fd, partition;
    int64_t offset, end;
    enum stage stage;
    size_t have, need, skip, left_in_frame, left_in_records;
    uint64_t bytes, records, responses;
    uint8_t head[64 << 10];
};

typedef void on_batch(struct fetcher *fetcher, int64_t first, int64_t next);

static inline void send_fetch(struct fetcher *f, const char *topic, struct fetch_limits limits) {
    uint8_t frame[1024], *p = put16(put16(frame + 4, 1), 11);
    p = put_string(put32(p, 0), "bench");
    p = put32(put32(put32(put32(p, UINT32_MAX), (uint32_t)limits.max_wait_ms), 1), (uint32_t)limits.max_bytes);
    p = put32(put32(put8(p, 0), 0), UINT32_MAX); /* read uncommitted; no session */
    p = put32(put_string(put32(p, 1), topic), 1);
    p = put64(put32(put32(p, (uint32_t)f->partition), UINT32_MAX), (uint64_t)f->offset);
    p = put32(put64(p, UINT64_MAX), (uint32_t)limits.max_bytes);
    p = put_string(put32(p, 0), "");
    put32(frame, (uint32_t)(p - frame - 4));
    if (send(f->fd, frame, (size_t)(p - frame), MSG_NOSIGNAL) != p - frame) die("send fetch");
    f->stage = SIZE;
    f->have = 0;
    f->need = 4;
    f->left_in_frame = 4;
}

static inline void expect(struct fetcher *f, enum stage stage, size_t need) {
    f->stage = stage;
    f->need = need;
    f->have = 0;
}

static inline void skip_rest(struct fetcher *f) {
    f->stage = SKIP;
    f->skip = f->left_in_frame;
}

static inline void expect_batch(struct fetcher *f) {
    if (f->left_in_records >= BATCH_HEADER) expect(f, BATCH, BATCH_HEADER);
    else skip_rest(f);
}

/* The head of one stage is complete: read it and say what comes next. */
static inline void advance(struct fetcher *f, on_batch *seen) {
    const uint8_t *head = f->head;
    switch (f->stage) {
    case SIZE:
        f->left_in_frame = get32(head);
        expect(f, TOPIC_NAME, 4 + 4 + 2 + 4 + 4 + 2); /* correlation, throttle, error, session, topics, name length */
        break;
    case TOPIC_NAME:
        if (get16(head + 8)) { fprintf(stderr, "fetch error %d\n", (int16_t)get16(head + 8)); exit(1); }
        if (!get32(head + 14)) { skip_rest(f); break; }
        expect(f, PARTITION, get16(head + 18) + (size_t)(4 + 4 + 2 + 8 + 8 + 8 + 4));
        break;
    case PARTITION: {
        const uint8_t *fixed = head + f->need - 38;
        if (get16(fixed + 8)) { fprintf(stderr, "partition error %d\n", (int16_t)get16(fixed + 8)); exit(1); }
        uint32_t aborted = get32(fixed + 34) == UINT32_MAX ? 0 : get32(fixed + 34);
        expect(f, RECORDS_SIZE, 16 * (size_t)aborted + 4 + 4);
        break;
    }
    case RECORDS_SIZE: {
        uint32_t size = get32(head + f->need - 4);
        f->left_in_records = size == UINT32_MAX ? 0 : size;
        expect_batch(f);
        break;
    }
    case BATCH: {
        size_t size = 12 + (size_t)get32(head + 8);
        f->left_in_records -= BATCH_HEADER;
        if (size - BATCH_HEADER > f->left_in_records) { skip_rest(f); break; } /* cut by max_bytes */
        int64_t first = (int64_t)get64(head), next = first + (int32_t)get32(head + 23) + 1;
        f->bytes += size;
        f->records += get32(head + 57);
        if (next > f->offset) { seen(f, first, next); f->offset = next; }
        f->stage = SKIP;
        f->skip = size - BATCH_HEADER;
        f->left_in_records -= f->skip;
        break;
    }
    case SKIP:
        break;
    }
}

/* Takes what was received; true when the response is complete. */
static inline int take_response(struct fetcher *f, const uint8_t *data, size_t size, on_batch *seen) {
    while (size || (f->stage == SKIP && !f->skip)) {
        size_t step;
        if (f->stage == SKIP) {
            step = size < f->skip ? size : f->skip;
            f->skip -= step;
        } else {
            step = size < f->need - f->have ? size : f->need - f->have;
            memcpy(f->head + f->have, data, step);
            f->have += step;
        }
        data += step;
        size -= step;
        f->left_in_frame -= step;
        if (f->stage != SKIP) {
            if (f->have == f->need) advance(f, seen);
        } else if (!f->skip) {
            if (!f->left_in_frame) { f->responses++; return 1; }
            expect_batch(f);
        }
    }
    return 0;
}

#endif
