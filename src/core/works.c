/* core/works: see works.h. */
#include "core/works.h"

#include "base/str.h"
#include "core/works_sql.h"

#include <string.h>

static const char *const state_words[] = {
    [WORK_ACTIVE] = "active",
    [WORK_CLOSING] = "closing",
    [WORK_CLOSED_STATE] = "closed",
};

const char *work_state_name(enum work_state s)
{
    return state_words[s];
}

void work_fini(struct work *w)
{
    free(w->work_id);
    free(w->workspace_id);
    free(w->title);
    *w = (struct work){0};
}

void works_free(struct work *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        work_fini(&items[i]);
    free(items);
}

#define COLUMNS                                                                                    \
    "SELECT seq, work_id, workspace_id, title, state, queue_revision, created_ms, closed_ms"       \
    " FROM works "

static void read_row(sqlite3_stmt *s, struct work *w)
{
    int state =
        ledger_word(state_words, ARRAY_LEN(state_words), (const char *)sqlite3_column_text(s, 4));
    ensure(state >= 0);
    w->seq = sqlite3_column_int64(s, 0);
    w->work_id = ledger_column_dup(s, 1);
    w->workspace_id = ledger_column_dup(s, 2);
    w->title = ledger_column_dup(s, 3);
    w->state = (enum work_state)state;
    w->queue_revision = ledger_column_u64(s, 5);
    w->created_ms = ledger_column_u64(s, 6);
    w->closed_ms = ledger_column_u64(s, 7);
}

int works_load(struct ledger *l, const char *work_id, struct work *ret, struct err *e)
{
    autoquery *s = NULL;
    int row = ledger_query(l, COLUMNS "WHERE work_id=?1", L_ARGS(L_TEXT(work_id)), &s, e);
    if (row == 0)
        return err_set(e, ERR_WORK_NOT_FOUND,
                       "no work \"%.80s\" is in the ledger: it never was, or retention deleted it; "
                       "work_open starts one",
                       work_id);
    if (row == 1)
        read_row(s, ret);
    return row < 0 ? -1 : 0;
}

int works_load_open(struct ledger *l, const char *work_id, struct work *ret, struct err *e)
{
    if (works_load(l, work_id, ret, e) < 0)
        return -1;
    if (ret->state == WORK_CLOSED_STATE)
        return err_set(e, ERR_WORK_CLOSED, "work %s is closed; work_open starts another",
                       ret->work_id);
    return 0;
}

int works_bump(struct ledger *l, const char *work_id, struct err *e)
{
    static const char sql[] =
        "UPDATE works SET queue_revision = queue_revision + 1 WHERE work_id=?1";
    return ledger_put(l, sql, L_ARGS(L_TEXT(work_id)), e);
}

static int check_open(struct ledger *l, const char *workspace_id, const char *title, struct err *e)
{
    static const char sql[] =
        "SELECT count(*) FROM works WHERE workspace_id=?1 AND state<>'closed'";
    int64_t n = 0;
    if (title != NULL && strlen(title) > WORKS_TITLE_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "the title has %zu bytes and WORKS_TITLE_MAX is %u; send a shorter one",
                       strlen(title), WORKS_TITLE_MAX);
    if (ledger_number(l, sql, L_ARGS(L_TEXT(workspace_id)), 0, &n, e) < 0)
        return -1;
    if (n >= (int64_t)WORKS_OPEN_MAX)
        return err_set(e, ERR_RESOURCE_QUEUE_FULL,
                       "%lld works of workspace %s are open (WORKS_OPEN_MAX is %u); finish some",
                       (long long)n, workspace_id, WORKS_OPEN_MAX);
    return 0;
}

static int insert(struct ledger *l, const char *id, const char *workspace_id, const char *title,
                  struct err *e)
{
    static const char sql[] = "INSERT INTO works(work_id, workspace_id, title, state, created_ms)"
                              " VALUES(?1, ?2, ?3, 'active', ?4)";
    return ledger_put(
        l, sql, L_ARGS(L_TEXT(id), L_TEXT(workspace_id), L_TEXT(title), L_INT(ledger_now_ms(l))),
        e);
}

/* The new work's own revision counts what it found, if that was anything. */
static int adopt(struct ledger *l, const char *id, const char *workspace_id, struct err *e)
{
    static const char retime[] =
        "UPDATE intents SET delivery='after_current_work', revision=revision+1, updated_ms=?2"
        " WHERE work_id IS NULL AND workspace_id=?1 AND state IN ('draft','queued')"
        " AND delivery='next_work'";
    static const char attach[] = "UPDATE intents SET work_id=?1 WHERE work_id IS NULL"
                                 " AND workspace_id=?2 AND state IN ('draft','queued')";
    static const char queued[] = "SELECT count(*) FROM intents WHERE work_id=?1 AND state='queued'";
    int64_t n = 0;
    if (ledger_run(l, retime, L_ARGS(L_TEXT(workspace_id), L_INT(ledger_now_ms(l))), e) < 0 ||
        ledger_run(l, attach, L_ARGS(L_TEXT(id), L_TEXT(workspace_id)), e) < 0 ||
        ledger_number(l, queued, L_ARGS(L_TEXT(id)), 0, &n, e) < 0)
        return -1;
    return n == 0 ? 0 : works_bump(l, id, e);
}

int works_open(struct ledger *l, const char *workspace_id, const char *title, struct work *ret,
               struct err *e)
{
    autotxn txn = {0};
    autowork w = {0};
    autofree char *id = str_new_id("work-");
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || check_open(l, workspace_id, title, e) < 0 ||
        insert(l, id, workspace_id, title, e) < 0 || adopt(l, id, workspace_id, e) < 0 ||
        works_load(l, id, &w, e) < 0 || ledger_commit(&txn, e) < 0)
        return -1;
    atomic_fetch_add(&l->open_works, 1);
    *ret = w;
    w = (struct work){0};
    return 0;
}

int works_get(struct ledger *l, const char *work_id, struct work *ret, struct err *e)
{
    autotxn txn = {0};
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0)
        return -1;
    return works_load(l, work_id, ret, e);
}

static int read_list(struct ledger *l, const struct work_filter *f, uint32_t limit,
                     struct work *items, size_t *n, struct err *e)
{
    static const char sql[] = COLUMNS "WHERE (?1 IS NULL OR workspace_id=?1)"
                                      " AND (?2 = 0 OR seq < ?2) ORDER BY seq DESC LIMIT ?3";
    autoquery *s = NULL;
    int row = ledger_query(l, sql, L_ARGS(L_TEXT(f->workspace_id), L_INT(f->before), L_INT(limit)),
                           &s, e);
    for (; row == 1; row = ledger_next(l, s, e))
        read_row(s, &items[(*n)++]);
    return row;
}

int works_list(struct ledger *l, const struct work_filter *filter, struct work **ret, size_t *ret_n,
               struct err *e)
{
    uint32_t limit = filter->limit == 0 ? WORKS_PAGE_DEFAULT : filter->limit;
    if (limit > WORKS_PAGE_MAX)
        return err_set(e, ERR_OUTPUT_LIMIT, "limit %u is above WORKS_PAGE_MAX (%u)", limit,
                       WORKS_PAGE_MAX);
    autotxn txn = {0};
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0)
        return -1;
    struct work *items = mem_zalloc(limit, sizeof(*items));
    size_t n = 0;
    if (read_list(l, filter, limit, items, &n, e) < 0) {
        works_free(items, n);
        return -1;
    }
    *ret = items;
    *ret_n = n;
    return 0;
}

static int count(struct ledger *l, const char *sql, const char *work_id, uint64_t *ret,
                 struct err *e)
{
    int64_t n = 0;
    if (ledger_number(l, sql, L_ARGS(L_TEXT(work_id)), 0, &n, e) < 0)
        return -1;
    *ret = (uint64_t)n;
    return 0;
}

#define COUNT "SELECT count(*) FROM intents WHERE "

static int load_counts(struct ledger *l, const struct work *w, struct work_counts *ret,
                       struct err *e)
{
    static const char queued[] = COUNT "work_id=?1 AND state='queued' AND delivery<>'next_work'";
    static const char claimed[] = COUNT "work_id=?1 AND state='claimed'";
    static const char claimable[] = COUNT WORKS_CLAIMABLE;
    struct work_counts c = {.state = w->state, .queue_revision = w->queue_revision};
    if (count(l, queued, w->work_id, &c.queued, e) < 0 ||
        count(l, claimed, w->work_id, &c.claimed, e) < 0 ||
        count(l, claimable, w->work_id, &c.claimable_now, e) < 0)
        return -1;
    *ret = c;
    return 0;
}

int works_status(struct ledger *l, const char *work_id, struct work_counts *ret, struct err *e)
{
    autotxn txn = {0};
    autowork w = {0};
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0 || works_load(l, work_id, &w, e) < 0)
        return -1;
    return load_counts(l, &w, ret, e);
}

static int close_work(struct ledger *l, const struct work *w, struct err *e)
{
    static const char detach[] =
        "UPDATE intents SET work_id=NULL WHERE work_id=?1 AND state IN ('draft','queued')";
    static const char end[] = "UPDATE works SET state='closed', closed_ms=?2 WHERE work_id=?1";
    if (ledger_run(l, detach, L_ARGS(L_TEXT(w->work_id)), e) < 0)
        return -1;
    return ledger_put(l, end, L_ARGS(L_TEXT(w->work_id), L_INT(ledger_now_ms(l))), e);
}

/* In an open transaction: what finishing means now, done. */
static int finish(struct ledger *l, const struct work *w, struct work_finish *out, struct err *e)
{
    static const char now[] = COUNT "work_id=?1 AND state='queued' AND delivery='next_checkpoint'";
    static const char closing[] = "UPDATE works SET state='closing' WHERE work_id=?1";
    struct work_counts c = {0};
    uint64_t checkpoint = 0;
    if (load_counts(l, w, &c, e) < 0 || count(l, now, w->work_id, &checkpoint, e) < 0)
        return -1;
    *out = (struct work_finish){.queued = c.queued, .state = w->state};
    if (c.claimed > 0 || checkpoint > 0) {
        out->reason = "pending_user_input";
        return 0;
    }
    if (c.queued > 0) {
        out->state = WORK_CLOSING;
        return ledger_put(l, closing, L_ARGS(L_TEXT(w->work_id)), e);
    }
    out->closed = true;
    out->state = WORK_CLOSED_STATE;
    return close_work(l, w, e);
}

int works_finish(struct ledger *l, const char *work_id, struct work_finish *ret, struct err *e)
{
    autotxn txn = {0};
    autowork w = {0};
    struct work_finish out = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || works_load_open(l, work_id, &w, e) < 0 ||
        finish(l, &w, &out, e) < 0 || ledger_commit(&txn, e) < 0)
        return -1;
    if (out.closed)
        atomic_fetch_sub(&l->open_works, 1);
    *ret = out;
    return 0;
}

bool works_any_open(const struct ledger *l)
{
    return atomic_load(&l->open_works) > 0;
}

int works_count_open(struct ledger *l, struct err *e)
{
    int64_t n = 0;
    autotxn txn = {0};
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0 ||
        ledger_number(l, "SELECT count(*) FROM works WHERE state<>'closed'", L_NONE, 0, &n, e) < 0)
        return -1;
    atomic_store(&l->open_works, (long)n);
    return 0;
}

/* 1: *ret is the open work that is meant. */
static int find_hinted(struct ledger *l, const char *workspace_id, const char *work_id,
                       struct work *ret, struct err *e)
{
    static const char named[] = COLUMNS "WHERE workspace_id=?1 AND work_id=?2 AND state<>'closed'";
    static const char only[] = COLUMNS "WHERE workspace_id=?1 AND state<>'closed'"
                                       " AND ?2 IS NULL LIMIT 2";
    autoquery *s = NULL;
    int row = ledger_query(l, work_id == NULL ? only : named,
                           L_ARGS(L_TEXT(workspace_id), L_TEXT(work_id)), &s, e);
    if (row != 1)
        return row;
    read_row(s, ret);
    int more = ledger_next(l, s, e);
    return more < 0 ? -1 : !more;
}

int works_hint(struct ledger *l, const char *workspace_id, const char *work_id,
               struct work_hint *ret, struct err *e)
{
    if (!works_any_open(l))
        return 0;
    static const char pending[] =
        COUNT "work_id=?1 AND state IN ('queued','claimed') AND delivery<>'next_work'";
    autotxn txn = {0};
    autowork w = {0};
    uint64_t n = 0;
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0)
        return -1;
    int found = find_hinted(l, workspace_id, work_id, &w, e);
    if (found != 1)
        return found;
    if (count(l, pending, w.work_id, &n, e) < 0)
        return -1;
    struct work_hint hint = {
        .pending_user_items = (uint32_t)n,
        .queue_revision = w.queue_revision,
    };
    size_t len = strlen(w.work_id);
    ensure(len < sizeof(hint.work_id));
    memcpy(hint.work_id, w.work_id, len);
    *ret = hint;
    return 1;
}

/* Closed works go with their instructions; ended instructions of a work that stays open for months,
 * and cancelled unattached ones, go by age. */
int works_prune(struct ledger *l, struct err *e)
{
    static const char beyond[] = "SELECT seq + 1 FROM works WHERE state='closed'"
                                 " ORDER BY seq DESC LIMIT 1 OFFSET ?1";
    static const char closed[] =
        "DELETE FROM works WHERE seq IN (SELECT seq FROM works WHERE state='closed'"
        " AND (closed_ms < ?1 OR seq < ?2) ORDER BY seq LIMIT ?3)";
    static const char ended[] =
        "DELETE FROM intents WHERE seq IN (SELECT seq FROM intents WHERE"
        " state IN ('done','blocked','cancelled') AND updated_ms < ?1 ORDER BY seq LIMIT ?2)";
    uint64_t now = ledger_now_ms(l);
    uint64_t cutoff = now > l->keep.age_ms ? now - l->keep.age_ms : 0;
    int64_t below = 0;
    if (ledger_number(l, beyond, L_ARGS(L_INT(l->keep.works)), 0, &below, e) < 0)
        return -1;
    int works =
        ledger_run(l, closed, L_ARGS(L_INT(cutoff), L_INT(below), L_INT(LEDGER_PRUNE_BATCH)), e);
    int intents =
        works < 0 ? -1 : ledger_run(l, ended, L_ARGS(L_INT(cutoff), L_INT(LEDGER_PRUNE_BATCH)), e);
    return intents < 0 ? -1 : works + intents;
}
