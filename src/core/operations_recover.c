/* core/operations_recover: undoing, settling after a crash, and retention of
 * core/operations_store. */
#include "base/str.h"
#include "core/operations_sql.h"

#include <string.h>

static int refuse(const char *operation_id, const char *why, struct err *e)
{
    return err_set(e, ERR_OPERATION_NOT_REVERTIBLE, "operation %.80s cannot be reverted: %s",
                   operation_id, why);
}

/* NULL: it may. An applied revert can itself be reverted. */
static const char *why_not(const struct op_record *r)
{
    if (r->kind == OP_COMMAND)
        return "it is a command, and what a command changed is not recorded";
    if (r->kind == OP_EGRESS)
        return "the operator changed what may be reached, and only the operator changes it back";
    if (r->status != OP_APPLIED)
        return "only an applied patch has something to undo; see its status";
    if (r->inverse_size == 0)
        return "its inverse is not kept (too large, or let go by retention); write a patch that "
               "undoes it";
    return NULL;
}

static int check_not_reverted(struct ledger *l, const char *operation_id, struct err *e)
{
    static const char sql[] = "SELECT operation_id FROM operations WHERE reverts=?1"
                              " AND (finished_ms IS NULL OR status='applied') LIMIT 1";
    autoquery *s = NULL;
    int row = ledger_query(l, sql, L_ARGS(L_TEXT(operation_id)), &s, e);
    if (row <= 0)
        return row;
    return err_set(e, ERR_OPERATION_NOT_REVERTIBLE,
                   "operation %.80s is reverted already, by %s; revert that one to have it back",
                   operation_id, (const char *)sqlite3_column_text(s, 0));
}

int opstore_check_revertible(struct ledger *l, const char *workspace_id, const char *operation_id,
                             int64_t *ret_seq, struct err *e)
{
    int64_t seq = 0;
    autorecord r = {0};
    if (opstore_seq(l, operation_id, &seq, e) < 0)
        return -1;
    int there = seq == 0 ? 0 : opstore_load(l, seq, &r, e);
    if (there < 0)
        return -1;
    if (there == 0 || (workspace_id != NULL && !str_eq(workspace_id, r.workspace_id)))
        return opstore_not_found(operation_id, e);
    const char *why = why_not(&r);
    if (why != NULL)
        return refuse(operation_id, why, e);
    if (check_not_reverted(l, operation_id, e) < 0)
        return -1;
    *ret_seq = seq;
    return 0;
}

int opstore_inverse(struct ledger *l, const char *operation_id, struct buf *ret, struct err *e)
{
    autotxn txn = {0};
    int64_t seq = 0;
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0 ||
        opstore_check_revertible(l, NULL, operation_id, &seq, e) < 0)
        return -1;
    autoquery *s = NULL;
    int row = ledger_query(l, "SELECT inverse FROM operation_inverses WHERE seq=?1",
                           L_ARGS(L_INT(seq)), &s, e);
    if (row == 1)
        buf_put(ret, sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0));
    return row < 0 ? -1 : 0;
}

void op_touches_free(struct op_touch *touches, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(touches[i].operation_id);
        free(touches[i].path);
    }
    free(touches);
}

static int read_touches(struct ledger *l, int64_t seq, struct op_touch *touches, size_t *n,
                        struct err *e)
{
    static const char sql[] =
        "SELECT o.operation_id, c.path, o.kind='revert', o.status FROM operations o"
        " JOIN operation_changes c ON c.seq = o.seq"
        " WHERE o.workspace_id = (SELECT workspace_id FROM operations WHERE seq=?1) AND o.seq > ?1"
        " AND o.status IN ('applied','failed_partial','unknown')"
        " AND c.path IN (SELECT path FROM operation_changes WHERE seq=?1)"
        " ORDER BY o.seq, c.n LIMIT ?2";
    autoquery *s = NULL;
    int row = ledger_query(l, sql, L_ARGS(L_INT(seq), L_INT(OPSTORE_TOUCHED_MAX)), &s, e);
    for (; row == 1; row = ledger_next(l, s, e)) {
        struct op_touch *t = &touches[(*n)++];
        t->operation_id = ledger_column_dup(s, 0);
        t->path = ledger_column_dup(s, 1);
        t->kind = sqlite3_column_int(s, 2) != 0 ? OP_REVERT : OP_PATCH;
        t->status = (enum op_status)op_status_of((const char *)sqlite3_column_text(s, 3));
    }
    return row;
}

int opstore_touched_since(struct ledger *l, const char *operation_id, struct op_touch **ret,
                          size_t *ret_n, struct err *e)
{
    autotxn txn = {0};
    int64_t seq = 0;
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0 || opstore_seq(l, operation_id, &seq, e) < 0)
        return -1;
    if (seq == 0)
        return opstore_not_found(operation_id, e);
    struct op_touch *touches = mem_zalloc(OPSTORE_TOUCHED_MAX, sizeof(*touches));
    size_t n = 0;
    if (read_touches(l, seq, touches, &n, e) < 0) {
        op_touches_free(touches, n);
        return -1;
    }
    *ret = touches;
    *ret_n = n;
    return 0;
}

/* What the disk says of a plan; OP_UNKNOWN when it fits neither end. */
static enum op_status judge(const struct op_record *r, op_observe_fn observe, void *user)
{
    bool all_after = r->planned_ms != 0 && r->n_changes > 0;
    bool all_before = all_after;
    for (size_t i = 0; i < r->n_changes && (all_after || all_before); i++) {
        char now[FILES_VERSION_LEN] = "";
        if (observe(user, r->workspace_id, r->changes[i].path, now) < 0)
            return OP_UNKNOWN;
        all_after = all_after && strcmp(now, r->changes[i].after) == 0;
        all_before = all_before && strcmp(now, r->changes[i].before) == 0;
    }
    if (all_after)
        return OP_APPLIED;
    return all_before ? OP_FAILED_ROLLED_BACK : OP_UNKNOWN;
}

static int settle_judged(struct ledger *l, const char *operation_id, enum op_status status,
                         struct err *e)
{
    struct op_outcome outcome = {
        .status = status,
        .reason = status == OP_APPLIED
                      ? "found at start: every file has the version that was planned"
                      : "found at start: no file was changed, or every change was undone",
    };
    autotxn txn = {0};
    int64_t seq = 0;
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 ||
        opstore_settle(l, operation_id, &outcome, true, &seq, e) < 0)
        return -1;
    return ledger_commit(&txn, e);
}

static int recover_one(struct ledger *l, const char *operation_id, op_observe_fn observe,
                       void *user, struct op_recovery *counts, struct err *e)
{
    autorecord r = {0};
    if (opstore_get(l, operation_id, &r, e) < 0)
        return -1;
    enum op_status status = judge(&r, observe, user);
    if (status == OP_UNKNOWN) {
        counts->left++;
        return 0;
    }
    if (settle_judged(l, operation_id, status, e) < 0)
        return -1;
    counts->applied += status == OP_APPLIED;
    counts->rolled_back += status == OP_FAILED_ROLLED_BACK;
    return 0;
}

static int list_unfinished(struct ledger *l, struct strv *ret, struct err *e)
{
    static const char sql[] = "SELECT operation_id FROM operations WHERE finished_ms IS NULL"
                              " AND kind<>'command' ORDER BY seq DESC";
    autotxn txn = {0};
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0)
        return -1;
    autoquery *s = NULL;
    int row = ledger_query(l, sql, L_NONE, &s, e);
    for (; row == 1; row = ledger_next(l, s, e))
        strv_add_take(ret, ledger_column_dup(s, 0));
    return row;
}

int opstore_recover(struct ledger *l, op_observe_fn observe, void *user, struct op_recovery *ret,
                    struct err *e)
{
    autostrv ids = {0};
    struct op_recovery counts = {0};
    if (list_unfinished(l, &ids, e) < 0)
        return -1;
    for (size_t i = 0; i < ids.len; i++) {
        if (recover_one(l, ids.items[i], observe, user, &counts, e) < 0)
            return -1;
    }
    *ret = counts;
    return 0;
}

static int list_running(struct ledger *l, struct strv *ret, struct err *e)
{
    static const char sql[] = "SELECT operation_id FROM operations WHERE finished_ms IS NULL"
                              " AND kind='command' ORDER BY seq";
    autoquery *s = NULL;
    int row = ledger_query(l, sql, L_NONE, &s, e);
    for (; row == 1; row = ledger_next(l, s, e))
        strv_add_take(ret, ledger_column_dup(s, 0));
    return row;
}

int opstore_lose_commands(struct ledger *l, struct err *e)
{
    static const struct op_outcome lost = {
        .status = OP_LOST,
        .reason = "the gateway ended before the end of the command was seen",
    };
    autostrv ids = {0};
    autotxn txn = {0};
    if (ledger_begin(l, LEDGER_LAZY, &txn, e) < 0 || list_running(l, &ids, e) < 0)
        return -1;
    for (size_t i = 0; i < ids.len; i++) {
        int64_t seq = 0;
        if (opstore_settle(l, ids.items[i], &lost, true, &seq, e) < 0)
            return -1;
    }
    return ledger_commit(&txn, e) < 0 ? -1 : (int)ids.len;
}

/* Never: unfinished, held by an active approval, about to be undone, or the newest (so that its
 * number does not come back). Rows are made in the order
 * of their age, so the old ones are a prefix and the scan ends at the first young one. */
#define DELETE_BELOW                                                                               \
    "DELETE FROM operations WHERE seq IN (SELECT o.seq FROM operations o WHERE o.seq < ?1"         \
    " AND o.finished_ms IS NOT NULL AND o.finished_ms < ?2"                                        \
    " AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.approval_id = o.approval_id"               \
    "  AND a.state IN ('pending','granted','queued','resuming'))"                                  \
    " AND NOT EXISTS (SELECT 1 FROM operations r WHERE r.reverts = o.operation_id"                 \
    "  AND r.finished_ms IS NULL) ORDER BY o.seq LIMIT ?3)"

static int prune_rows(struct ledger *l, struct err *e)
{
    static const char first_young[] =
        "SELECT seq FROM operations WHERE created_ms >= ?1 ORDER BY seq LIMIT 1";
    static const char beyond_count[] =
        "SELECT seq + 1 FROM operations ORDER BY seq DESC LIMIT 1 OFFSET ?1";
    uint64_t now = ledger_now_ms(l);
    uint64_t cutoff = now > l->keep.age_ms ? now - l->keep.age_ms : 0;
    int64_t young = 0;
    int64_t newest = 0;
    int64_t beyond = 0;
    if (ledger_number(l, "SELECT max(seq) FROM operations", L_NONE, 0, &newest, e) < 0 ||
        ledger_number(l, first_young, L_ARGS(L_INT(cutoff)), newest, &young, e) < 0 ||
        ledger_number(l, beyond_count, L_ARGS(L_INT(l->keep.operations)), 0, &beyond, e) < 0)
        return -1;
    int old = ledger_run(l, DELETE_BELOW,
                         L_ARGS(L_INT(young), L_INT(cutoff), L_INT(LEDGER_PRUNE_BATCH)), e);
    int many =
        old < 0 ? -1
                : ledger_run(l, DELETE_BELOW,
                             L_ARGS(L_INT(beyond), L_INT(INT64_MAX), L_INT(LEDGER_PRUNE_BATCH)), e);
    return many < 0 ? -1 : old + many;
}

/* The inverse of an unfinished operation is what it is rolled back with. */
static int prune_inverses(struct ledger *l, struct err *e)
{
    static const char sum[] = "SELECT sum(size) FROM operation_inverses";
    static const char drop[] =
        "DELETE FROM operation_inverses WHERE seq IN (SELECT seq FROM (SELECT seq,"
        " sum(size) OVER (ORDER BY seq DESC) AS total FROM operation_inverses)"
        " WHERE total > ?1 AND seq NOT IN (SELECT seq FROM operations WHERE finished_ms IS NULL)"
        " ORDER BY seq LIMIT ?2)";
    int64_t bytes = 0;
    if (ledger_number(l, sum, L_NONE, 0, &bytes, e) < 0)
        return -1;
    if ((uint64_t)bytes <= l->keep.inverse_bytes)
        return 0;
    return ledger_run(l, drop, L_ARGS(L_INT(l->keep.inverse_bytes), L_INT(LEDGER_PRUNE_BATCH)), e);
}

int opstore_prune(struct ledger *l, struct err *e)
{
    int rows = prune_rows(l, e);
    int inverses = rows < 0 ? -1 : prune_inverses(l, e);
    return inverses < 0 ? -1 : rows + inverses;
}
