/* Requests of any protocol in a closed loop, one at a time on each connection: how many are answered in a second.
 *
 *   exchange HOST PORT FRAMES CONNECTIONS WARM_UP_SECONDS SECONDS framed|http
 *
 * FRAMES is a file of prebuilt requests, each behind its length; the connections walk through them. "framed": requests
 * are sent with their length, and answers begin with theirs. "http": requests are sent without it, and answers have a
 * Content-Length and must say 2xx. What other protocols answer is not looked at: whoever measures counts afterwards what
 * was stored.
 */
#include "frames.h"
#include "wire.h"
#include <strings.h>
#include <sys/epoll.h>

enum { IN_BYTES = 256 << 10 };

struct connection {
    int fd;
    size_t frame, in_used;
    int64_t sent_at;
    uint8_t in[IN_BYTES + 1];
};

static struct frames frames;
static int is_http;
static struct samples latencies;
static uint64_t answered;

static void send_request(struct connection *c, int64_t now) {
    size_t skipped = is_http ? 4 : 0, size = frame_size(&frames, c->frame) - skipped;
    const uint8_t *request = frames.at + frames.starts[c->frame] + skipped;
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(c->fd, request + sent, size - sent, MSG_NOSIGNAL);
        if (n < 0) die("send");
        sent += (size_t)n;
    }
    c->frame = (c->frame + 1) % frames.count;
    c->sent_at = now;
}

static size_t http_answer_size(struct connection *c) {
    c->in[c->in_used] = 0;
    char *head = (char *)c->in, *body = strstr(head, "\r\n\r\n");
    if (!body) return 0;
    if (strncmp(head, "HTTP/1.1 2", 10)) { fprintf(stderr, "refused: %.300s\n", head); exit(1); }
    size_t size = 0;
    for (char *line = strstr(head, "\r\n"); line && line < body; line = strstr(line + 2, "\r\n"))
        if (!strncasecmp(line + 2, "content-length:", 15)) size = strtoul(line + 17, NULL, 10);
    return (size_t)(body + 4 - head) + size;
}

static int take_answer(struct connection *c) {
    ssize_t n = recv(c->fd, c->in + c->in_used, IN_BYTES - c->in_used, 0);
    if (n <= 0) die("the server closed a connection");
    c->in_used += (size_t)n;
    size_t size = is_http ? http_answer_size(c) : c->in_used < 4 ? 0 : 4 + (size_t)get32(c->in);
    if (!size || c->in_used < size) return 0;
    c->in_used = 0;
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 8) { fprintf(stderr, "usage: exchange HOST PORT FRAMES CONNECTIONS WARM_UP SECONDS framed|http\n"); return 2; }
    frames = load_frames(argv[3]);
    is_http = !strcmp(argv[7], "http");
    int count = atoi(argv[4]), poller = epoll_create1(EPOLL_CLOEXEC);
    struct connection *all = must_alloc(calloc((size_t)count, sizeof *all));
    int64_t now = now_ns(), measure_from = now + (int64_t)(atof(argv[5]) * 1e9);
    int64_t end = measure_from + (int64_t)(atof(argv[6]) * 1e9);
    for (int i = 0; i < count; i++) {
        struct connection *c = &all[i];
        c->fd = connect_to(argv[1], atoi(argv[2]));
        c->frame = (size_t)i % frames.count;
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event);
        send_request(c, now);
    }
    while (now < end) {
        struct epoll_event events[256];
        int ready = epoll_wait(poller, events, 256, 100);
        now = now_ns();
        for (int i = 0; i < ready; i++) {
            struct connection *c = &all[events[i].data.u32];
            if (!take_answer(c)) continue;
            if (now >= measure_from) {
                add_sample(&latencies, now - c->sent_at);
                answered++;
            }
            send_request(c, now);
        }
    }
    printf("{\"requests\": %lu, \"seconds\": %.3f, ", (unsigned long)answered, (double)(now - measure_from) / 1e9);
    print_latencies("answer", &latencies);
    printf("}\n");
    return 0;
}
