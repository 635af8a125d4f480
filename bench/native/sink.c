/* The limit of produce: reads the same requests, does the same grouped write and fdatasync, and answers.
 *
 *   sink DIRECTORY TOPIC PARTITIONS
 *
 * One thread serves all sockets; a second one writes. The next group of requests forms while the current one is
 * being synced. It speaks just enough Kafka for librdkafka and for our raw client: ApiVersions 0-3, Metadata 4 and
 * Produce 3-7, for one topic given on the command line. It checks nothing and stores nothing that could be read.
 */
#include "wire.h"
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { PRODUCE = 0, FETCH = 1, METADATA = 3, FIND_COORDINATOR = 10, API_VERSIONS = 18 };
enum { FILE_BYTES = 256 << 20, GROUP_LIMIT = 64 << 20, READ_BYTES = 256 << 10, MAX_FDS = 4096 };

struct bytes { uint8_t *at; size_t used, capacity; };
struct reply { int fd; uint32_t generation; size_t start, size; };
struct group { struct bytes data, replies_data; struct reply *replies; size_t count, capacity; };
struct connection { int open; uint32_t generation; struct bytes in, out; size_t sent; int dirty, wants_out; };

static struct connection connections[MAX_FDS];
static struct group groups[2], *forming = &groups[0], *writing;
static const char *topic;
static int partitions, port, poller, committed_event, file;
static off_t position;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t handed_over = PTHREAD_COND_INITIALIZER;

static uint8_t *reserve(struct bytes *buffer, size_t extra) {
    if (buffer->used + extra > buffer->capacity) {
        buffer->capacity = (buffer->used + extra) * 2;
        buffer->at = must_alloc(realloc(buffer->at, buffer->capacity));
    }
    return buffer->at + buffer->used;
}

/* ── the writer ── */

static void write_and_sync(const struct bytes *data) {
    if (!data->used) return;
    if (position + (off_t)data->used > FILE_BYTES) position = 0;
    for (size_t done = 0; done < data->used;) {
        ssize_t n = pwrite(file, data->at + done, data->used - done, position + (off_t)done);
        if (n < 0) die("write");
        done += (size_t)n;
    }
    position += (off_t)data->used;
    if (fdatasync(file) < 0) die("fdatasync");
}

static void *writer(void *unused) {
    (void)unused;
    for (struct group *done = NULL;;) {
        pthread_mutex_lock(&lock);
        while (!writing || writing == done) pthread_cond_wait(&handed_over, &lock);
        done = writing;
        pthread_mutex_unlock(&lock);
        write_and_sync(&done->data);
        uint64_t one = 1;
        if (write(committed_event, &one, 8) != 8) die("eventfd");
    }
    return NULL;
}

/* The two groups alternate, so a group handed over is never the one that the writer finished last. */
static void hand_over(void) {
    if (writing || !forming->count) return;
    pthread_mutex_lock(&lock);
    writing = forming;
    pthread_cond_signal(&handed_over);
    pthread_mutex_unlock(&lock);
    forming = forming == &groups[0] ? &groups[1] : &groups[0];
}

static void prefill(const char *directory) {
    /* A file that was written once: an append into fresh extents would sync the file system's metadata as well. */
    char path[4096];
    static uint8_t zeros[1 << 20];
    snprintf(path, sizeof path, "%s/sink.data", directory);
    if ((file = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600)) < 0) die(path);
    unlink(path);
    for (off_t at = 0; at < FILE_BYTES; at += sizeof zeros)
        if (pwrite(file, zeros, sizeof zeros, at) != sizeof zeros) die("prefill");
    if (fsync(file) < 0) die("fsync");
}

/* ── replies ── */

static void close_connection(int fd) {
    struct connection *c = &connections[fd];
    c->open = 0;
    c->generation++;
    c->in.used = c->out.used = c->sent = 0;
    c->dirty = c->wants_out = 0;
    close(fd);
}

static void want_output(int fd, int wanted) {
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.fd = fd};
    if (connections[fd].wants_out == wanted) return;
    connections[fd].wants_out = wanted;
    epoll_ctl(poller, EPOLL_CTL_MOD, fd, &event);
}

static void send_out(int fd) {
    struct connection *c = &connections[fd];
    c->dirty = 0;
    while (c->sent < c->out.used) {
        ssize_t n = send(fd, c->out.at + c->sent, c->out.used - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) { want_output(fd, 1); return; }
        if (n < 0) { close_connection(fd); return; }
        c->sent += (size_t)n;
    }
    c->out.used = c->sent = 0;
    want_output(fd, 0);
}

static void on_commit(void) {
    uint64_t count;
    if (read(committed_event, &count, 8) != 8) return;
    struct group *g = writing;
    for (size_t i = 0; i < g->count; i++) {
        struct reply *r = &g->replies[i];
        struct connection *c = &connections[r->fd];
        if (!c->open || c->generation != r->generation) continue;
        memcpy(reserve(&c->out, r->size), g->replies_data.at + r->start, r->size);
        c->out.used += r->size;
        c->dirty = 1;
    }
    for (size_t i = 0; i < g->count; i++)
        if (connections[g->replies[i].fd].dirty) send_out(g->replies[i].fd);
    g->count = g->data.used = g->replies_data.used = 0;
    pthread_mutex_lock(&lock);
    writing = NULL;
    pthread_mutex_unlock(&lock);
}

/* Every reply waits for the group that it is in, so that replies leave in the order of the requests. */
static void add_reply(int fd, const uint8_t *body, size_t size) {
    struct group *g = forming;
    if (g->count == g->capacity) {
        g->capacity = g->capacity ? g->capacity * 2 : 1024;
        g->replies = must_alloc(realloc(g->replies, g->capacity * sizeof *g->replies));
    }
    uint8_t *p = put32(reserve(&g->replies_data, size + 4), (uint32_t)size);
    memcpy(p, body, size);
    g->replies[g->count++] =
        (struct reply){.fd = fd, .generation = connections[fd].generation, .start = g->replies_data.used, .size = size + 4};
    g->replies_data.used += size + 4;
}

/* ── requests ── */

static uint8_t scratch[1 << 20];

static void answer_api_versions(int fd, uint32_t correlation, int version) {
    static const uint16_t apis[][3] = {
        {PRODUCE, 3, 7}, {FETCH, 4, 11}, {METADATA, 4, 4}, {FIND_COORDINATOR, 0, 0}, {API_VERSIONS, 0, 3}};
    size_t count = sizeof apis / sizeof apis[0];
    uint8_t *p = put16(put32(scratch, correlation), 0);
    p = version >= 3 ? put8(p, (uint8_t)(count + 1)) : put32(p, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        p = put16(put16(put16(p, apis[i][0]), apis[i][1]), apis[i][2]);
        if (version >= 3) p = put8(p, 0);
    }
    if (version >= 1) p = put32(p, 0);
    if (version >= 3) p = put8(p, 0);
    add_reply(fd, scratch, (size_t)(p - scratch));
}

static void answer_metadata(int fd, uint32_t correlation) {
    uint8_t *p = put32(put32(scratch, correlation), 0);
    p = put32(put_string(put32(put32(p, 1), 1), "127.0.0.1"), (uint32_t)port);
    p = put16(p, 0xffff); /* no rack */
    p = put32(put_string(p, "sink"), 1);
    p = put8(put_string(put16(put32(p, 1), 0), topic), 0);
    p = put32(p, (uint32_t)partitions);
    for (int i = 0; i < partitions; i++) {
        p = put32(put32(put16(p, 0), (uint32_t)i), 1);
        p = put32(put32(put32(put32(p, 1), 1), 1), 1);
    }
    add_reply(fd, scratch, (size_t)(p - scratch));
}

static void answer_produce(int fd, uint32_t correlation, int version, const uint8_t *body) {
    body += 2 + (get16(body) == 0xffff ? 0 : get16(body)); /* transactional id */
    body += 2 + 4;                                         /* acks, timeout */
    uint32_t topics = get32(body);
    uint8_t *p = put32(put32(scratch, correlation), topics);
    body += 4;
    while (topics--) {
        size_t name = 2 + (size_t)get16(body);
        memcpy(p, body, name);
        uint32_t count = get32(body + name);
        p = put32(p + name, count);
        body += name + 4;
        while (count--) {
            p = put16(put32(p, get32(body)), 0);
            p = put64(put64(p, 0), UINT64_MAX);
            if (version >= 5) p = put64(p, 0);
            body += 8 + get32(body + 4);
        }
    }
    p = put32(p, 0);
    add_reply(fd, scratch, (size_t)(p - scratch));
}

static void on_frame(int fd, const uint8_t *frame, size_t size) {
    uint16_t key = get16(frame), version = get16(frame + 2), client = get16(frame + 8);
    uint32_t correlation = get32(frame + 4);
    const uint8_t *body = frame + 10 + (client == 0xffff ? 0 : client);
    if (key == API_VERSIONS) answer_api_versions(fd, correlation, version);
    else if (key == METADATA) answer_metadata(fd, correlation);
    else if (key == PRODUCE) {
        memcpy(reserve(&forming->data, size), frame, size);
        forming->data.used += size;
        answer_produce(fd, correlation, version, body);
    } else close_connection(fd);
}

static void on_readable(int fd) {
    struct connection *c = &connections[fd];
    size_t wanted = READ_BYTES;
    if (c->in.used >= 4 && 4 + (size_t)get32(c->in.at) > c->in.used + wanted) wanted = 4 + get32(c->in.at) - c->in.used;
    uint8_t *free_space = reserve(&c->in, wanted);
    ssize_t n = recv(fd, free_space, c->in.capacity - c->in.used, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) { close_connection(fd); return; }
    c->in.used += (size_t)n;
    size_t start = 0;
    while (c->open && c->in.used - start >= 4) {
        size_t size = get32(c->in.at + start);
        if (c->in.used - start < 4 + size) break;
        on_frame(fd, c->in.at + start + 4, size);
        start += 4 + size;
    }
    if (!c->open || !start) return;
    c->in.used -= start;
    memmove(c->in.at, c->in.at + start, c->in.used);
}

static void on_connect(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
    if (fd < 0) return;
    if (fd >= MAX_FDS) { close(fd); return; }
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    connections[fd].open = 1;
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char **argv) {
    if (argc != 4) { fprintf(stderr, "usage: sink DIRECTORY TOPIC PARTITIONS\n"); return 2; }
    topic = argv[2];
    partitions = atoi(argv[3]);
    prefill(argv[1]);
    int listener = listen_on_loopback(&port);
    poller = epoll_create1(EPOLL_CLOEXEC);
    committed_event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    for (int i = 0; i < 2; i++) {
        int fd = i ? committed_event : listener;
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, writer, NULL)) die("thread");
    printf("ready kafka=127.0.0.1:%d\n", port);
    fflush(stdout);
    for (;;) {
        struct epoll_event events[256];
        int count = epoll_wait(poller, events, 256, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) on_connect(listener);
            else if (fd == committed_event) on_commit();
            else {
                if (connections[fd].open && events[i].events & EPOLLOUT) send_out(fd);
                /* Backpressure: while the group that forms is large, sockets are not read. */
                if (connections[fd].open && forming->data.used < GROUP_LIMIT) on_readable(fd);
            }
        }
        hand_over();
    }
}
