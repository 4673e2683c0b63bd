/* sandbox/netrelay: see netrelay.h. */
#include "sandbox/netrelay.h"

#include "base/mem.h"
#include "sandbox/netdoor.h"
#include "sys/fd.h"
#include "sys/scm.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A zygote that does not answer is on its end. */
#define ANSWER_MS 200
/* Messages taken in one turn. */
#define TURN_MAX 64

#define PROXY UINT32_MAX

static int watch(struct netrelay *r, int fd, uint32_t name)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = name};
    return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int netrelay_init(struct netrelay *r, int proxy_fd)
{
    *r = (struct netrelay){.proxy_fd = proxy_fd, .epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    if (r->epoll_fd < 0)
        return -errno;
    return watch(r, proxy_fd, PROXY);
}

void netrelay_fini(struct netrelay *r)
{
    for (size_t i = 0; i < r->n; i++)
        mem_cleanup_fd(&r->ends[i]);
    free(r->ends);
    mem_cleanup_fd(&r->epoll_fd);
    *r = (struct netrelay){.epoll_fd = -1, .proxy_fd = -1};
}

static size_t free_place(struct netrelay *r)
{
    for (size_t i = 0; i < r->n; i++) {
        if (r->ends[i] < 0)
            return i;
    }
    mem_grow((void **)&r->ends, &r->cap, r->n + 1, sizeof(*r->ends));
    r->ends[r->n] = -1;
    return r->n++;
}

int netrelay_add(struct netrelay *r, int *ret_end)
{
    int pair[2];
    int rc = scm_pair(pair);
    if (rc < 0)
        return rc;
    size_t i = free_place(r);
    rc = watch(r, pair[0], (uint32_t)i);
    if (rc < 0) {
        close(pair[0]);
        close(pair[1]);
        return rc;
    }
    r->ends[i] = pair[0];
    *ret_end = pair[1];
    return 0;
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    do
        n = poll(&p, 1, timeout_ms);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

/* A child that was made a moment ago may hold a duplicate still: closing alone would leave events
 * under a number that the next one gets. */
static void drop(struct netrelay *r, size_t i)
{
    if (r->ends[i] < 0)
        return;
    epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, r->ends[i], NULL);
    fd_close(&r->ends[i]);
}

/* Without the proxy the children hear of its end once: their sockets close. */
static void on_proxy(struct netrelay *r)
{
    for (int i = 0; i < TURN_MAX && r->proxy_fd >= 0 && is_readable(r->proxy_fd, 0); i++) {
        if (netdoor_relay(r->proxy_fd, r->ends, r->n))
            continue;
        epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, r->proxy_fd, NULL);
        r->proxy_fd = -1;
        for (size_t k = 0; k < r->n; k++)
            drop(r, k);
    }
}

static void on_child(struct netrelay *r, size_t i)
{
    char ask;
    ssize_t n = recv(r->ends[i], &ask, 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return; /* nobody may hold the zygote up */
    if (n <= 0)
        drop(r, i);
    else
        (void)scm_send(r->ends[i], ".", 1, NULL, 0);
}

void netrelay_on_event(struct netrelay *r)
{
    struct epoll_event events[TURN_MAX];
    int n = epoll_wait(r->epoll_fd, events, TURN_MAX, 0);
    on_proxy(r);
    for (int i = 0; i < n; i++) {
        uint32_t name = events[i].data.u32;
        if (name != PROXY && name < r->n && r->ends[name] >= 0)
            on_child(r, name);
    }
}

bool netrelay_discard(int end)
{
    char event;
    ssize_t n;
    do {
        n = recv(end, &event, 1, MSG_DONTWAIT);
    } while (n > 0);
    return n < 0;
}

void netrelay_catch_up(int end, struct denial *list)
{
    char answer;
    if (scm_send(end, "?", 1, NULL, 0) < 0)
        return;
    while (is_readable(end, ANSWER_MS)) {
        ssize_t n = recv(end, &answer, 1, MSG_PEEK);
        if (n <= 0 || answer == '.') {
            (void)fd_read(end, &answer, 1);
            return;
        }
        if (!netdoor_on_event(end, list))
            return;
    }
}
