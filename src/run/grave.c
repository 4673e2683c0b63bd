/* run/grave: see grave.h. */
#include "run/grave.h"

#include "base/log.h"
#include "run/watch.h"
#include "sys/fd.h"
#include "sys/session.h"
#include "sys/spawn.h"

#include <errno.h>
#include <signal.h>

struct grave {
    struct list link;
    struct anchor anchor;
    struct watch pidfd;
    struct alarm alarm;
    bool killed;
};

static void on_gone(struct anchor *a)
{
    free(container_of(a, struct grave, anchor));
}

static void leave(struct grave *g)
{
    list_remove(&g->link);
    watch_close(&g->pidfd);
    alarm_close(&g->alarm);
    anchor_leave(&g->anchor, on_gone);
}

static void kill_it(struct grave *g)
{
    g->killed = true;
    (void)spawn_signal(g->pidfd.fd, SIGKILL); /* ESRCH: it has ended, and is reaped below */
    alarm_set(&g->alarm, GRAVE_GIVE_UP_MS);
}

static void on_ended(struct watch *w, void *owner)
{
    struct grave *g = owner;
    struct spawn_end end;
    if (session_reap(w->fd, false, &end) != -EAGAIN)
        leave(g);
}

static void on_alarm(struct alarm *a, void *owner)
{
    struct grave *g = owner;
    if (!g->killed) {
        kill_it(g);
        return;
    }
    struct spawn_end end;
    if (session_reap(g->pidfd.fd, false, &end) !=
        -EAGAIN) { /* it had ended, and the loop was late */
        leave(g);
        return;
    }
    log_warn("a killed child does not end; it is left behind");
    leave(g);
}

void grave_take(struct list *yard, uv_loop_t *loop, int pidfd, uint64_t patience_ms)
{
    struct spawn_end end;
    if (patience_ms == 0)
        (void)spawn_signal(pidfd, SIGKILL);
    if (session_reap(pidfd, false, &end) != -EAGAIN) {
        fd_close(&pidfd);
        return;
    }
    struct grave *g = mem_new(struct grave);
    list_append(yard, &g->link);
    watch_init(&g->pidfd);
    alarm_open(&g->alarm, loop, &g->anchor, on_alarm, g);
    if (watch_take(&g->pidfd, loop, &g->anchor, &pidfd, UV_READABLE, on_ended, g) < 0) {
        (void)spawn_signal(pidfd, SIGKILL); /* out of descriptors: better unreaped than alive */
        fd_close(&pidfd);
        leave(g);
        return;
    }
    g->killed = patience_ms == 0;
    alarm_set(&g->alarm, g->killed ? GRAVE_GIVE_UP_MS : patience_ms);
}

void grave_hasten(struct list *yard)
{
    list_each (it, yard) {
        struct grave *g = container_of(it, struct grave, link);
        list_remove(&g->link);
        if (!g->killed)
            kill_it(g);
    }
}
