/* run/wait: answers about output and status, now or when there is something to say.
 *
 * Theory. A read that has to wait becomes a waiter: on its process (which wakes it), in the
 * runner's list (where it is found by its ticket) and on a timer of its own. It answers once and is
 * gone. A page is built in one buffer of the runner; a callback may start another read, so the
 * buffer is taken out while it is lent.
 */
#include "run/clean.h"
#include "run/managed.h"

#include <errno.h>
#include <string.h>

struct waiter {
    struct list link; /* on its process */
    struct list all;  /* on the runner */
    struct managed *m;
    run_ticket ticket;
    struct run_read ask; /* process_id is not used */
    run_page_fn done;
    void *user;
    struct anchor anchor;
    struct alarm alarm;
};

/* The list as run_status has it. What a kept command leaves goes on growing. */
static const char *const *fill_names(const char ***view, const struct strv *names)
{
    size_t had = 0;
    while (*view != NULL && (*view)[had] != NULL)
        had++;
    if (*view == NULL || had < names->len) {
        free(*view);
        *view = mem_zalloc(names->len + 1, sizeof(char *));
    }
    for (size_t i = 0; i < names->len; i++)
        (*view)[i] = names->items[i];
    (*view)[names->len] = NULL;
    return *view;
}

/* A full disk must not look like an end of the command (B4). */
static const char *output_failed(struct managed *m)
{
    int failed = m->log.spill.failed;
    if (failed == 0)
        return "";
    if (m->output_failed == NULL)
        m->output_failed =
            mem_printf("output could not be stored: %s; only the newest %u bytes are kept",
                       failed == EDQUOT ? "the runner's files hold RUN_SPILL_TOTAL_BYTES already"
                                        : strerror(failed),
                       RUN_RING_BYTES);
    return m->output_failed;
}

/* D2: an operator's choice that makes the sandbox weaker is told with every result. */
static const char *weaker(const struct managed *m)
{
    static const char *const texts[] = {
        "",
        "proc: inherited",
        "debug: true",
        "proc: inherited, debug: true",
        "user_namespaces: true",
        "proc: inherited, user_namespaces: true",
        "debug: true, user_namespaces: true",
        "proc: inherited, debug: true, user_namespaces: true",
    };
    const struct workspace *ws = m->ws;
    unsigned given_up = (unsigned)ws->inherited_proc | (unsigned)ws->debug << 1 |
                        (unsigned)ws->user_namespaces << 2;
    return m->sandboxed ? texts[given_up] : "";
}

void status_fill(struct managed *m, struct run_status *ret)
{
    static const char *const nothing[] = {NULL};
    bool over = m->state == PROCESS_ENDED;
    bool ended = over || m->kept;
    *ret = (struct run_status){
        .process_id = m->id,
        .workspace_id = m->ws->id,
        .state = ended ? RUN_EXITED : RUN_RUNNING,
        .reason = "",
        .sandboxed = m->sandboxed,
        .tty = m->tty,
        .eof = over || stdio_at_eof(m),
        .output_total = m->log.total,
        .output_retained_from = outlog_retained_from(&m->log),
        .started_ms = m->started_us / 1000u,
        .timeout_ms = m->timeout_ms,
        .background_pids = nothing,
        .removed = nothing,
        .created = nothing,
        .background_alive = ended && !over,
        .shares_network = m->shares_network,
        .denials = nothing,
        .weaker = weaker(m),
        .command = m->command,
        .serial = m->serial,
        .sequence = m->sequence,
        .idle_timeout_ms = m->idle_timeout_ms,
        .stopped = m->stopped && !over,
        .output_dropped = outlog_dropped(&m->log),
        .output_failed = output_failed(m),
    };
    if (!ended)
        return;
    ret->termination = m->end.termination;
    ret->exit_code = m->end.exit_code;
    ret->signal = m->end.signal;
    ret->reason = m->end.reason == NULL ? "" : m->end.reason;
    /* Both in whole milliseconds of one count, so that their difference is the time it took. */
    ret->ended_ms = ret->started_ms;
    if (m->started_us > 0 && m->ended_us > m->started_us)
        ret->ended_ms += (m->ended_us - m->started_us) / 1000u;
    else
        ret->ended_ms = m->ended_us / 1000u;
    ret->cpu_us = m->end.cpu_us;
    ret->max_rss_kib = m->end.max_rss_kib;
    ret->background = m->end.background;
    ret->background_pids = fill_names(&m->left, &m->end.left);
    ret->removed = fill_names(&m->removed, &m->end.removed);
    ret->created = fill_names(&m->created, &m->end.created);
    ret->denials = fill_names(&m->denials, &m->end.denials);
}

static uint64_t begin_at(const struct managed *m, const struct run_read *x)
{
    const struct outlog *l = &m->log;
    switch (x->from) {
    case RUN_FROM_OFFSET:
        break;
    case RUN_FROM_LINE:
        return outlog_find_line(l, x->cursor);
    case RUN_FROM_TAIL_LINES:
        return outlog_find_tail(l, x->cursor);
    case RUN_FROM_TAIL_BYTES:
        return x->cursor < l->total ? l->total - x->cursor : 0;
    }
    return x->cursor;
}

/* A line that goes on changes what it shows, so a clean page ends with a whole line when it has
 * one; the rest comes again with the next page. */
static void read_clean(struct managed *m, const struct run_read *x, uint64_t cursor, bool final,
                       struct buf *bytes, struct outlog_page *ret)
{
    autobuf raw = BUF_INIT;
    outlog_read(&m->log, cursor, x->stream, (size_t)x->max_bytes, true, final, &raw, ret);
    const char *end = memrchr(buf_bytes(&raw), '\n', raw.len);
    size_t whole = end == NULL ? raw.len : (size_t)(end + 1 - buf_bytes(&raw));
    if (whole < raw.len && !(final && ret->cursor == m->log.total)) {
        buf_truncate(&raw, 0);
        outlog_read(&m->log, cursor, x->stream, whole, false, final, &raw, ret);
    }
    clean_text(buf_bytes(&raw), raw.len, bytes);
}

/* Build the page; true when it answers the question without more waiting. */
static bool look(struct managed *m, const struct run_read *x, struct buf *bytes,
                 struct run_page *ret)
{
    bool ended = m->state == PROCESS_ENDED;
    if (x->until_exit && !ended && !m->kept && x->wait_ms > 0)
        return false;
    struct outlog_page page = {0};
    uint64_t cursor = begin_at(m, x);
    if (x->clean)
        read_clean(m, x, cursor, ended, bytes, &page);
    else
        outlog_read(&m->log, cursor, x->stream, (size_t)x->max_bytes, x->whole_chars, ended, bytes,
                    &page);
    *ret = (struct run_page){
        .bytes = buf_bytes(bytes),
        .len = bytes->len,
        .cursor = page.cursor,
        .lost = page.lost,
        .retained_from = outlog_retained_from(&m->log),
        .start = page.start,
        .time_ms = outlog_time(&m->log, page.start),
    };
    status_fill(m, &ret->status);
    if (x->from == RUN_FROM_OFFSET && !x->until_exit)
        follow_note(&m->follow, cursor, page.cursor, uv_now(m->home->loop) + 1);
    return ended || x->wait_ms == 0 || (x->until_exit ? m->kept : ret->len > 0);
}

/* The runner's page buffer, empty; goes back by page_return. */
static struct buf page_lend(struct home *home)
{
    struct buf b = home->page;
    home->page = (struct buf)BUF_INIT;
    b.start = 0;
    b.len = 0;
    return b;
}

static void page_return(struct home *home, struct buf *b)
{
    buf_fini(&home->page);
    home->page = *b;
    buf_reset(&home->page, RUN_PAGE_DEFAULT * 2);
}

static void on_gone(struct anchor *a)
{
    free(container_of(a, struct waiter, anchor));
}

static void waiter_leave(struct waiter *w)
{
    list_remove(&w->link);
    list_remove(&w->all);
    alarm_close(&w->alarm);
    anchor_leave(&w->anchor, on_gone);
}

/* Answer it when it can be, or must be. */
static void try_answer(struct waiter *w, bool must)
{
    struct managed *m = w->m;
    struct home *home = m->home;
    struct run_page page;
    struct buf bytes = page_lend(home);
    if (must)
        w->ask.wait_ms = 0;
    if (look(m, &w->ask, &bytes, &page)) {
        run_page_fn done = w->done;
        void *user = w->user;
        waiter_leave(w);
        done(user, &page, NULL);
    }
    page_return(home, &bytes);
}

static void on_alarm(struct alarm *a, void *owner)
{
    try_answer(owner, true);
}

static void limit(struct run_read *x)
{
    if (x->max_bytes == 0)
        x->max_bytes = RUN_PAGE_DEFAULT;
    if (x->max_bytes > RUN_PAGE_MAX)
        x->max_bytes = RUN_PAGE_MAX;
    if (x->wait_ms > RUN_WAIT_MAX_MS)
        x->wait_ms = RUN_WAIT_MAX_MS;
}

static run_ticket wait_later(struct managed *m, const struct run_read *x, run_page_fn done,
                             void *user)
{
    struct waiter *w = mem_new(struct waiter);
    w->m = m;
    w->ticket = ++m->home->next_ticket;
    w->ask = *x;
    w->ask.process_id = NULL;
    w->done = done;
    w->user = user;
    list_append(&m->waiters, &w->link);
    list_append(&m->home->waiters, &w->all);
    alarm_open(&w->alarm, m->home->loop, &w->anchor, on_alarm, w);
    alarm_set(&w->alarm, x->wait_ms);
    return w->ticket;
}

run_ticket wait_read(struct managed *m, const struct run_read *ask, run_page_fn done, void *user)
{
    struct run_read x = *ask;
    struct run_page page;
    struct home *home = m->home;
    limit(&x);
    if (x.from == RUN_FROM_TAIL_BYTES || x.from == RUN_FROM_TAIL_LINES) {
        x.cursor = begin_at(m, &x); /* of now, not of when the answer comes */
        x.from = RUN_FROM_OFFSET;
    }
    struct buf bytes = page_lend(home);
    bool answered = look(m, &x, &bytes, &page);
    if (answered)
        done(user, &page, NULL);
    page_return(home, &bytes);
    return answered ? 0 : wait_later(m, &x, done, user);
}

/* A callback may cancel or add waiters, so no place in the list is kept over one: the first goes to
 * the end and is tried, as often as there were waiters. */
void wait_check(struct managed *m)
{
    size_t n = 0;
    list_each (it, &m->waiters)
        n++;
    while (n-- > 0 && !list_empty(&m->waiters)) {
        struct waiter *w = container_of(m->waiters.next, struct waiter, link);
        list_remove(&w->link);
        list_append(&m->waiters, &w->link);
        try_answer(w, false);
    }
}

bool wait_cancel(struct home *home, run_ticket ticket)
{
    list_each (it, &home->waiters) {
        struct waiter *w = container_of(it, struct waiter, all);
        if (w->ticket == ticket) {
            waiter_leave(w);
            return true;
        }
    }
    return false;
}

void wait_drop(struct managed *m)
{
    list_each (it, &m->waiters)
        waiter_leave(container_of(it, struct waiter, link));
}
