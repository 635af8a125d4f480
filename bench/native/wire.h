/* Big-endian bytes, the clock, sockets and percentiles: what every native program of the benchmarks shares. */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static inline void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "failed");
    exit(1);
}

static inline void *must_alloc(void *memory) {
    if (!memory) die("out of memory");
    return memory;
}

static inline uint16_t get16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return be16toh(v); }
static inline uint32_t get32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return be32toh(v); }
static inline uint64_t get64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return be64toh(v); }
static inline uint8_t *put8(uint8_t *p, uint8_t v) { *p = v; return p + 1; }
static inline uint8_t *put16(uint8_t *p, uint16_t v) { v = htobe16(v); memcpy(p, &v, 2); return p + 2; }
static inline uint8_t *put32(uint8_t *p, uint32_t v) { v = htobe32(v); memcpy(p, &v, 4); return p + 4; }
static inline uint8_t *put64(uint8_t *p, uint64_t v) { v = htobe64(v); memcpy(p, &v, 8); return p + 8; }
static inline uint8_t *put_string(uint8_t *p, const char *text) {
    size_t size = strlen(text);
    p = put16(p, (uint16_t)size);
    memcpy(p, text, size);
    return p + size;
}

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int connect_to(const char *host, int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (fd < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1) die("address");
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static inline int listen_on_loopback(int *port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 1024) < 0) die("listen");
    getsockname(fd, (struct sockaddr *)&address, &size);
    *port = ntohs(address.sin_port);
    return fd;
}

static inline void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

/* Every sample is kept: the runs are short, and exact percentiles need no choice of buckets. */
struct samples { int64_t *ns; size_t count, capacity; };

static inline void add_sample(struct samples *all, int64_t ns) {
    if (all->count == all->capacity) {
        all->capacity = all->capacity ? all->capacity * 2 : 65536;
        all->ns = must_alloc(realloc(all->ns, all->capacity * sizeof *all->ns));
    }
    all->ns[all->count++] = ns;
}

static inline int compare_ns(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static inline double percentile_us(struct samples *sorted, double fraction) {
    if (!sorted->count) return 0;
    return (double)sorted->ns[(size_t)((double)(sorted->count - 1) * fraction)] / 1000.0;
}

static inline void print_latencies(const char *name, struct samples *all) {
    qsort(all->ns, all->count, sizeof *all->ns, compare_ns);
    printf("\"%s_p50_us\": %.1f, \"%s_p99_us\": %.1f", name, percentile_us(all, 0.5), name, percentile_us(all, 0.99));
}

#endif
