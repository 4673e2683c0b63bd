/* mcp/resource_watch: see resource_watch.h. */
#include "mcp/resource_watch.h"

#include "mcp/listen.h"
#include "mcp/provider.h"
#include "mcp/session.h"

struct watched {
    struct resource_watch *watch;
    struct resource_stamper stamper;
    char *uri;
    const struct resource *resource;
    struct strv parts;
    struct resource_stamp stamp;
    bool known;
    bool asking;
    run_ticket ticket;
    bool wanted; /* during resource_watch_check() */
};

struct resource_watch {
    struct server *server;
    uv_timer_t timer;
    struct map all; /* uri -> struct watched */
};

static void on_stamp(struct resource_stamper *to, struct resource_stamp stamp)
{
    struct watched *x = container_of(to, struct watched, stamper);
    bool changed = x->known && (stamp.exists != x->stamp.exists || stamp.value != x->stamp.value);
    x->asking = false;
    x->ticket = 0;
    x->known = true;
    x->stamp = stamp;
    if (changed)
        listen_updated(x->watch->server, x->uri);
}

static void ask(struct watched *x)
{
    if (x->asking) /* a runner that is slow is not asked twice */
        return;
    x->asking = true;
    run_ticket ticket = x->resource->stamp(x->watch->server, x->parts.items, &x->stamper);
    if (x->asking)
        x->ticket = ticket;
}

static void forget(struct watched *x)
{
    if (x->asking)
        runner_cancel(x->watch->server->runner, x->ticket);
    strv_fini(&x->parts);
    free(x->uri);
    free(x);
}

/* ---- the timer ---- */

static void on_tick(uv_timer_t *timer)
{
    struct resource_watch *w = container_of(timer, struct resource_watch, timer);
    size_t pos = 0;
    for (struct watched *x; (x = map_next(&w->all, &pos, NULL)) != NULL;)
        ask(x);
}

static void on_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct resource_watch, timer));
}

static struct resource_watch *watch_of(struct server *s)
{
    if (s->watch == NULL) {
        s->watch = mem_new(struct resource_watch);
        s->watch->server = s;
        ensure(uv_timer_init(s->loop, &s->watch->timer) == 0);
        ensure(uv_timer_start(&s->watch->timer, on_tick, RESOURCE_WATCH_MS, RESOURCE_WATCH_MS) ==
               0);
    }
    return s->watch;
}

static void close_if_empty(struct server *s)
{
    struct resource_watch *w = s->watch;
    if (w == NULL || w->all.used > 0)
        return;
    s->watch = NULL;
    map_fini(&w->all);
    uv_close((uv_handle_t *)&w->timer, on_closed);
}

/* ---- who wants what ---- */

static void mark(const char *uri, void *user)
{
    struct resource_watch *w = user;
    struct watched *x = map_get(&w->all, uri);
    if (x != NULL)
        x->wanted = true;
}

static void sweep(struct resource_watch *w)
{
    size_t pos = 0;
    for (struct watched *x; (x = map_next(&w->all, &pos, NULL)) != NULL;) {
        if (x->wanted) {
            x->wanted = false;
        } else {
            map_remove(&w->all, x->uri);
            forget(x);
        }
    }
}

void resource_watch_check(struct server *s)
{
    if (s->watch == NULL)
        return;
    listen_each_uri(s, mark, s->watch);
    list_each (it, &s->sessions) {
        struct session *session = container_of(it, struct session, node);
        for (size_t i = 0; i < session->subscribed.len; i++)
            mark(session->subscribed.items[i], s->watch);
    }
    sweep(s->watch);
    close_if_empty(s);
}

int resource_watch_add(struct server *s, const char *uri, struct err *e)
{
    autostrv parts = {0};
    const struct resource *r = resources_find(s->provider, uri, &parts);
    if (r == NULL || r->stamp == NULL)
        return 0;
    struct resource_watch *w = watch_of(s);
    if (map_get(&w->all, uri) != NULL)
        return 0;
    if (w->all.used >= RESOURCE_WATCH_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "RESOURCE_WATCH_MAX (%u) resources are watched; unsubscribe from some first",
                       RESOURCE_WATCH_MAX);
    struct watched *x = mem_new(struct watched);
    *x = (struct watched){
        .watch = w, .stamper = {on_stamp}, .uri = mem_strdup(uri), .resource = r, .parts = parts};
    parts = (struct strv){0};
    map_set(&w->all, uri, x);
    ask(x);
    return 0;
}
