/* Produce requests at a fixed rate: how long until the acknowledgement, and until a tailing consumer has the record.
 *
 *   latency HOST PORT FRAMES RATE WARM_UP_SECONDS SECONDS [TOPIC START_OFFSET]
 *
 * Open loop: a request is due at its time whether or not the earlier ones were answered, and its latency counts from
 * when it was due. With TOPIC, partition 0 is tailed by long polls from START_OFFSET; then FRAMES must hold requests
 * of one record each for that partition, and nobody else may write to it.
 */
#include "frames.h"
#include "fetching.h"
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>

static struct frames frames;
static struct samples acks, arrivals;
static int64_t *due_at, measure_from, received_at, first_offset;
static uint32_t sent, answered, total;
static uint8_t in[1 << 20];
static size_t in_used;

static void on_arrival(struct fetcher *f, int64_t first, int64_t next) {
    (void)f;
    for (int64_t offset = first; offset < next; offset++) {
        int64_t due = due_at[offset - first_offset];
        if (due >= measure_from) add_sample(&arrivals, received_at - due);
    }
}

static void send_due(int fd) {
    while (sent < total && due_at[sent] <= now_ns()) {
        size_t index = sent % frames.count;
        put32(frames.at + frames.starts[index] + CORRELATION, sent);
        ssize_t size = (ssize_t)frame_size(&frames, index);
        if (send(fd, frames.at + frames.starts[index], (size_t)size, MSG_NOSIGNAL) != size) die("send");
        sent++;
    }
}

static void take_answers(int fd) {
    ssize_t n = recv(fd, in + in_used, sizeof in - in_used, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) die("the server closed a connection");
    int64_t now = now_ns();
    size_t start = 0;
    in_used += (size_t)n;
    while (in_used - start >= 4 && in_used - start >= 4 + (size_t)get32(in + start)) {
        check_produced(in + start + 4, answered);
        start += 4 + get32(in + start);
        if (due_at[answered] >= measure_from) add_sample(&acks, now - due_at[answered]);
        answered++;
    }
    in_used -= start;
    memmove(in, in + start, in_used);
}

static void wake_at(int timer, int64_t ns) {
    struct itimerspec when = {.it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

int main(int argc, char **argv) {
    if (argc != 7 && argc != 9) {
        fprintf(stderr, "usage: latency HOST PORT FRAMES RATE WARM_UP SECONDS [TOPIC START_OFFSET]\n");
        return 2;
    }
    prctl(PR_SET_TIMERSLACK, 1UL);
    frames = load_frames(argv[3]);
    double rate = atof(argv[4]), warm_up = atof(argv[5]), seconds = atof(argv[6]);
    struct fetch_limits limits = {.max_wait_ms = 500, .max_bytes = 1 << 20};
    static struct fetcher tail;
    static uint8_t scratch[SCRATCH_BYTES];
    int producer = connect_to(argv[1], atoi(argv[2])), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    int poller = epoll_create1(EPOLL_CLOEXEC), fds[3] = {producer, timer, -1};
    if (argc == 9) {
        first_offset = tail.offset = atoll(argv[8]);
        fds[2] = tail.fd = connect_to(argv[1], atoi(argv[2]));
        send_fetch(&tail, argv[7], limits);
    }
    for (int i = 0; i < 3; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[i]};
        if (fds[i] >= 0) epoll_ctl(poller, EPOLL_CTL_ADD, fds[i], &event);
    }
    total = (uint32_t)(rate * (warm_up + seconds));
    due_at = must_alloc(calloc(total, sizeof *due_at));
    int64_t start = now_ns() + 10000000;
    measure_from = start + (int64_t)(warm_up * 1e9);
    for (uint32_t i = 0; i < total; i++) due_at[i] = start + (int64_t)((double)i * 1e9 / rate);
    wake_at(timer, due_at[0]);
    while (answered < total || (argc == 9 && tail.offset < first_offset + total)) {
        struct epoll_event events[4];
        int ready = epoll_wait(poller, events, 4, 30000);
        if (!ready) { fprintf(stderr, "nothing was answered for 30 seconds\n"); return 1; }
        for (int i = 0; i < ready; i++) {
            uint64_t fired;
            if (events[i].data.fd == producer) take_answers(producer);
            else if (events[i].data.fd == timer) {
                if (read(timer, &fired, 8) != 8) die("timer");
                send_due(producer);
                if (sent < total) wake_at(timer, due_at[sent]);
            } else {
                ssize_t n = recv(tail.fd, scratch, sizeof scratch, MSG_DONTWAIT);
                if (n <= 0) die("the server closed a connection");
                received_at = now_ns();
                if (take_response(&tail, scratch, (size_t)n, on_arrival) && tail.offset < first_offset + total)
                    send_fetch(&tail, argv[7], limits);
            }
        }
    }
    printf("{\"requests\": %u, ", total);
    print_latencies("ack", &acks);
    if (argc == 9) {
        printf(", ");
        print_latencies("arrival", &arrivals);
    }
    printf("}\n");
    return 0;
}
