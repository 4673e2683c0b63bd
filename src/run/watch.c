/* run/watch: see watch.h. */
#include "run/watch.h"

#include "base/mem.h"
#include "sys/fd.h"

static void anchor_drop(struct anchor *a)
{
    ensure(a->open > 0);
    a->open--;
    if (a->leaving && a->open == 0)
        a->gone(a);
}

void anchor_leave(struct anchor *a, void (*gone)(struct anchor *a))
{
    a->leaving = true;
    a->gone = gone;
    if (a->open == 0)
        gone(a);
}

void watch_init(struct watch *w)
{
    w->fd = -1;
}

/* libuv stops a handle whose descriptor reports an error, and says so by `status`. The owner reads
 * or writes in any case and learns the cause from that. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *w = container_of(poll, struct watch, poll);
    w->ready(w, w->owner);
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct watch *w = container_of((uv_poll_t *)handle, struct watch, poll);
    anchor_drop(w->anchor);
}

int watch_take(struct watch *w, uv_loop_t *loop, struct anchor *anchor, int *fd, int events,
               watch_fn ready, void *owner)
{
    int rc = uv_poll_init(loop, &w->poll, *fd);
    if (rc < 0)
        return rc;
    w->anchor = anchor;
    w->ready = ready;
    w->owner = owner;
    w->fd = steal_fd(fd);
    w->events = 0;
    w->loop = NULL;
    anchor->open++;
    watch_want(w, events);
    return 0;
}

int watch_hold(struct watch *w, uv_loop_t *loop, struct anchor *anchor, int *fd, watch_fn ready,
               void *owner)
{
    int rc = fd_set_nonblocking(*fd, true);
    if (rc < 0)
        return rc;
    *w = (struct watch){
        .anchor = anchor, .ready = ready, .owner = owner, .loop = loop, .fd = steal_fd(fd)};
    return 0;
}

static void begin(struct watch *w)
{
    if (w->loop == NULL)
        return;
    ensure(uv_poll_init(w->loop, &w->poll, w->fd) == 0);
    w->loop = NULL;
    w->anchor->open++;
}

void watch_want(struct watch *w, int events)
{
    if (w->fd < 0 || events == w->events)
        return;
    begin(w);
    w->events = events;
    if (events == 0)
        ensure(uv_poll_stop(&w->poll) == 0);
    else
        ensure(uv_poll_start(&w->poll, events, on_poll) == 0);
}

int watch_release(struct watch *w)
{
    if (w->fd >= 0 && w->loop == NULL)
        uv_close((uv_handle_t *)&w->poll, on_watch_closed);
    return steal_fd(&w->fd);
}

void watch_close(struct watch *w)
{
    int fd = watch_release(w);
    fd_close(&fd);
}

static void on_timer(uv_timer_t *timer)
{
    struct alarm *a = container_of(timer, struct alarm, timer);
    a->rings(a, a->owner);
}

static void on_alarm_closed(uv_handle_t *handle)
{
    struct alarm *a = container_of((uv_timer_t *)handle, struct alarm, timer);
    anchor_drop(a->anchor);
}

void alarm_open(struct alarm *a, uv_loop_t *loop, struct anchor *anchor, alarm_fn rings,
                void *owner)
{
    uv_timer_init(loop, &a->timer);
    a->rings = rings;
    a->owner = owner;
    a->anchor = anchor;
    a->open = true;
    anchor->open++;
}

void alarm_set(struct alarm *a, uint64_t ms)
{
    if (!a->open)
        return;
    uv_update_time(a->timer.loop); /* a long turn must not make a limit shorter */
    uv_timer_start(&a->timer, on_timer, ms, 0);
}

void alarm_stop(struct alarm *a)
{
    if (a->open)
        uv_timer_stop(&a->timer);
}

void alarm_close(struct alarm *a)
{
    if (!a->open)
        return;
    a->open = false;
    uv_close((uv_handle_t *)&a->timer, on_alarm_closed);
}
