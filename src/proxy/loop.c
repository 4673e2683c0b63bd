/* proxy/loop: see loop.h. */
#include "proxy/loop.h"

#include "base/num.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

/* Events taken per turn: enough to spread the cost of a turn, few enough to keep time honest. */
#define LOOP_EVENTS_MAX 128

static const uint32_t limit_ms[] = {
#define LOOP_LIMIT_MS(name, ms) [LOOP_##name] = ms,
    LOOP_LIMIT_TABLE(LOOP_LIMIT_MS)
#undef LOOP_LIMIT_MS
};

static const char *const limit_names[] = {
#define LOOP_LIMIT_TEXT(name, ms) [LOOP_##name] = #name,
    LOOP_LIMIT_TABLE(LOOP_LIMIT_TEXT)
#undef LOOP_LIMIT_TEXT
};

static uint64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int loop_init(struct loop *l)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return -errno;
    *l = (struct loop){.epoll_fd = fd, .now_ms = monotonic_ms()};
    memcpy(l->limit_ms, limit_ms, sizeof(limit_ms));
    list_init(&l->deferred);
    for (int i = 0; i < LOOP_LIMIT_MAX; i++)
        list_init(&l->timers[i]);
    return 0;
}

int loop_set_limit(struct loop *l, const char *text)
{
    for (int i = 0; i < LOOP_LIMIT_MAX; i++) {
        size_t n = strlen(limit_names[i]);
        uint64_t ms = 0;
        if (strncmp(text, limit_names[i], n) != 0 || text[n] != '=')
            continue;
        if (num_parse_u64(text + n + 1, 1, limit_ms[i], &ms) < 0)
            return -ERANGE;
        l->limit_ms[i] = (uint32_t)ms;
        return 0;
    }
    return -ENOENT;
}

static int watch(struct loop *l, struct source *s, int fd, int op, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = s};
    s->fd = fd;
    if (epoll_ctl(l->epoll_fd, op, fd, &event) == 0)
        return 0;
    s->fd = -1;
    return -errno;
}

#define EDGE (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

int loop_add(struct loop *l, struct source *s, int fd)
{
    return watch(l, s, fd, EPOLL_CTL_ADD, EDGE);
}

int loop_add_level(struct loop *l, struct source *s, int fd)
{
    return watch(l, s, fd, EPOLL_CTL_ADD, EPOLLIN);
}

int loop_move(struct loop *l, struct source *from, struct source *to)
{
    int r = watch(l, to, from->fd, EPOLL_CTL_MOD, EDGE);
    if (r == 0)
        from->fd = -1;
    return r;
}

int loop_release(struct loop *l, struct source *s)
{
    int fd = s->fd;
    epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    s->fd = -1;
    return fd;
}

void loop_close(struct loop *l, struct source *s)
{
    (void)l; /* the kernel forgets a descriptor that has no duplicate; ours have none */
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

void timer_init(struct timer *t, void (*expired)(struct timer *t))
{
    list_init(&t->node);
    t->expired = expired;
}

void timer_start(struct loop *l, struct timer *t, enum loop_limit limit)
{
    t->due_ms = l->now_ms + l->limit_ms[limit];
    list_remove(&t->node);
    list_append(&l->timers[limit], &t->node);
}

void timer_stop(struct timer *t)
{
    list_remove(&t->node);
}

void deferred_init(struct deferred *d, void (*run)(struct deferred *d))
{
    list_init(&d->node);
    d->run = run;
}

void loop_defer(struct loop *l, struct deferred *d)
{
    list_remove(&d->node);
    list_append(&l->deferred, &d->node);
}

static int next_timeout_ms(const struct loop *l)
{
    uint64_t due = UINT64_MAX;
    if (!list_empty(&l->deferred))
        return 0;
    for (int i = 0; i < LOOP_LIMIT_MAX; i++) {
        if (list_empty(&l->timers[i]))
            continue;
        struct timer *first = container_of(l->timers[i].next, struct timer, node);
        due = first->due_ms < due ? first->due_ms : due;
    }
    if (due == UINT64_MAX)
        return -1;
    uint64_t left = due > l->now_ms ? due - l->now_ms : 0;
    return left > INT_MAX ? INT_MAX : (int)left;
}

static void run_timers(struct loop *l)
{
    for (int i = 0; i < LOOP_LIMIT_MAX; i++) {
        while (!list_empty(&l->timers[i])) {
            struct timer *first = container_of(l->timers[i].next, struct timer, node);
            if (first->due_ms > l->now_ms)
                break;
            timer_stop(first);
            first->expired(first);
        }
    }
}

/* What is deferred while this runs waits for the next turn, so a turn always ends. */
static void run_deferred(struct loop *l)
{
    struct list now;
    list_init(&now);
    while (!list_empty(&l->deferred)) {
        struct list *node = l->deferred.next;
        list_remove(node);
        list_append(&now, node);
    }
    while (!list_empty(&now)) {
        struct deferred *d = container_of(now.next, struct deferred, node);
        list_remove(&d->node);
        d->run(d);
    }
}

int loop_run(struct loop *l)
{
    struct epoll_event events[LOOP_EVENTS_MAX];
    while (!l->stop) {
        int n = epoll_wait(l->epoll_fd, events, LOOP_EVENTS_MAX, next_timeout_ms(l));
        if (n < 0 && errno != EINTR)
            return -errno;
        l->now_ms = monotonic_ms();
        for (int i = 0; i < n && !l->stop; i++) {
            struct source *s = events[i].data.ptr;
            if (s->fd >= 0)
                s->ready(s, events[i].events);
        }
        run_timers(l);
        run_deferred(l);
    }
    return 0;
}
