/* mcp/patch_job: see patch_job.h. */
#include "mcp/patch_job.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "mcp/aside.h"
#include "mcp/operation_answer.h"
#include "mcp/patch_record.h"
#include "mcp/recorder.h"

#include <string.h>

/* From so many changes on recording the plan takes longer than handing it to another thread. */
#define PLAN_BESIDE_FROM 64u

void patch_job_fini(struct patch_job *j)
{
    op_record_fini(&j->record);
    patch_result_fini(&j->result);
    free(j->waiting_id);
}

int patch_job_peek(struct patch_job *j)
{
    if (j->op.key != NULL)
        recorder_flush(j->recorder);
    j->status = opstore_peek(j->ledger, &j->op, &j->record, &j->e);
    return j->status;
}

static enum ledger_sync sync_of(const struct patch_job *j)
{
    return j->request.lax ? LEDGER_LAZY : LEDGER_DURABLE;
}

/* ---- before anything is written ---- */

static int record_plan(struct patch_job *j, const struct patch_result *r, struct err *e)
{
    /* The rows of those before come before it. */
    if (ledger_in_memory(j->ledger))
        recorder_flush(j->recorder);
    const struct op_plan plan = {
        .changes = r->changes,
        .n_changes = r->n_changes,
        .inverse = r->inverse_omitted ? NULL : buf_bytes(&r->inverse),
        .inverse_len = r->inverse.len,
    };
    int rc = opstore_begin_planned(j->ledger, &j->op, &plan, sync_of(j), &j->record, e);
    /* The lane keeps requests of one key apart, so nobody can have taken it since the peek. */
    ensure(rc <= 0);
    return rc;
}

static void plan_beside(void *user)
{
    struct patch_job *j = user;
    j->plan_status = record_plan(j, j->plan, &j->plan_e);
}

/* The plan waits: the operation has its id, and no row yet. */
static void let_wait(struct patch_job *j)
{
    j->waiting_id = str_new_id("op-");
    j->op.operation_id = j->waiting_id;
}

static int on_planned(void *user, const struct patch_result *r, struct err *e)
{
    struct patch_job *j = user;
    j->plan = r;
    if (patch_record_may_wait(j->ledger, j->recorder, &j->op, r)) {
        let_wait(j);
        return 0;
    }
    /* Of a patch that waits for nothing, only what is much is worth the hand-over. */
    bool beside = !j->request.lax || r->n_changes >= PLAN_BESIDE_FROM;
    j->planning = beside && aside_begin(j->aside, plan_beside, j);
    return j->planning ? 0 : record_plan(j, r, e);
}

static int on_staged(void *user, struct err *e)
{
    struct patch_job *j = user;
    if (!j->planning)
        return 0;
    aside_wait(j->aside);
    j->planning = false;
    if (j->plan_status < 0)
        *e = j->plan_e;
    return j->plan_status;
}

/* Descriptors add up when the ones of earlier patches are not closed yet. */
static bool on_linger(void *user)
{
    const struct patch_job *j = user;
    return recorder_idle(j->recorder);
}

/* ---- the outcome ---- */

static enum op_status status_of(enum patch_status s)
{
    int status = op_status_of(patch_status_name(s));
    ensure(status >= 0);
    return (enum op_status)status;
}

/* One that could not be recorded is found out at the next start; the caller is told the truth of
 * the files now. */
static void settle(struct patch_job *j, const struct op_outcome *outcome)
{
    int rc =
        j->record.operation_id != NULL
            ? opstore_finish(j->ledger, j->record.operation_id, outcome, LEDGER_LAZY, &j->ledger_e)
            : opstore_record(j->ledger, &j->op, outcome, LEDGER_LAZY, &j->record, &j->ledger_e);
    if (rc < 0)
        log_error("the outcome of a patch was not recorded: %s", j->ledger_e.message);
}

/* Nothing is on the disk, so no change stands in the record either. */
static void settle_refusal(struct patch_job *j)
{
    static const enum err_code unrecorded[] = {
        ERR_OPERATION_KEY_CONFLICT,
        ERR_OPERATION_NOT_FOUND,
        ERR_OPERATION_NOT_REVERTIBLE,
        ERR_LEDGER_FAILED,
    };
    const struct patch_change none = {0};
    const struct op_outcome outcome = {
        .status = OP_REJECTED, .refusal = &j->e, .changes = &none, .n_changes = 0};
    /* A key that another request has, or nothing to undo, is nobody's operation; a ledger that
     * failed will again. */
    for (size_t i = 0; i < ARRAY_LEN(unrecorded); i++) {
        if (j->e.code == unrecorded[i])
            return;
    }
    settle(j, &outcome);
}

static void settle_applied(struct patch_job *j)
{
    bool waits = j->waiting_id != NULL;
    if (waits)
        j->record.operation_id = mem_strdup(j->waiting_id);
    patch_record_applied(j->recorder, j->record.operation_id, waits ? &j->op : NULL, &j->result);
}

/* What stands otherwise than planned is told with its plan. */
static void settle_failed(struct patch_job *j, const struct op_outcome *outcome)
{
    if (j->waiting_id != NULL && record_plan(j, &j->result, &j->ledger_e) < 0)
        log_error("the plan of a patch was not recorded: %s", j->ledger_e.message);
    else
        settle(j, outcome);
}

static void settle_result(struct patch_job *j)
{
    const struct patch_result *r = &j->result;
    const struct op_outcome outcome = {
        .status = status_of(r->status),
        .reason = r->failure,
        .changes = r->changes,
        .n_changes = r->n_changes,
    };
    if (r->status == PATCH_APPLIED && (j->record.operation_id != NULL || j->waiting_id != NULL))
        settle_applied(j);
    else
        settle_failed(j, &outcome);
}

static int get_journal(struct patch_job *j)
{
    if (j->journals == NULL || j->request.check_only)
        return 0;
    return journal_roots_get(j->journals, j->ws, &j->request.journal, &j->e);
}

void patch_job_run(struct patch_job *j)
{
    if (patch_job_peek(j) != 0)
        return;
    j->request.want_diff = j->request.check_only;
    j->request.want_inverse = !j->request.check_only;
    j->request.planned = on_planned;
    j->request.staged = on_staged;
    j->request.may_linger = on_linger;
    j->request.user = j;
    j->status = j->load != NULL ? j->load(j) : 0;
    if (j->status == 0)
        j->status = get_journal(j);
    if (j->status == 0)
        j->status = patch_apply(j->ws, &j->request, &j->result, &j->e);
    if (j->status == 0) {
        settle_result(j);
        return;
    }
    if (j->explain != NULL)
        j->explain(j);
    settle_refusal(j);
}

/* ---- the answer ---- */

/* Whole lines, as many as fit. */
static size_t shown_length(const struct buf *diff)
{
    size_t n = diff->len;
    if (n <= PATCH_DIFF_SHOWN_MAX)
        return n;
    const char *end = memrchr(buf_bytes(diff), '\n', PATCH_DIFF_SHOWN_MAX);
    return end != NULL ? (size_t)(end - buf_bytes(diff)) + 1
                       : utf8_whole_prefix(buf_bytes(diff), PATCH_DIFF_SHOWN_MAX);
}

static void write_diff(const struct patch_result *r, struct jsonw *w)
{
    size_t n = shown_length(&r->diff);
    jsonw_key(w, "diff");
    jsonw_strn(w, buf_bytes(&r->diff), n);
    if (!utf8_valid(buf_bytes(&r->diff), n))
        jsonw_kbool(w, "diff_lossy", true);
    jsonw_kbool(w, "truncated", r->diff_omitted || n < r->diff.len);
}

void patch_job_write(const struct patch_job *j, struct jsonw *w)
{
    const struct patch_result *r = &j->result;
    if (j->status == 1) {
        operation_write_patch(w, &j->record, true);
        return;
    }
    jsonw_kstr(w, "status", patch_status_name(r->status));
    jsonw_kstr(w, "operation_id", j->record.operation_id != NULL ? j->record.operation_id : "");
    jsonw_kbool(w, "replayed", false);
    operation_write_changes(w, r->changes, r->n_changes);
    if (j->op.reverts != NULL)
        jsonw_kstr(w, "reverts", j->op.reverts);
    if (r->status == PATCH_APPLIED)
        jsonw_kbool(w, "durable", r->durable);
    if (r->status == PATCH_CHECKED)
        write_diff(r, w);
    if (r->failure[0] != '\0')
        jsonw_kstr(w, "failure", r->failure);
    if (j->ledger_e.code != ERR_NONE)
        jsonw_kstr(w, "ledger_error", j->ledger_e.message);
}
