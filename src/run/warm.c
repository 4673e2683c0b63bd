/* run/warm: see warm.h. */
#include "run/warm.h"

#include "base/log.h"
#include "base/num.h"
#include "run/ends.h"
#include "run/grave.h"
#include "run/places.h"
#include "run/start.h"
#include "sys/fd.h"
#include "sys/scm.h"
#include "sys/session.h"
#include "sys/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum phase {
    PREPARING, /* it has not answered yet */
    STARTING,
    READY,
    RESTING, /* it failed: the record keeps the next one away for a while */
    OVER,    /* given up; commands may still run in it */
};

struct zygote {
    struct list link;
    struct warm *warm;
    struct anchor anchor;
    struct alarm alarm; /* of the start, of idleness, of rest */
    struct watch control, pidfd;
    enum phase phase;
    char *workspace_id;
    uint64_t serial;
    struct buf key;     /* the request that it was made for, without the egress rules */
    char *policy;       /* these, as they are in force in it; "" = a restricted network */
    struct rules rules; /* to its egress proxy */
    uint64_t print;
    struct strv guards; /* what its commands are kept from making (wire/helper) */
    char words[256];    /* the last thing it said that is not an event */
    uint64_t ready_ms;
    uint64_t used_ms;
};

struct warm {
    struct home *home;
    struct places places;
    uint64_t next_serial;
    struct list zygotes; /* in every phase */
    size_t n;
    uint64_t credentials_ms; /* see WARM_CREDENTIALS_MS */
    struct ends ends;        /* of the next command; ENDS_NONE = there are none */
};

/* ---- what a view is built from ---- */

/* The request for a zygote: this one without its command. Nothing of the command's may get in. */
static void write_request(const struct helper_request *r, struct buf *out)
{
    char *const nothing[] = {(char *)"zygote", NULL};
    struct helper_request k = *r;
    k.cwd = r->view.workspace;
    k.tty = false;
    k.keep = false;
    k.zygote = true;
    k.argv = (struct strv){(char **)nothing, 1, 1};
    k.env = (struct strv){0};
    helper_request_write(&k, out);
}

static void write_key(const struct helper_request *r, struct buf *out)
{
    struct helper_request k = *r;
    k.egress = (struct egress_policy){0};
    write_request(&k, out);
}

static char *policy_of(const struct helper_request *r)
{
    struct buf text = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &text);
    if (r->network == HELPER_NETWORK_ENABLED)
        egress_policy_write(&r->egress, &w);
    return buf_steal(&text);
}

static bool key_is(const struct zygote *z, const struct buf *key)
{
    return z->key.len == key->len && memcmp(buf_bytes(&z->key), buf_bytes(key), key->len) == 0;
}

/* ---- the end of one ---- */

static void on_gone(struct anchor *a)
{
    struct zygote *z = container_of(a, struct zygote, anchor);
    buf_fini(&z->key);
    free(z->policy);
    free(z->workspace_id);
    strv_fini(&z->guards);
    free(z);
}

static void leave(struct zygote *z)
{
    list_remove(&z->link);
    rules_close(&z->rules);
    alarm_close(&z->alarm);
    anchor_leave(&z->anchor, on_gone);
}

/* No command goes there any more. One that was ready may have commands, so it is not killed, and
 * on_ended() comes; else the record is done. */
static void give_up(struct zygote *z)
{
    int pidfd = z->phase == PREPARING || z->phase == STARTING ? watch_release(&z->pidfd) : -1;
    if (pidfd >= 0)
        grave_take(&z->warm->home->yard, z->warm->home->loop, pidfd, MANAGED_LINGER_MS);
    watch_close(&z->control);
    if (z->phase != OVER && z->phase != RESTING)
        z->warm->n--;
    z->phase = OVER;
    alarm_stop(&z->alarm);
    if (z->pidfd.fd < 0)
        leave(z);
}

static struct zygote *new_zygote(struct warm *w, const char *workspace_id, const struct buf *key,
                                 const char *policy, uint64_t print);

/* The same, and none for a while. */
static void fail(struct zygote *z, const char *what)
{
    struct warm *w = z->warm;
    log_info("no warm sandbox for workspace '%s': %s; commands start cold", z->workspace_id, what);
    struct zygote *rest = new_zygote(w, z->workspace_id, &z->key, z->policy, z->print);
    w->n--;
    rest->phase = RESTING;
    alarm_set(&rest->alarm, WARM_RETRY_MS);
    give_up(z);
}

static void on_alarm(struct alarm *a, void *owner)
{
    struct zygote *z = owner;
    uint64_t idle_ms = uv_now(z->warm->home->loop) - z->used_ms;
    switch (z->phase) {
    case PREPARING:
    case STARTING:
        fail(z, "it was not ready in time");
        return;
    case READY:
        if (idle_ms < WARM_IDLE_MS)
            alarm_set(a, WARM_IDLE_MS - idle_ms);
        else
            give_up(z);
        return;
    case RESTING:
    case OVER:
        leave(z);
        return;
    }
}

/* ---- the beginning of one ---- */

/* The first thing it says. */
static void on_answer(struct zygote *z, const char *line, size_t n)
{
    struct err e;
    if (start_read_answer(line, n, &z->guards, &e) < 0) {
        fail(z, e.message);
        return;
    }
    z->phase = STARTING;
    alarm_set(&z->alarm, MANAGED_START_MS);
}

/* What it says of itself. A message is a line or a part of bubblewrap's text. */
static void on_said(struct zygote *z, const char *line, size_t n)
{
    struct helper_verdict v;
    n -= n > 0 && line[n - 1] == '\n';
    if (z->phase == PREPARING) {
        on_answer(z, line, n);
        return;
    }
    helper_verdict_read(line, n, &v);
    if (v.event == HELPER_STARTED && z->phase == STARTING) {
        z->phase = READY;
        z->ready_ms = z->used_ms = uv_now(z->warm->home->loop);
        alarm_set(&z->alarm, WARM_IDLE_MS);
        return;
    }
    snprintf(z->words, sizeof(z->words), "%.255s", v.message);
}

/* What it says may be its end for us. */
static void on_control(struct watch *w, void *owner)
{
    struct zygote *z = owner;
    char line[HELPER_LINE_MAX];
    ssize_t n = -EAGAIN;
    while (w->fd >= 0 && (n = fd_read(w->fd, line, sizeof(line))) > 0)
        on_said(z, line, (size_t)n);
    if (w->fd >= 0 && n != -EAGAIN)
        fail(z, z->words[0] != '\0' ? z->words : "it ended");
}

/* What it said before is worth more than that it ended. */
static void on_ended(struct watch *w, void *owner)
{
    struct zygote *z = owner;
    struct spawn_end end;
    bool over = z->phase == OVER;
    if (session_reap(w->fd, false, &end) == -EAGAIN)
        return;
    watch_close(w);
    if (!over)
        on_control(&z->control, z);
    if (over)
        leave(z);
    else if (z->phase != OVER)
        fail(z, z->words[0] != '\0' ? z->words : "it ended");
}

/* The proxy has said whether it obeys other rules now. */
static void on_rules(struct rules *r, bool in_force, const char *policy)
{
    struct zygote *z = container_of(r, struct zygote, rules);
    if (in_force) {
        free(z->policy);
        z->policy = mem_strdup(policy);
    } else if (z->phase == READY) {
        give_up(z);
    }
}

static int spawn_zygote(struct zygote *z, const struct helper_request *r, int *ret_control,
                        struct spawned *ret)
{
    const struct home *home = z->warm->home;
    autobuf text = BUF_INIT;
    autofd int rules = -1;
    int pair[2];
    write_request(r, &text);
    int rc = z->policy[0] != '\0' ? rules_open(&z->rules, home->loop, &z->anchor, &rules) : 0;
    if (rc == 0)
        rc = scm_pair(pair);
    if (rc < 0)
        return rc;
    const int theirs[ENDS_CONTROL + 1] = {-1, -1, -1, pair[1]};
    rc = start_sandbox(home, &text, theirs, rules, ret);
    fd_close(&pair[1]);
    if (rc < 0)
        fd_close(&pair[0]);
    else
        *ret_control = pair[0];
    return rc;
}

static void start(struct zygote *z, const struct helper_request *r)
{
    struct home *home = z->warm->home;
    struct spawned child = {-1, -1};
    int control = -1;
    alarm_set(&z->alarm, START_PREPARE_MS);
    int rc = spawn_zygote(z, r, &control, &child);
    if (rc == 0)
        rc = watch_take(&z->pidfd, home->loop, &z->anchor, &child.pidfd, UV_READABLE, on_ended, z);
    if (rc == 0)
        rc = watch_take(&z->control, home->loop, &z->anchor, &control, UV_READABLE, on_control, z);
    fd_close(&control);
    if (child.pidfd >= 0)
        grave_take(&home->yard, home->loop, child.pidfd, 0);
    if (rc < 0)
        fail(z, strerror(-rc));
}

static struct zygote *new_zygote(struct warm *w, const char *workspace_id, const struct buf *key,
                                 const char *policy, uint64_t print)
{
    struct zygote *z = mem_new(struct zygote);
    list_append(&w->zygotes, &z->link);
    w->n++;
    z->warm = w;
    z->workspace_id = mem_strdup(workspace_id);
    buf_put(&z->key, buf_bytes(key), key->len);
    z->policy = mem_strdup(policy);
    z->serial = ++w->next_serial;
    rules_init(&z->rules);
    z->rules.settled = on_rules;
    z->print = print;
    watch_init(&z->control);
    watch_init(&z->pidfd);
    alarm_open(&z->alarm, w->home->loop, &z->anchor, on_alarm, z);
    return z;
}

/* ---- for commands ---- */

/* The one of a workspace that was not given up. */
static struct zygote *find(const struct warm *w, const char *workspace_id)
{
    list_each (it, &w->zygotes) {
        struct zygote *z = container_of(it, struct zygote, link);
        if (z->phase != OVER && str_eq(z->workspace_id, workspace_id))
            return z;
    }
    return NULL;
}

static bool has_stale_credentials(const struct zygote *z, const struct workspace *ws)
{
    uint64_t age_ms = uv_now(z->warm->home->loop) - z->ready_ms;
    return z->phase == READY && ws->egress.inject.len > 0 && age_ms >= z->warm->credentials_ms;
}

bool warm_ready(struct warm *w, const struct workspace *ws, const struct helper_request *r)
{
    autobuf key = BUF_INIT;
    write_key(r, &key);
    uint64_t print = places_print(&w->places, &r->view);
    struct zygote *z = find(w, ws->id);
    autofree char *policy = policy_of(r);
    bool same = z != NULL && key_is(z, &key) && !has_stale_credentials(z, ws) &&
                (z->print == print || z->phase == RESTING);
    if (same && rules_is_busy(&z->rules)) /* it obeys others, or will in a moment */
        return false;
    if (same && str_eq(z->policy, policy))
        return z->phase == READY;
    if (z != NULL)
        give_up(z);
    if (w->n < WARM_MAX)
        start(new_zygote(w, ws->id, &key, policy, print), r);
    return false;
}

bool warm_send(struct warm *w, const struct workspace *ws, const struct helper_request *r,
               const int fds[WARM_FDS], struct strv *ret_guards)
{
    autobuf message = BUF_INIT;
    struct zygote *z = find(w, ws->id);
    if (z == NULL || z->phase != READY)
        return false;
    warm_command_write(r, &message);
    if (message.len > WARM_MESSAGE_MAX ||
        scm_send(z->control.fd, buf_bytes(&message), message.len, fds, WARM_FDS) < 0)
        return false; /* if it is dead, on_control() is on its way */
    z->used_ms = uv_now(w->home->loop);
    for (size_t i = 0; i < z->guards.len; i++)
        strv_add(ret_guards, z->guards.items[i]);
    return true;
}

bool warm_take_ends(struct warm *w, struct ends *ret)
{
    if (w->ends.control < 0)
        return false;
    *ret = w->ends;
    w->ends = ENDS_NONE;
    return true;
}

void warm_make_ends(struct warm *w)
{
    if (w->ends.control < 0 && (ends_open_pipes(&w->ends) < 0 || ends_open_control(&w->ends) < 0))
        ends_fini(&w->ends);
}

void warm_give_up(struct warm *w, const struct workspace *ws)
{
    struct zygote *z = find(w, ws->id);
    if (z != NULL && z->phase == READY)
        give_up(z);
}

bool warm_is_coming(const struct warm *w, const char *workspace_id)
{
    struct zygote *z = w == NULL ? NULL : find(w, workspace_id);
    return z != NULL && (z->phase == PREPARING || z->phase == STARTING || rules_is_busy(&z->rules));
}

uint64_t warm_serial(const struct warm *w, const char *workspace_id)
{
    struct zygote *z = w == NULL ? NULL : find(w, workspace_id);
    return z == NULL ? 0 : z->serial;
}

void warm_each_rules(struct warm *w, const char *workspace_id,
                     void (*one)(void *user, struct rules *rules, uint64_t serial), void *user)
{
    if (w == NULL)
        return;
    list_each (it, &w->zygotes) {
        struct zygote *z = container_of(it, struct zygote, link);
        bool runs = z->phase == READY || z->phase == OVER;
        if (runs && rules_is_open(&z->rules) && str_eq(z->workspace_id, workspace_id))
            one(user, &z->rules, z->serial);
    }
}

bool warm_is_on(const struct warm *w, const char *workspace_id)
{
    struct zygote *z = w == NULL ? NULL : find(w, workspace_id);
    return z != NULL && z->phase == READY;
}

/* ---- life ---- */

static uint64_t credentials_ms(void)
{
    uint64_t secs = 0;
    const char *text = getenv("CODESPACE_WARM_CREDENTIALS_SECS");
    if (text == NULL)
        return WARM_CREDENTIALS_MS;
    if (num_parse_u64(text, 0, WARM_CREDENTIALS_MS / 1000, &secs) < 0) {
        log_warn("CODESPACE_WARM_CREDENTIALS_SECS: \"%.20s\" is not a number up to %u; that is "
                 "what counts",
                 text, WARM_CREDENTIALS_MS / 1000);
        return WARM_CREDENTIALS_MS;
    }
    return secs * 1000;
}

struct warm *warm_new(struct home *home)
{
    struct warm *w = mem_new(struct warm);
    w->home = home;
    w->credentials_ms = credentials_ms();
    w->ends = ENDS_NONE;
    list_init(&w->zygotes);
    return w;
}

void warm_free(struct warm *w)
{
    while (w != NULL && !list_empty(&w->zygotes)) {
        struct zygote *z = container_of(w->zygotes.next, struct zygote, link);
        int pidfd = watch_release(&z->pidfd);
        if (pidfd >= 0)
            grave_take(&w->home->yard, w->home->loop, pidfd, MANAGED_LINGER_MS);
        if (z->phase == RESTING)
            leave(z);
        else
            give_up(z);
    }
    if (w != NULL) {
        places_fini(&w->places);
        ends_fini(&w->ends);
    }
    free(w);
}
