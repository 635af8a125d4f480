/* One small fetch at a time, at given offsets of partition 0: how long a server takes to find them.
 *
 *   lookup HOST PORT TOPIC OFFSETS PASSES
 *
 * OFFSETS is comma-separated. The first pass is reported apart: nothing was in a cache yet.
 */
#include "wire.h"
#include "fetching.h"

static int64_t found;

static void on_found(struct fetcher *f, int64_t first, int64_t next) {
    (void)first;
    if (next > f->offset && found < 0) found = next;
}

int main(int argc, char **argv) {
    if (argc != 6) { fprintf(stderr, "usage: lookup HOST PORT TOPIC OFFSETS PASSES\n"); return 2; }
    struct fetch_limits limits = {.max_wait_ms = 100, .max_bytes = 1};
    static struct fetcher fetcher;
    static uint8_t scratch[SCRATCH_BYTES];
    static int64_t offsets[65536];
    struct samples first_pass = {0}, later_passes = {0};
    int count = 0;
    for (char *part = strtok(argv[4], ","); part; part = strtok(NULL, ",")) offsets[count++] = atoll(part);
    fetcher.fd = connect_to(argv[1], atoi(argv[2]));
    for (int pass = 0; pass < atoi(argv[5]); pass++)
        for (int i = 0; i < count; i++) {
            int64_t start = now_ns(), done = 0;
            fetcher.offset = offsets[i];
            found = -1;
            send_fetch(&fetcher, argv[3], limits);
            while (!done) {
                ssize_t n = recv(fetcher.fd, scratch, sizeof scratch, 0);
                if (n <= 0) die("the server closed the connection");
                done = take_response(&fetcher, scratch, (size_t)n, on_found);
            }
            if (found < 0) { fprintf(stderr, "nothing at offset %ld\n", (long)offsets[i]); return 1; }
            add_sample(pass ? &later_passes : &first_pass, now_ns() - start);
        }
    printf("{");
    print_latencies("first", &first_pass);
    printf(", ");
    print_latencies("later", &later_passes);
    printf("}\n");
    return 0;
}
