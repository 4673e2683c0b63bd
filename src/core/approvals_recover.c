/* core/approvals_recover: holds that a crash left between granted and consumed, and retention. */
#include "base/jsonw.h"
#include "base/str.h"
#include "core/approvals_sql.h"
#include "core/operations_sql.h"

static void write_ambiguous(const struct approval *a, const struct op_record *op, struct buf *ret)
{
    struct jsonw w;
    jsonw_init(&w, ret);
    jsonw_object(&w);
    jsonw_kstr(&w, "code", err_info(ERR_APPROVAL_AMBIGUOUS)->name);
    jsonw_kstr(&w, "message",
               "the gateway ended while it ran this command; whether it ran, and how far, is not "
               "known, and it is not run again. Look at what it should have done, then ask again");
    jsonw_kstr(&w, "approval_id", a->approval_id);
    if (op->operation_id != NULL)
        jsonw_kstr(&w, "operation_id", op->operation_id);
    jsonw_object_end(&w);
}

static int find_operation(struct ledger *l, const char *approval_id, struct op_record *ret,
                          struct err *e)
{
    static const char sql[] =
        "SELECT seq FROM operations WHERE approval_id=?1 ORDER BY seq DESC LIMIT 1";
    int64_t seq = 0;
    if (ledger_number(l, sql, L_ARGS(L_TEXT(approval_id)), 0, &seq, e) < 0)
        return -1;
    return seq == 0 ? 0 : opstore_load(l, seq, ret, e);
}

/* A patch writes nothing before its operation row is durable, so no row means that it did not
 * run. */
static int recover_one(struct ledger *l, const struct approval *a, approval_render_fn render,
                       void *user, struct approval_recovery *counts, struct err *e)
{
    autorecord op = {0};
    autobuf result = BUF_INIT;
    int found = a->state == APPROVAL_QUEUED ? 0 : find_operation(l, a->approval_id, &op, e);
    if (found < 0)
        return -1;
    bool command = a->tool == APPROVAL_EXEC_COMMAND && a->state == APPROVAL_RESUMING;
    if (found == 0 && !command) {
        counts->requeued++;
        return approvals_step(l, a, APPROVAL_REQUEUE, e);
    }
    if (command)
        write_ambiguous(a, &op, &result);
    else
        render(user, &op, &result);
    counts->ambiguous += command;
    counts->recovered += !command;
    return approvals_consume(l, a, buf_cstr(&result), command, e);
}

static int load_interrupted(struct ledger *l, struct strv *ret, struct err *e)
{
    static const char sql[] = "SELECT approval_id FROM approvals"
                              " WHERE state IN ('queued','resuming') ORDER BY seq";
    autoquery *s = NULL;
    int row = ledger_query(l, sql, L_NONE, &s, e);
    for (; row == 1; row = ledger_next(l, s, e))
        strv_add_take(ret, ledger_column_dup(s, 0));
    return row;
}

int approvals_recover(struct ledger *l, approval_render_fn render, void *user,
                      struct approval_recovery *ret, struct err *e)
{
    autotxn txn = {0};
    autostrv ids = {0};
    struct approval_recovery counts = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || load_interrupted(l, &ids, e) < 0)
        return -1;
    for (size_t i = 0; i < ids.len; i++) {
        autoapproval a = {0};
        if (approvals_load(l, ids.items[i], &a, e) < 0 ||
            recover_one(l, &a, render, user, &counts, e) < 0)
            return -1;
    }
    if (ledger_commit(&txn, e) < 0)
        return -1;
    ledger_fold_log(l);
    *ret = counts;
    return 0;
}

/* Only ended holds go. */
int approvals_prune(struct ledger *l, struct err *e)
{
    static const char sql[] =
        "DELETE FROM approvals WHERE seq IN (SELECT seq FROM approvals"
        " WHERE state IN ('denied','consumed') AND (ended_ms < ?1 OR seq < ?2) ORDER BY seq"
        " LIMIT ?3)";
    static const char beyond[] = "SELECT seq + 1 FROM approvals WHERE state IN"
                                 " ('denied','consumed') ORDER BY seq DESC LIMIT 1 OFFSET ?1";
    uint64_t now = ledger_now_ms(l);
    uint64_t cutoff = now > l->keep.age_ms ? now - l->keep.age_ms : 0;
    int64_t below = 0;
    if (ledger_number(l, beyond, L_ARGS(L_INT(l->keep.approvals)), 0, &below, e) < 0)
        return -1;
    return ledger_run(l, sql, L_ARGS(L_INT(cutoff), L_INT(below), L_INT(LEDGER_PRUNE_BATCH)), e);
}
