/* The limit of consume: one thread writes from RAM to loopback connections, another process reads and drops.
 *
 *   loopback CONNECTIONS SECONDS CHUNK_BYTES
 */
#include "wire.h"
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

enum { MAX_CONNECTIONS = 1024, RAM_BYTES = 64 << 20 };

static void send_forever(int listener, int count, size_t chunk) {
    static size_t position[MAX_CONNECTIONS];
    int fds[MAX_CONNECTIONS], poller = epoll_create1(EPOLL_CLOEXEC);
    uint8_t *ram = must_alloc(malloc(RAM_BYTES));
    for (size_t i = 0; i < RAM_BYTES; i++) ram[i] = (uint8_t)(i * 2654435761u >> 24);
    for (int i = 0; i < count; i++) {
        while ((fds[i] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0)
            if (errno != EAGAIN) die("accept");
        struct epoll_event event = {.events = EPOLLOUT, .data.u32 = (uint32_t)i};
        epoll_ctl(poller, EPOLL_CTL_ADD, fds[i], &event);
        position[i] = (size_t)i * (RAM_BYTES / (size_t)count);
    }
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(poller, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            uint32_t index = events[i].data.u32;
            if (position[index] + chunk > RAM_BYTES) position[index] = 0;
            ssize_t n = send(fds[index], ram + position[index], chunk, MSG_NOSIGNAL);
            if (n < 0 && errno != EAGAIN) exit(0); /* the reader has seen enough */
            if (n > 0) position[index] += (size_t)n;
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 4 || atoi(argv[1]) > MAX_CONNECTIONS) {
        fprintf(stderr, "usage: loopback CONNECTIONS SECONDS CHUNK_BYTES\n");
        return 2;
    }
    int count = atoi(argv[1]), port, listener = listen_on_loopback(&port), poller = epoll_create1(EPOLL_CLOEXEC);
    size_t scratch_bytes = 1 << 20;
    uint8_t *scratch = must_alloc(malloc(scratch_bytes));
    pid_t sender = fork();
    if (!sender) send_forever(listener, count, (size_t)atol(argv[3]));
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = connect_to("127.0.0.1", port)};
        set_nonblocking(event.data.fd);
        epoll_ctl(poller, EPOLL_CTL_ADD, event.data.fd, &event);
    }
    /* The first quarter second is not counted: sockets open their windows, the sender fills its RAM. */
    int64_t start = now_ns(), from = start + 250000000, end = from + (int64_t)(atof(argv[2]) * 1e9), now = start;
    uint64_t bytes = 0;
    while (now < end) {
        struct epoll_event events[64];
        int ready = epoll_wait(poller, events, 64, 1000);
        for (int i = 0; i < ready; i++) {
            ssize_t n = recv(events[i].data.fd, scratch, scratch_bytes, 0);
            if (n == 0) die("the sender ended");
            if (n > 0 && now >= from) bytes += (uint64_t)n;
        }
        now = now_ns();
    }
    kill(sender, SIGKILL);
    waitpid(sender, NULL, 0);
    printf("{\"bytes\": %lu, \"seconds\": %.4f}\n", (unsigned long)bytes, (double)(now - from) / 1e9);
    return 0;
}
