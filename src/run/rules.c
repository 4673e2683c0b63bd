/* run/rules: see rules.h. */
#include "run/rules.h"

#include "base/mem.h"
#include "sys/fd.h"
#include "wire/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* One read. An answer is shorter. */
#define READ_BYTES 4096u
#define WHY_MAX 512u

struct rules_change {
    struct list link;
    struct anchor anchor;
    struct alarm alarm;
    struct rules_book *book;
    uint64_t ticket;
    char *policy;
    run_rules_fn done; /* NULL: nobody waits any more */
    void *user;
    struct strv changed, others;
    char why[WHY_MAX]; /* the first reason */
    struct list waits; /* by rules_wait.peer */
    bool sent;
};

/* What one channel owes. */
struct rules_wait {
    struct list link;            /* of the channel */
    struct list peer;            /* of the change */
    struct rules_change *change; /* NULL: given up; the answer still comes first */
    char *policy;
    struct strv ids;
};

/* ---- changes ---- */

static void on_gone(struct anchor *a)
{
    struct rules_change *c = container_of(a, struct rules_change, anchor);
    strv_fini(&c->changed);
    strv_fini(&c->others);
    free(c->policy);
    free(c);
}

static void leave(struct rules_change *c)
{
    alarm_close(&c->alarm);
    anchor_leave(&c->anchor, on_gone);
}

/* Whoever is told may free the runner, so it is out of the book before. */
static void check(struct rules_change *c)
{
    if (!c->sent || !list_empty(&c->waits))
        return;
    list_remove(&c->link);
    list_init(&c->link);
    c->book->n--;
    const struct run_rules outcome = {
        .changed = (const char *const *)strv_array(&c->changed),
        .others = (const char *const *)strv_array(&c->others),
        .why = c->why,
    };
    if (c->done != NULL)
        c->done(c->user, &outcome, NULL);
    leave(c);
}

static struct rules_wait *first_of(struct rules_change *c)
{
    return list_empty(&c->waits) ? NULL : container_of(c->waits.next, struct rules_wait, peer);
}

static void detach(struct rules_wait *w)
{
    list_remove(&w->peer);
    list_init(&w->peer);
    w->change = NULL;
}

/* One channel is through with it; NULL = the policy is in force there. */
static void note(struct rules_wait *w, const char *why)
{
    struct rules_change *c = w->change;
    if (c == NULL)
        return;
    detach(w);
    struct strv *to = why == NULL ? &c->changed : &c->others;
    for (size_t i = 0; i < w->ids.len; i++)
        strv_add(to, w->ids.items[i]);
    if (why != NULL && c->why[0] == '\0')
        snprintf(c->why, sizeof(c->why), "%s", why);
    check(c);
}

static void wait_free(struct rules_wait *w)
{
    strv_fini(&w->ids);
    free(w->policy);
    free(w);
}

/* ---- channels ---- */

void rules_init(struct rules *r)
{
    watch_init(&r->watch);
    list_init(&r->waits);
}

bool rules_is_open(const struct rules *r)
{
    return r->watch.fd >= 0;
}

bool rules_is_busy(const struct rules *r)
{
    return !list_empty(&r->waits);
}

static struct rules_wait *first(struct rules *r)
{
    return list_empty(&r->waits) ? NULL : container_of(r->waits.next, struct rules_wait, link);
}

void rules_close(struct rules *r)
{
    watch_close(&r->watch);
    buf_fini(&r->in);
    buf_fini(&r->out);
    for (struct rules_wait *w; (w = first(r)) != NULL;) {
        list_remove(&w->link);
        note(w, "the egress proxy has ended, and with it every way out");
        wait_free(w);
    }
}

/* The answer to the oldest policy. What is none is passed over. */
static void on_line(struct rules *r, const char *line, size_t n)
{
    autojson *obj = NULL;
    struct rules_wait *w = first(r);
    if (w == NULL || json_parse(line, n, &obj, NULL) < 0)
        return;
    const char *event = json_str(json_get(obj, "event"));
    const char *message = json_str(json_get(obj, "message"));
    bool in_force = str_eq(event, "policy");
    if (!in_force && !str_eq(event, "policy_refused"))
        return;
    list_remove(&w->link);
    if (r->settled != NULL)
        r->settled(r, in_force, w->policy);
    note(w, in_force ? NULL : message != NULL ? message : "the egress proxy refused it");
    wait_free(w);
}

static void take_lines(struct rules *r)
{
    const char *lf = NULL;
    while (r->in.len > 0 && (lf = memchr(buf_bytes(&r->in), '\n', r->in.len)) != NULL) {
        size_t n = (size_t)(lf - buf_bytes(&r->in));
        on_line(r, buf_bytes(&r->in), n);
        if (!rules_is_open(r))
            return;
        buf_consume(&r->in, n + 1);
    }
}

static int flush(struct rules *r)
{
    while (r->out.len > 0) {
        ssize_t n = fd_send(r->watch.fd, buf_bytes(&r->out), r->out.len);
        if (n == -EAGAIN)
            break;
        if (n < 0)
            return (int)n;
        buf_consume(&r->out, (size_t)n);
    }
    watch_want(&r->watch, UV_READABLE | (r->out.len > 0 ? UV_WRITABLE : 0));
    return 0;
}

static void on_ready(struct watch *watch, void *owner)
{
    struct rules *r = owner;
    ssize_t n = fd_read(watch->fd, buf_reserve(&r->in, READ_BYTES), READ_BYTES);
    if (n > 0) {
        buf_commit(&r->in, (size_t)n);
        take_lines(r);
    }
    bool over = (n <= 0 && n != -EAGAIN) || r->in.len > READ_BYTES;
    if (rules_is_open(r) && (over || flush(r) < 0))
        rules_close(r);
}

int rules_open(struct rules *r, uv_loop_t *loop, struct anchor *anchor, int *ret_theirs)
{
    int pair[2];
    int rc = fd_socketpair(pair);
    if (rc < 0)
        return rc;
    rc = watch_take(&r->watch, loop, anchor, &pair[0], UV_READABLE, on_ready, r);
    if (rc < 0) {
        fd_close(&pair[0]);
        fd_close(&pair[1]);
        return rc;
    }
    *ret_theirs = pair[1];
    return 0;
}

/* ---- from the policy to the answer ---- */

static void on_late(struct alarm *a, void *owner)
{
    struct rules_change *c = owner;
    char why[WHY_MAX];
    (void)a;
    snprintf(why, sizeof(why),
             "an egress proxy did not answer within %u ms; whether it obeys is not known",
             RULES_ANSWER_MS);
    for (bool last = false; !last;) {
        struct rules_wait *w = first_of(c);
        last = w->peer.next == &c->waits;
        note(w, why); /* the last one ends the change */
    }
}

void rules_book_fini(struct rules_book *b)
{
    list_each (it, &b->changes) {
        struct rules_change *c = container_of(it, struct rules_change, link);
        for (struct rules_wait *w; (w = first_of(c)) != NULL;)
            detach(w);
        list_remove(&c->link);
        leave(c);
    }
    b->n = 0;
}

void rules_book_init(struct rules_book *b, uv_loop_t *loop)
{
    *b = (struct rules_book){.loop = loop};
    list_init(&b->changes);
}

struct rules_change *rules_begin(struct rules_book *b, uint64_t ticket, const char *policy,
                                 run_rules_fn done, void *user, struct err *e)
{
    if (b->n >= RULES_CHANGES_MAX) {
        err_set(e, ERR_LIMIT_EXCEEDED,
                "%u changes of rules are on their way (RULES_CHANGES_MAX); try again",
                RULES_CHANGES_MAX);
        return NULL;
    }
    struct rules_change *c = mem_new(struct rules_change);
    c->book = b;
    c->ticket = ticket;
    c->policy = mem_strdup(policy);
    c->done = done;
    c->user = user;
    list_init(&c->waits);
    list_append(&b->changes, &c->link);
    b->n++;
    alarm_open(&c->alarm, b->loop, &c->anchor, on_late, c);
    return c;
}

void rules_send(struct rules_change *c, struct rules *to, struct strv *ids)
{
    struct rules_wait *w = mem_new(struct rules_wait);
    w->change = c;
    w->policy = mem_strdup(c->policy);
    w->ids = *ids;
    *ids = (struct strv){0};
    list_append(&to->waits, &w->link);
    list_append(&c->waits, &w->peer);
    buf_puts(&to->out, "{\"op\":\"policy\",\"policy\":");
    buf_puts(&to->out, c->policy);
    buf_puts(&to->out, "}\n");
    if (flush(to) < 0)
        rules_close(to);
}

uint64_t rules_sent(struct rules_change *c)
{
    uint64_t ticket = !list_empty(&c->waits) ? c->ticket : 0;
    c->sent = true;
    alarm_set(&c->alarm, RULES_ANSWER_MS);
    check(c);
    return ticket;
}

bool rules_cancel(struct rules_book *b, uint64_t ticket)
{
    list_each (it, &b->changes) {
        struct rules_change *c = container_of(it, struct rules_change, link);
        if (c->ticket != ticket)
            continue;
        c->done = NULL;
        return true;
    }
    return false;
}
