/* Raw fetches that follow the log and drop the records: how many bytes a server hands out in a second.
 *
 *   fetch HOST PORT TOPIC END_OFFSETS READERS MAX_BYTES SECONDS
 *
 * END_OFFSETS is a comma-separated end per partition; each partition is read by READERS connections. With SECONDS of
 * 0 every reader reads its partition once; otherwise readers begin again at 0 until the time is over.
 */
#include "wire.h"
#include "fetching.h"
#include <sys/epoll.h>

static void ignore_batch(struct fetcher *f, int64_t first, int64_t next) { (void)f; (void)first; (void)next; }

static int64_t ends[65536];

static int parse_ends(char *text) {
    int count = 0;
    for (char *part = strtok(text, ","); part; part = strtok(NULL, ",")) ends[count++] = atoll(part);
    return count;
}

int main(int argc, char **argv) {
    if (argc != 8) { fprintf(stderr, "usage: fetch HOST PORT TOPIC ENDS READERS MAX_BYTES SECONDS\n"); return 2; }
    int partitions = parse_ends(argv[4]), readers = atoi(argv[5]), active = 0;
    struct fetch_limits limits = {.max_wait_ms = 100, .max_bytes = atoi(argv[6])};
    struct fetcher *all = must_alloc(calloc((size_t)(partitions * readers), sizeof *all));
    uint8_t *scratch = must_alloc(malloc(SCRATCH_BYTES));
    int poller = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < partitions * readers; i++) {
        all[i].fd = connect_to(argv[1], atoi(argv[2]));
        all[i].partition = i % partitions;
        all[i].end = ends[i % partitions];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        set_nonblocking(all[i].fd);
        epoll_ctl(poller, EPOLL_CTL_ADD, all[i].fd, &event);
        active++;
    }
    int64_t start = now_ns(), stop = start + (int64_t)(atof(argv[7]) * 1e9);
    for (int i = 0; i < active; i++) send_fetch(&all[i], argv[3], limits);
    while (active) {
        struct epoll_event events[64];
        int ready = epoll_wait(poller, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            struct fetcher *f = events[i].data.ptr;
            ssize_t n = recv(f->fd, scratch, SCRATCH_BYTES, 0);
            if (n < 0 && errno == EAGAIN) continue;
            if (n <= 0) die("the server closed a connection");
            if (!take_response(f, scratch, (size_t)n, ignore_batch)) continue;
            if (stop > start && f->offset >= f->end) f->offset = 0;
            if (stop > start ? now_ns() < stop : f->offset < f->end) send_fetch(f, argv[3], limits);
            else active--;
        }
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    uint64_t bytes = 0, records = 0, responses = 0;
    for (int i = 0; i < partitions * readers; i++) {
        bytes += all[i].bytes;
        records += all[i].records;
        responses += all[i].responses;
    }
    printf("{\"bytes\": %lu, \"records\": %lu, \"responses\": %lu, \"seconds\": %.4f}\n", (unsigned long)bytes,
           (unsigned long)records, (unsigned long)responses, seconds);
    return 0;
}
