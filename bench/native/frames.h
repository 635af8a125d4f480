/* Prebuilt Produce v7 requests from a file, and the check of their answers. */
#ifndef BENCH_FRAMES_H
#define BENCH_FRAMES_H

#include "wire.h"

enum { CORRELATION = 8 }; /* where a frame has its correlation id: after length, API key and version */

struct frames { uint8_t *at; size_t *starts, count, largest; };

static inline size_t frame_size(const struct frames *frames, size_t index) {
    return frames->starts[index + 1] - frames->starts[index];
}

static inline struct frames load_frames(const char *path) {
    struct frames f = {0};
    FILE *file = fopen(path, "rb");
    if (!file) die(path);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    f.at = must_alloc(malloc(size));
    if (fread(f.at, 1, size, file) != size) die(path);
    fclose(file);
    for (size_t at = 0; at < size; at = f.starts[f.count]) {
        f.starts = must_alloc(realloc(f.starts, (f.count + 2) * sizeof *f.starts));
        f.starts[f.count++] = at;
        f.starts[f.count] = at + 4 + get32(f.at + at);
        if (frame_size(&f, f.count - 1) > f.largest) f.largest = frame_size(&f, f.count - 1);
    }
    return f;
}

static inline void check_produced(const uint8_t *answer, uint32_t correlation) {
    if (get32(answer) != correlation) { fprintf(stderr, "answers out of order\n"); exit(1); }
    const uint8_t *partition = answer + 8 + 2 + get16(answer + 8) + 4;
    if (get16(partition + 4)) { fprintf(stderr, "produce error %d\n", (int16_t)get16(partition + 4)); exit(1); }
}

#endif
