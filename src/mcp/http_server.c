/* mcp/http_server: see http_server.h. */
#include "mcp/http_server.h"

#include "base/log.h"
#include "mcp/http.h"
#include "mcp/listen.h"
#include "mcp/operator_call.h"
#include "sys/unixsock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SWEEP_MS 1000u
/* Connections taken in one turn of the loop. */
#define ACCEPT_MAX 64

/* ---- the sweeper ---- */

static void sweep_conns(struct http_server *h, uint64_t now)
{
    list_each (it, &h->conns) {
        struct http_conn *c = container_of(it, struct http_conn, node);
        if (now >= c->deadline_ms)
            http_conn_overdue(c);
    }
}

static void sweep_sessions(struct http_server *h, uint64_t now)
{
    size_t pos = 0;
    for (struct http_session *s; (s = map_next(&h->sessions, &pos, NULL)) != NULL;) {
        if (!http_session_busy(s) && now - s->used_ms >= HTTP_SESSION_IDLE_MS)
            http_session_free(s);
    }
}

static void drained(struct http_server *h)
{
    void (*done)(void *user) = steal(h->done);
    if (done != NULL)
        done(h->user);
}

static void accept_again(struct http_server *h);

static void on_sweep(uv_timer_t *timer)
{
    struct http_server *h = container_of(timer, struct http_server, sweep);
    uint64_t now = uv_now(timer->loop);
    sweep_conns(h, now);
    sweep_sessions(h, now);
    if (h->draining && now >= h->drain_until)
        drained(h);
    else if (!h->draining)
        accept_again(h);
    if (h->n_conns == 0 && h->sessions.used == 0)
        uv_timer_stop(timer);
}

void http_server_wake(struct http_server *h)
{
    if (!h->over && !uv_is_active((uv_handle_t *)&h->sweep))
        uv_timer_start(&h->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}

/* ---- the next requests ---- */

static void on_turn(uv_idle_t *idle)
{
    struct http_server *h = container_of(idle, struct http_server, turn);
    uv_idle_stop(idle);
    while (!list_empty(&h->ready)) {
        struct http_conn *c = container_of(h->ready.next, struct http_conn, ready);
        list_remove(&c->ready);
        http_conn_resume(c);
    }
}

void http_server_later(struct http_server *h, struct http_conn *c)
{
    list_remove(&c->ready);
    list_append(&h->ready, &c->ready);
    uv_idle_start(&h->turn, on_turn);
}

/* ---- connections ---- */

/* Make room: of those that wait for a request, the one that was silent longest. */
static bool evict(struct http_server *h)
{
    list_each (it, &h->conns) {
        struct http_conn *c = container_of(it, struct http_conn, node);
        if (c->state != HTTP_READING || c->message != NULL)
            continue;
        http_conn_close(c);
        return true;
    }
    return false;
}

static int accept_one(const struct http_listener *l)
{
    if (l->local)
        return unixsock_accept(l->fd);
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct http_listener *l = container_of(poll, struct http_listener, poll);
    struct http_server *h = poll->data;
    for (int i = 0; i < ACCEPT_MAX; i++) {
        int fd = accept_one(l);
        if (fd == -EMFILE || fd == -ENFILE) {
            /* One goes for one that comes; else wait for the sweeper instead of asking again. */
            if (!evict(h))
                uv_poll_stop(poll);
            http_server_wake(h);
            return;
        }
        if (fd == -EAGAIN)
            return;
        if (fd < 0)
            continue;
        if (h->n_conns >= HTTP_CONNECTIONS_MAX && !evict(h))
            close(fd);
        else
            http_conn_new(h, fd, l->local);
    }
}

static void accept_again(struct http_server *h)
{
    for (unsigned i = 0; i < h->n_listeners; i++) {
        if (!uv_is_active((uv_handle_t *)&h->listeners[i].poll))
            uv_poll_start(&h->listeners[i].poll, UV_READABLE, on_connection);
    }
}

/* ---- the end ---- */

static void on_closed(uv_handle_t *handle)
{
    struct http_server *h = handle->data;
    h->handles--;
    http_server_less(h);
}

static void close_listeners(struct http_server *h)
{
    for (unsigned i = 0; i < h->n_listeners; i++) {
        struct http_listener *l = &h->listeners[i];
        if (l->poll.loop != NULL) {
            uv_poll_stop(&l->poll);
            uv_close((uv_handle_t *)&l->poll, on_closed);
        }
        http_listener_close(l);
    }
    h->n_listeners = 0;
}

static void server_free(struct http_server *h)
{
    map_fini(&h->sessions);
    http_policy_fini(&h->policy);
    free(h);
}

void http_server_less(struct http_server *h)
{
    if (h->draining && list_empty(&h->calls) && h->n_conns == 0)
        drained(h);
    if (h->over && h->handles == 0)
        server_free(h);
}

/* Modern calls have sessions of their own, legacy ones share theirs. Ending one may answer others,
 * so no place in the list is kept: the first goes to the end, as often as there were calls. */
static void hang_up_all(struct http_server *h)
{
    size_t pos = 0;
    size_t n = 0;
    list_each (it, &h->calls)
        n++;
    while (n-- > 0 && !list_empty(&h->calls)) {
        struct http_call *x = container_of(h->calls.next, struct http_call, node);
        list_remove(&x->node);
        list_append(&h->calls, &x->node);
        if (x->session == NULL)
            http_call_hang_up(x);
    }
    for (struct http_session *s; (s = map_next(&h->sessions, &pos, NULL)) != NULL;)
        session_hang_up(&s->session);
}

static void close_unused(struct http_server *h)
{
    list_each (it, &h->conns) {
        struct http_conn *c = container_of(it, struct http_conn, node);
        if (c->listens != NULL) {
            http_session_lost(c->listens);
            http_conn_stream_end(c);
        }
        if (c->call == NULL && c->operator_call == NULL && c->out.len == 0)
            http_conn_close(c);
    }
}

void http_server_drain(struct http_server *h, void (*done)(void *user), void *user)
{
    if (h->draining)
        return;
    h->draining = true;
    h->done = done;
    h->user = user;
    h->drain_until = uv_now(h->server->loop) + HTTP_DRAIN_MS;
    uv_timer_start(&h->sweep, on_sweep, HTTP_DRAIN_MS, SWEEP_MS);
    close_listeners(h);
    listen_finish_all(h->server);
    hang_up_all(h);
    close_unused(h);
    http_server_less(h);
}

static void drop_everything(struct http_server *h)
{
    size_t pos = 0;
    for (struct http_session *s; (s = map_next(&h->sessions, &pos, NULL)) != NULL;)
        http_session_free(s);
    while (!list_empty(&h->calls))
        http_call_drop(container_of(h->calls.next, struct http_call, node));
    while (!list_empty(&h->conns))
        http_conn_close(container_of(h->conns.next, struct http_conn, node));
    operator_call_drop_all(h);
}

void http_server_free(struct http_server *h)
{
    if (h == NULL)
        return;
    h->done = NULL;
    h->draining = true;
    close_listeners(h);
    drop_everything(h);
    h->over = true;
    uv_close((uv_handle_t *)&h->turn, on_closed);
    uv_close((uv_handle_t *)&h->sweep, on_closed);
}

/* ---- the start ---- */

static int copy_policy(struct http_server *h, const struct http_options *o, struct err *e)
{
    if (http_policy_set_token(&h->policy, o->token, e) < 0 ||
        http_policy_set_operator_token(&h->policy, o->operator_token, e) < 0)
        return -1;
    if (o->oauth != NULL && (h->policy.oauth = oauth_new(o->oauth, e)) == NULL)
        return -1;
    if (h->policy.oauth != NULL &&
        http_policy_add_host(&h->policy, oauth_authority(h->policy.oauth), e) < 0)
        return err_wrap(e, "--oauth-resource");
    if (o->host != NULL && http_policy_add_host(&h->policy, o->host, e) < 0)
        return err_wrap(e, "--host");
    for (size_t i = 0; o->hosts != NULL && i < o->hosts->len; i++) {
        if (http_policy_add_host(&h->policy, o->hosts->items[i], e) < 0)
            return err_wrap(e, "--allow-host");
    }
    for (size_t i = 0; o->origins != NULL && i < o->origins->len; i++) {
        if (http_policy_add_origin(&h->policy, o->origins->items[i], e) < 0)
            return err_wrap(e, "--allow-origin");
    }
    return 0;
}

static int open_listeners(struct http_server *h, const struct http_options *o, struct err *e)
{
    if (o->activated)
        return http_listen_activated(h->listeners, &h->n_listeners, e);
    if (o->unix_path != NULL)
        return http_listen_unix(h->listeners, &h->n_listeners, o->unix_path, e);
    return http_listen_tcp(h->listeners, &h->n_listeners,
                           o->host != NULL ? o->host : HTTP_HOST_DEFAULT, o->port, e);
}

static int check_reach(const struct http_server *h, struct err *e)
{
    for (unsigned i = 0; i < h->n_listeners; i++) {
        if (!h->listeners[i].loopback && h->policy.token == NULL && h->policy.oauth == NULL)
            return err_set(
                e, ERR_INVALID_ARGUMENT,
                "%s can be reached from other machines, and whoever reaches it can run "
                "commands here: give a token (--token-file FILE or "
                "CODESPACE_HTTP_TOKEN) or the issuer of tokens (--oauth-issuer), or listen on "
                "127.0.0.1 or --unix-socket",
                h->listeners[i].text);
    }
    return 0;
}

static int start_listeners(struct http_server *h, struct err *e)
{
    for (unsigned i = 0; i < h->n_listeners; i++) {
        struct http_listener *l = &h->listeners[i];
        int status = uv_poll_init(h->server->loop, &l->poll, l->fd);
        if (status < 0)
            return err_sys(e, ERR_FILE_OPERATION_FAILED, status, "listen on %s", l->text);
        l->poll.data = h;
        h->handles++;
        uv_poll_start(&l->poll, UV_READABLE, on_connection);
        log_info("listening on %s", l->text);
    }
    return 0;
}

struct http_server *http_server_new(struct server *server, const struct http_options *options,
                                    struct err *e)
{
    struct http_server *h = mem_new(struct http_server);
    h->server = server;
    h->rules = options->rules;
    list_init(&h->conns);
    list_init(&h->calls);
    list_init(&h->operator_calls);
    list_init(&h->ready);
    uv_timer_init(server->loop, &h->sweep);
    uv_idle_init(server->loop, &h->turn);
    h->sweep.data = h->turn.data = h;
    h->handles = 2;
    if (copy_policy(h, options, e) < 0 || open_listeners(h, options, e) < 0 ||
        check_reach(h, e) < 0 || start_listeners(h, e) < 0) {
        http_server_free(h);
        return NULL;
    }
    return h;
}
