/* core/operations_store: see operations_store.h. Here are the writers; look-ups are in
 * operations_read.c, revert, recovery and retention in operations_recover.c. */
#include "core/operations_store.h"

#include "base/log.h"
#include "base/str.h"
#include "core/operations_sql.h"

#include <stdio.h>
#include <string.h>

static const char *const kind_words[] = {
    [OP_PATCH] = "patch",
    [OP_COMMAND] = "command",
    [OP_REVERT] = "revert",
    [OP_EGRESS] = "egress",
};

static const char *const status_words[] = {
    [OP_UNKNOWN] = "unknown",
    [OP_RUNNING] = "running",
    [OP_APPLIED] = "applied",
    [OP_CHECKED] = "checked",
    [OP_REJECTED] = "rejected",
    [OP_FAILED_ROLLED_BACK] = "failed_rolled_back",
    [OP_FAILED_PARTIAL] = "failed_partial",
    [OP_ENDED] = "ended",
    [OP_LOST] = "lost",
};

const char *const opstore_change_kinds[4] = {
    [PATCH_ADD] = "add",
    [PATCH_UPDATE] = "update",
    [PATCH_DELETE] = "delete",
    [PATCH_MOVE] = "move",
};

const char *op_kind_name(enum op_kind k)
{
    return kind_words[k];
}

const char *op_status_name(enum op_status s)
{
    return status_words[s];
}

int op_status_of(const char *name)
{
    return ledger_word(status_words, ARRAY_LEN(status_words), name);
}

int opstore_not_found(const char *operation_id, struct err *e)
{
    return err_set(e, ERR_OPERATION_NOT_FOUND,
                   "no operation \"%.80s\" is in the ledger: it never was, or retention deleted it",
                   operation_id);
}

int opstore_seq(struct ledger *l, const char *operation_id, int64_t *ret, struct err *e)
{
    return ledger_number(l, "SELECT seq FROM operations WHERE operation_id=?1",
                         L_ARGS(L_TEXT(operation_id)), 0, ret, e);
}

static int check_key(const char *key, struct err *e)
{
    if (key == NULL)
        return 0;
    if (*key == '\0')
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "operation_key is empty; leave it out, or send an id of your own");
    if (strlen(key) > OPSTORE_KEY_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "operation_key has %zu bytes and OPSTORE_KEY_MAX is %u; send a shorter id, "
                       "such as a UUID",
                       strlen(key), OPSTORE_KEY_MAX);
    return 0;
}

/* 1: the key stands for this very request and *ret is it. 0: free. -1. */
static int find_key(struct ledger *l, const struct op_request *q, struct op_record *ret,
                    struct err *e)
{
    static const char sql[] =
        "SELECT seq FROM operations WHERE workspace_id=?1 AND operation_key=?2";
    int64_t seq = 0;
    if (q->key == NULL)
        return 0;
    if (ledger_number(l, sql, L_ARGS(L_TEXT(q->workspace_id), L_TEXT(q->key)), 0, &seq, e) < 0)
        return -1;
    if (seq == 0)
        return 0;
    autorecord found = {0};
    if (opstore_load(l, seq, &found, e) < 0)
        return -1;
    if (found.kind != q->kind || !str_eq(found.fingerprint, q->fingerprint))
        return err_set(e, ERR_OPERATION_KEY_CONFLICT,
                       "operation_key \"%.80s\" was used for another request (%s, a %s); send a "
                       "new key for a new request, or the same request to learn its outcome",
                       q->key, found.operation_id, op_kind_name(found.kind));
    *ret = found;
    found = (struct op_record){0};
    return 1;
}

static int insert(struct ledger *l, const struct op_request *q, const struct op_record *r,
                  struct err *e)
{
    static const char sql[] =
        "INSERT INTO operations(operation_id, workspace_id, kind, operation_key, fingerprint,"
        " work_id, approval_id, reverts, status, created_ms, argv_sha256, process_id, rules)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    return ledger_run(l, sql,
                      L_ARGS(L_TEXT(r->operation_id), L_TEXT(q->workspace_id),
                             L_TEXT(kind_words[q->kind]), L_TEXT(q->key), L_TEXT(q->fingerprint),
                             L_TEXT(q->work_id), L_TEXT(q->approval_id), L_TEXT(q->reverts),
                             L_TEXT(status_words[r->status]), L_INT(r->created_ms),
                             L_TEXT(q->argv_sha256), L_TEXT(q->process_id), L_TEXT(q->rules)),
                      e);
}

/* The record is built from the request: what was just written need not be read. */
static int insert_new(struct ledger *l, const struct op_request *q, struct op_record *ret,
                      struct err *e)
{
    *ret = (struct op_record){
        .operation_id = q->operation_id != NULL ? mem_strdup(q->operation_id) : str_new_id("op-"),
        .workspace_id = mem_strdup(q->workspace_id),
        .key = mem_strdup(q->key),
        .fingerprint = mem_strdup(q->fingerprint),
        .work_id = mem_strdup(q->work_id),
        .approval_id = mem_strdup(q->approval_id),
        .reverts = mem_strdup(q->reverts),
        .reason = mem_strdup(""),
        .plan_note = mem_strdup(""),
        .rules = mem_strdup(q->rules),
        .kind = q->kind,
        .status = q->kind == OP_COMMAND ? OP_RUNNING : OP_UNKNOWN,
        .created_ms = ledger_now_ms(l),
    };
    if (q->argv_sha256 != NULL)
        snprintf(ret->command.argv_sha256, sizeof(ret->command.argv_sha256), "%s", q->argv_sha256);
    if (q->process_id != NULL)
        snprintf(ret->command.process_id, sizeof(ret->command.process_id), "%s", q->process_id);
    op_record_add_event(ret, ret->created_ms, "minted", "", "");
    if (insert(l, q, ret, e) < 0)
        return -1;
    ret->seq = sqlite3_last_insert_rowid(l->db);
    return 0;
}

/* Checking a row's words makes a table of them for each statement, which takes longer than the row:
 * so many rows go into one. */
#define CHANGES_AT_ONCE 32u
#define CHANGE_VALUES 7u

#define INSERT_CHANGES                                                                             \
    "INSERT INTO operation_changes(seq, n, path, kind, before_version, after_version, fuzzy) "     \
    "VALUES"
#define ROW_1 "(?,?,?,?,?,?,?)"
#define ROWS_4 ROW_1 "," ROW_1 "," ROW_1 "," ROW_1
#define ROWS_16 ROWS_4 "," ROWS_4 "," ROWS_4 "," ROWS_4

static void change_values(int64_t seq, const struct patch_change *c, size_t i,
                          struct ledger_value *ret)
{
    const struct ledger_value values[CHANGE_VALUES] = {
        L_INT(seq),        L_INT(i),         L_TEXT(c->path), L_TEXT(opstore_change_kinds[c->kind]),
        L_TEXT(c->before), L_TEXT(c->after), L_INT(c->fuzzy),
    };
    memcpy(ret, values, sizeof(values));
}

static int replace_changes(struct ledger *l, int64_t seq, const struct patch_change *changes,
                           size_t n, struct err *e)
{
    static const char one[] = INSERT_CHANGES ROW_1;
    static const char many[] = INSERT_CHANGES ROWS_16 "," ROWS_16;
    struct ledger_value values[CHANGES_AT_ONCE * CHANGE_VALUES];
    if (ledger_run(l, "DELETE FROM operation_changes WHERE seq=?1", L_ARGS(L_INT(seq)), e) < 0)
        return -1;
    for (size_t i = 0; i < n;) {
        size_t k = n - i >= CHANGES_AT_ONCE ? CHANGES_AT_ONCE : 1;
        for (size_t row = 0; row < k; row++)
            change_values(seq, &changes[i + row], i + row, &values[row * CHANGE_VALUES]);
        if (ledger_run(l, k > 1 ? many : one, values, k * CHANGE_VALUES, e) < 0)
            return -1;
        i += k;
    }
    return 0;
}

static int check_unfinished(struct ledger *l, const char *operation_id, int64_t *ret_seq,
                            struct err *e)
{
    static const char sql[] =
        "SELECT seq, finished_ms IS NOT NULL FROM operations WHERE operation_id=?1";
    autoquery *s = NULL;
    int row = ledger_query(l, sql, L_ARGS(L_TEXT(operation_id)), &s, e);
    if (row == 0)
        return opstore_not_found(operation_id, e);
    if (row < 0)
        return -1;
    if (sqlite3_column_int(s, 1))
        return err_set(e, ERR_INTERNAL, "operation %s was finished before", operation_id);
    *ret_seq = sqlite3_column_int64(s, 0);
    return 0;
}

static int store_inverse(struct ledger *l, int64_t seq, const void *inverse, size_t n,
                         struct err *e)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO operation_inverses(seq, size, inverse) VALUES(?1, ?2, ?3)";
    return ledger_put(l, sql, L_ARGS(L_INT(seq), L_INT(n), L_BLOB(inverse, n)), e);
}

static int store_plan(struct ledger *l, int64_t seq, const struct op_plan *p, struct err *e)
{
    static const char sql[] = "UPDATE operations SET planned_ms=?2, plan_note=?3 WHERE seq=?1";
    bool kept = p->inverse != NULL && p->inverse_len <= OPSTORE_INVERSE_MAX;
    const char *note = p->inverse == NULL || kept
                           ? ""
                           : "no inverse is kept: it is larger than OPSTORE_INVERSE_MAX (64 MiB)";
    if (replace_changes(l, seq, p->changes, p->n_changes, e) < 0)
        return -1;
    if (kept && store_inverse(l, seq, p->inverse, p->inverse_len, e) < 0)
        return -1;
    return ledger_put(l, sql, L_ARGS(L_INT(seq), L_INT(ledger_now_ms(l)), L_TEXT(note)), e);
}

int opstore_settle(struct ledger *l, const char *operation_id, const struct op_outcome *o,
                   bool recovered, int64_t *ret_seq, struct err *e)
{
    static const char sql[] = "UPDATE operations SET status=?2, error_code=?3, reason=?4,"
                              " finished_ms=?5, recovered=?6 WHERE seq=?1";
    const char *code = o->refusal == NULL ? "" : err_info(o->refusal->code)->name;
    const char *reason = o->refusal == NULL ? o->reason : o->refusal->message;
    if (check_unfinished(l, operation_id, ret_seq, e) < 0)
        return -1;
    if (o->changes != NULL && replace_changes(l, *ret_seq, o->changes, o->n_changes, e) < 0)
        return -1;
    return ledger_put(l, sql,
                      L_ARGS(L_INT(*ret_seq), L_TEXT(status_words[o->status]), L_TEXT(code),
                             L_TEXT(reason == NULL ? "" : reason), L_INT(ledger_now_ms(l)),
                             L_INT(recovered)),
                      e);
}

/* Outcome and end in one statement: commands are many. */
static int update_command(struct ledger *l, int64_t seq, const struct op_end *end, struct err *e)
{
    static const char sql[] =
        "UPDATE operations SET termination=?2, exit_code=?3, signal=?4, denials=?5,"
        " started_ms=coalesce(?6, started_ms), ended_ms=?7, status=?8, error_code='', reason=?9,"
        " finished_ms=?10, recovered=0 WHERE seq=?1";
    struct ledger_value values[] = {
        L_INT(seq),
        L_TEXT(end->termination),
        L_INT(end->exit_code),
        L_INT(end->signal),
        L_TEXT(end->denials),
        L_INT(end->started_ms),
        L_INT(end->ended_ms),
        L_TEXT(status_words[end->status]),
        L_TEXT(end->reason == NULL ? "" : end->reason),
        L_INT(ledger_now_ms(l)),
    };
    if (!end->has_exit_code)
        values[2].type = LEDGER_NULL;
    if (end->started_ms == 0)
        values[5].type = LEDGER_NULL;
    return ledger_put(l, sql, values, ARRAY_LEN(values), e);
}

/* `seq` of a row that was just made; 0 = find it, and see that it has no end yet. */
static int settle_command(struct ledger *l, const char *operation_id, int64_t seq,
                          const struct op_end *end, struct err *e)
{
    if (end->denials != NULL && strlen(end->denials) > OPSTORE_DENIALS_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "the denials of %s have %zu bytes and OPSTORE_DENIALS_MAX is %u; record the "
                       "first ones and how many there were",
                       operation_id, strlen(end->denials), OPSTORE_DENIALS_MAX);
    if (seq == 0 && check_unfinished(l, operation_id, &seq, e) < 0)
        return -1;
    return update_command(l, seq, end, e);
}

/* Retention is nobody's request: when it fails the next run tries again. */
static void prune_when_due(struct ledger *l, bool due)
{
    struct err e = {0};
    if (due && ledger_prune(l, &e) < 0)
        log_warn("%s", e.message);
}

/* What follows the new row in its transaction: nothing, a plan, an outcome, both, or an end. */
struct next_step {
    const struct op_plan *plan;
    const struct op_outcome *outcome;
    const struct op_end *end;
};

static int take_step(struct ledger *l, const struct op_record *r, const struct next_step *next,
                     struct err *e)
{
    int64_t seq = 0;
    if (next->plan != NULL && store_plan(l, r->seq, next->plan, e) < 0)
        return -1;
    if (next->outcome != NULL)
        return opstore_settle(l, r->operation_id, next->outcome, false, &seq, e);
    if (next->end != NULL)
        return settle_command(l, r->operation_id, r->seq, next->end, e);
    return 0;
}

static int begin(struct ledger *l, const struct op_request *q, const struct next_step *next,
                 enum ledger_sync sync, struct op_record *ret, struct err *e)
{
    ensure((q->kind == OP_REVERT) == (q->reverts != NULL));
    ensure((q->kind == OP_COMMAND) == (q->argv_sha256 != NULL));
    ensure((q->kind == OP_EGRESS) == (q->rules != NULL));
    if (check_key(q->key, e) < 0)
        return -1;
    autotxn txn = {0};
    autorecord record = {0};
    if (ledger_begin(l, sync, &txn, e) < 0)
        return -1;
    int r = find_key(l, q, &record, e);
    int64_t undone = 0;
    if (r == 0 && q->kind == OP_REVERT &&
        opstore_check_revertible(l, q->workspace_id, q->reverts, &undone, e) < 0)
        return -1;
    if (r == 0 && (insert_new(l, q, &record, e) < 0 || take_step(l, &record, next, e) < 0))
        return -1;
    bool due = r == 0 && l->role == LEDGER_GATEWAY && ++l->since_prune >= LEDGER_PRUNE_EVERY;
    if (r < 0 || ledger_commit(&txn, e) < 0)
        return -1;
    prune_when_due(l, due);
    *ret = record;
    record = (struct op_record){0};
    return r;
}

int opstore_begin(struct ledger *l, const struct op_request *q, enum ledger_sync sync,
                  struct op_record *ret, struct err *e)
{
    return begin(l, q, &(struct next_step){0}, sync, ret, e);
}

int opstore_begin_planned(struct ledger *l, const struct op_request *q, const struct op_plan *plan,
                          enum ledger_sync sync, struct op_record *ret, struct err *e)
{
    return begin(l, q, &(struct next_step){.plan = plan}, sync, ret, e);
}

int opstore_record(struct ledger *l, const struct op_request *q, const struct op_outcome *outcome,
                   enum ledger_sync sync, struct op_record *ret, struct err *e)
{
    return begin(l, q, &(struct next_step){.outcome = outcome}, sync, ret, e);
}

int opstore_record_planned(struct ledger *l, const struct op_request *q, const struct op_plan *plan,
                           const struct op_outcome *outcome, enum ledger_sync sync,
                           struct op_record *ret, struct err *e)
{
    return begin(l, q, &(struct next_step){.plan = plan, .outcome = outcome}, sync, ret, e);
}

int opstore_record_command(struct ledger *l, const struct op_request *q, const struct op_end *end,
                           enum ledger_sync sync, struct op_record *ret, struct err *e)
{
    return begin(l, q, &(struct next_step){.end = end}, sync, ret, e);
}

int opstore_peek(struct ledger *l, const struct op_request *q, struct op_record *ret, struct err *e)
{
    autotxn txn = {0};
    if (check_key(q->key, e) < 0)
        return -1;
    if (q->key == NULL)
        return 0;
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0)
        return -1;
    return find_key(l, q, ret, e);
}

int opstore_plan(struct ledger *l, const char *operation_id, const struct patch_change *changes,
                 size_t n_changes, const void *inverse, size_t inverse_len, enum ledger_sync sync,
                 struct err *e)
{
    struct op_plan plan = {changes, n_changes, inverse, inverse_len};
    int64_t seq = 0;
    autotxn txn = {0};
    if (ledger_begin(l, sync, &txn, e) < 0 || check_unfinished(l, operation_id, &seq, e) < 0 ||
        store_plan(l, seq, &plan, e) < 0)
        return -1;
    return ledger_commit(&txn, e);
}

int opstore_finish(struct ledger *l, const char *operation_id, const struct op_outcome *outcome,
                   enum ledger_sync sync, struct err *e)
{
    int64_t seq = 0;
    autotxn txn = {0};
    if (ledger_begin(l, sync, &txn, e) < 0 ||
        opstore_settle(l, operation_id, outcome, false, &seq, e) < 0)
        return -1;
    return ledger_commit(&txn, e);
}

int opstore_start_command(struct ledger *l, const char *operation_id, const char *process_id,
                          const char *plan_sha256, enum ledger_sync sync, struct err *e)
{
    static const char sql[] =
        "UPDATE operations SET process_id=?2, plan_sha256=?3, started_ms=?4 WHERE seq=?1";
    int64_t seq = 0;
    autotxn txn = {0};
    if (ledger_begin(l, sync, &txn, e) < 0 || check_unfinished(l, operation_id, &seq, e) < 0 ||
        ledger_run(
            l, sql,
            L_ARGS(L_INT(seq), L_TEXT(process_id), L_TEXT(plan_sha256), L_INT(ledger_now_ms(l))),
            e) < 0)
        return -1;
    return ledger_commit(&txn, e);
}

int opstore_end_command(struct ledger *l, const char *operation_id, const struct op_end *end,
                        enum ledger_sync sync, struct err *e)
{
    autotxn txn = {0};
    if (ledger_begin(l, sync, &txn, e) < 0 || settle_command(l, operation_id, 0, end, e) < 0)
        return -1;
    return ledger_commit(&txn, e);
}
