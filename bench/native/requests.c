/* Small produce requests in a closed loop: how many a server acknowledges in a second.
 *
 *   requests HOST PORT FRAMES CONNECTIONS IN_FLIGHT WARM_UP_SECONDS SECONDS [REQUESTS]
 *
 * FRAMES is a file of prebuilt Produce v7 requests, each with its length prefix; the connections walk through them.
 * Every connection keeps IN_FLIGHT requests unanswered; what one read answered is replaced with one write. With
 * REQUESTS it ends as soon as that many are acknowledged, which is how a log is filled.
 */
#include "frames.h"
#include "wire.h"
#include <sys/epoll.h>

enum { IN_BYTES = 64 << 10 };

struct connection {
    int fd, wants_out;
    uint32_t next_sent, next_answered;
    size_t frame, in_used, out_used, out_sent;
    int64_t *sent_at;
    uint8_t in[IN_BYTES], *out;
};

static struct frames frames;
static int in_flight;
static struct samples latencies;
static uint64_t sent, answered, acknowledged, wanted = UINT64_MAX;
static int64_t measure_from;

static void flush_out(struct connection *c, int poller, int index) {
    while (c->out_sent < c->out_used) {
        ssize_t n = send(c->fd, c->out + c->out_sent, c->out_used - c->out_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) die("send");
        c->out_sent += (size_t)n;
    }
    int pending = c->out_sent < c->out_used;
    if (!pending) c->out_used = c->out_sent = 0;
    struct epoll_event event = {.events = EPOLLIN | (pending ? EPOLLOUT : 0), .data.u32 = (uint32_t)index};
    if (c->wants_out != pending) epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
    c->wants_out = pending;
}

static void add_request(struct connection *c, int64_t now) {
    if (sent == wanted) return;
    sent++;
    size_t size = frame_size(&frames, c->frame);
    if (c->out_used + size > (size_t)in_flight * frames.largest) { /* a partly sent request is still at the front */
        memmove(c->out, c->out + c->out_sent, c->out_used - c->out_sent);
        c->out_used -= c->out_sent;
        c->out_sent = 0;
    }
    memcpy(c->out + c->out_used, frames.at + frames.starts[c->frame], size);
    put32(c->out + c->out_used + CORRELATION, c->next_sent);
    c->out_used += size;
    c->sent_at[c->next_sent++ % (uint32_t)in_flight] = now;
    c->frame = (c->frame + 1) % frames.count;
}

static int take_answers(struct connection *c, int64_t now) {
    ssize_t n = recv(c->fd, c->in + c->in_used, sizeof c->in - c->in_used, 0);
    if (n < 0 && errno == EAGAIN) return 0;
    if (n <= 0) die("the server closed a connection");
    c->in_used += (size_t)n;
    size_t start = 0;
    int count = 0;
    while (c->in_used - start >= 4 && c->in_used - start >= 4 + (size_t)get32(c->in + start)) {
        check_produced(c->in + start + 4, c->next_answered);
        start += 4 + get32(c->in + start);
        if (now >= measure_from) {
            add_sample(&latencies, now - c->sent_at[c->next_answered % (uint32_t)in_flight]);
            acknowledged++;
        }
        c->next_answered++;
        answered++;
        count++;
    }
    c->in_used -= start;
    memmove(c->in, c->in + start, c->in_used);
    return count;
}

int main(int argc, char **argv) {
    if (argc != 8 && argc != 9) { fprintf(stderr, "usage: requests HOST PORT FRAMES CONNECTIONS IN_FLIGHT WARM_UP SECONDS [REQUESTS]\n"); return 2; }
    frames = load_frames(argv[3]);
    int count = atoi(argv[4]);
    in_flight = atoi(argv[5]);
    if (argc == 9) wanted = strtoull(argv[8], NULL, 10);
    struct connection *all = must_alloc(calloc((size_t)count, sizeof *all));
    int poller = epoll_create1(EPOLL_CLOEXEC);
    int64_t start = now_ns();
    measure_from = start + (int64_t)(atof(argv[6]) * 1e9);
    int64_t end = measure_from + (int64_t)(atof(argv[7]) * 1e9), now = start;
    for (int i = 0; i < count; i++) {
        struct connection *c = &all[i];
        c->fd = connect_to(argv[1], atoi(argv[2]));
        set_nonblocking(c->fd);
        c->frame = (size_t)i % frames.count;
        c->out = must_alloc(malloc((size_t)in_flight * frames.largest));
        c->sent_at = must_alloc(calloc((size_t)in_flight, sizeof *c->sent_at));
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event);
        for (int k = 0; k < in_flight; k++) add_request(c, now);
        flush_out(c, poller, i);
    }
    while (now < end && answered < wanted) {
        struct epoll_event events[256];
        int ready = epoll_wait(poller, events, 256, 100);
        now = now_ns();
        for (int i = 0; i < ready; i++) {
            struct connection *c = &all[events[i].data.u32];
            int answered = take_answers(c, now);
            while (answered--) add_request(c, now);
            flush_out(c, poller, (int)events[i].data.u32);
        }
    }
    printf("{\"requests\": %lu, \"seconds\": %.3f, ", (unsigned long)acknowledged, (double)(now - measure_from) / 1e9);
    print_latencies("ack", &latencies);
    printf("}\n");
    return 0;
}
