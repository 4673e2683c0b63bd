/* proxy/loop: the event loop of the proxy: descriptors, time limits, work for the end of a turn.
 *
 * Theory. Plain epoll, edge-triggered, because every connection is registered once for both
 * directions and never again: under load a request costs its reads and writes and a share of one
 * epoll_wait, and nothing else. A general loop library toggles interest with a system call each
 * time a direction blocks, and brings threads and files that the filter would have to permit.
 *
 * Time limits have fixed lengths, so each length is a queue in order of expiry: starting, moving
 * and stopping one is a list operation.
 *
 * Whoever ends a connection inside a turn may still be named by events of the same turn. Its
 * sources have fd -1 from then on and are skipped, and its memory goes with loop_defer(), after the
 * turn.
 *
 * Must not: block anywhere but in epoll_wait.
 */
#ifndef CODESPACE_PROXY_LOOP_H
#define CODESPACE_PROXY_LOOP_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

/* X(name, milliseconds): the time limits of the proxy. */
#define LOOP_LIMIT_TABLE(X)                                                                        \
    X(HEAD, 30000)        /* from a message's first byte to the end of its head; SOCKS too */      \
    X(IDLE, 120000)       /* a kept connection without a request */                                \
    X(DIAL, 10000)        /* one address */                                                        \
    X(LOOKUP, 2000)       /* one question to one name server */                                    \
    X(QUIET, 3600000)     /* a tunnel or an exchange in which no byte moves */                     \
    X(HALF_QUIET, 600000) /* the same, when one side has finished */                               \
    X(LINGER, 2000)       /* waiting for a client to read why it was refused */                    \
    X(HOLD, 4)            /* a refusal is told inside before it is told to the client */

enum loop_limit {
#define LOOP_LIMIT_ENUM(name, ms) LOOP_##name,
    LOOP_LIMIT_TABLE(LOOP_LIMIT_ENUM)
#undef LOOP_LIMIT_ENUM
        LOOP_LIMIT_MAX
};

struct source {
    int fd; /* -1: closed */
    void (*ready)(struct source *s, uint32_t events);
};

struct timer {
    struct list node;
    uint64_t due_ms;
    void (*expired)(struct timer *t);
};

struct deferred {
    struct list node;
    void (*run)(struct deferred *d);
};

struct loop {
    int epoll_fd;
    bool stop;
    uint64_t now_ms; /* monotonic, as of the start of the turn */
    uint32_t limit_ms[LOOP_LIMIT_MAX];
    struct list timers[LOOP_LIMIT_MAX];
    struct list deferred;
};

/* 0 or -errno. */
int loop_init(struct loop *l);

/* "NAME=MILLISECONDS": a time limit that is shorter than that of the table, never longer. Before
 * any timer of it was started. 0, -ENOENT or -ERANGE. */
int loop_set_limit(struct loop *l, const char *text);

/* Turn until loop->stop. 0 or -errno. */
int loop_run(struct loop *l);

/* Watch fd for both directions, edge-triggered (one event comes at once for what is ready now).
 * level: for listeners and the like: readable only, level-triggered. 0 or -errno. */
int loop_add(struct loop *l, struct source *s, int fd);
int loop_add_level(struct loop *l, struct source *s, int fd);
/* Give a watched descriptor to another source. */
int loop_move(struct loop *l, struct source *from, struct source *to);
/* Stop watching and leave open: the descriptor. */
int loop_release(struct loop *l, struct source *s);
/* Stop watching and close. Harmless when it is closed. */
void loop_close(struct loop *l, struct source *s);

void timer_init(struct timer *t, void (*expired)(struct timer *t));
/* Start or start again. */
void timer_start(struct loop *l, struct timer *t, enum loop_limit limit);
void timer_stop(struct timer *t);

void deferred_init(struct deferred *d, void (*run)(struct deferred *d));
/* Run once at the end of this turn. */
void loop_defer(struct loop *l, struct deferred *d);

#endif
