/* run/watch: descriptors and timers on the loop, owned by a struct that must outlive them.
 *
 * Theory. libuv closes a handle only on a later turn of the loop, so whoever embeds handles may be
 * freed only when the last one has gone. An `anchor` counts them: anchor_leave() says that the
 * owner wants to go, and `gone` is called once, when nothing is open any more.
 *
 * A watch owns its descriptor. Closing the watch closes the descriptor at once (libuv has taken it
 * out of its set by then), so the other side sees the end without waiting for a turn of the loop.
 *
 * Must not: be given a descriptor that another watch has (one descriptor, one watch).
 */
#ifndef CODESPACE_RUN_WATCH_H
#define CODESPACE_RUN_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct anchor {
    unsigned open; /* handles that have not closed yet */
    bool leaving;
    void (*gone)(struct anchor *a);
};

/* Everything was closed by the caller or will be: run `gone` when the last handle has closed. With
 * no handle open it runs before this returns. */
void anchor_leave(struct anchor *a, void (*gone)(struct anchor *a));

struct watch;
typedef void (*watch_fn)(struct watch *w, void *owner);

struct watch {
    uv_poll_t poll;
    struct anchor *anchor;
    watch_fn ready; /* readable, writable, hung up or in error: read and find out */
    void *owner;
    uv_loop_t *loop; /* that does not know it yet; NULL = it does */
    int fd;          /* -1 when closed */
    int events;
};

/* A watch that is closed. */
void watch_init(struct watch *w);

/* Take *fd (which becomes non-blocking; -1 is left behind) and call `ready` on `events`
 * (UV_READABLE, UV_WRITABLE; 0 for none yet). 0, or -errno and *fd is still the caller's. */
int watch_take(struct watch *w, uv_loop_t *loop, struct anchor *anchor, int *fd, int events,
               watch_fn ready, void *owner);

/* As watch_take() for a pipe or a socket, with no events; the loop hears of it at the first
 * watch_want(), so that one which nobody ever waits for costs next to nothing. */
int watch_hold(struct watch *w, uv_loop_t *loop, struct anchor *anchor, int *fd, watch_fn ready,
               void *owner);

/* Change what is waited for. Nothing happens when the watch is closed. */
void watch_want(struct watch *w, int events);

/* Close it and its descriptor; fine when it is closed already. It may be opened again only after
 * the loop has turned. */
void watch_close(struct watch *w);

/* Close the watch but not its descriptor, which is the caller's now. -1 when it was closed. */
int watch_release(struct watch *w);

struct alarm;
typedef void (*alarm_fn)(struct alarm *a, void *owner);

struct alarm {
    uv_timer_t timer;
    alarm_fn rings;
    void *owner;
    struct anchor *anchor;
    bool open;
};

void alarm_open(struct alarm *a, uv_loop_t *loop, struct anchor *anchor, alarm_fn rings,
                void *owner);
/* Ring once after `ms`, instead of whatever was set before. */
void alarm_set(struct alarm *a, uint64_t ms);
void alarm_stop(struct alarm *a);
void alarm_close(struct alarm *a);

#endif
