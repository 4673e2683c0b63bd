/* mcp/patch_record: see patch_record.h. */
#include "mcp/patch_record.h"

#include "base/log.h"
#include "base/mem.h"
#include "mcp/recorder.h"

#include <string.h>

struct applied {
    struct record record;
    char *operation_id;
    int *linger; /* the files that were replaced: patch_result.linger */
    size_t n_linger;
    /* A plan that waited; workspace_id NULL = it did not. */
    char *workspace_id;
    char *fingerprint;
    struct patch_change *changes;
    size_t n_changes;
    struct buf inverse;
    bool inverse_omitted;
};

bool patch_record_may_wait(const struct ledger *l, struct recorder *recorder,
                           const struct op_request *op, const struct patch_result *plan)
{
    return ledger_in_memory(l) && op->kind == OP_PATCH && op->key == NULL &&
           op->approval_id == NULL && op->work_id == NULL &&
           plan->inverse.len <= PATCH_RECORD_MAX && plan->n_changes <= PATCH_RECORD_CHANGES_MAX &&
           recorder_waiting(recorder) < PATCH_RECORDS_MAX;
}

static int record_both(struct ledger *l, const struct applied *a, const struct op_outcome *outcome,
                       struct err *e)
{
    autorecord ignored = {0};
    const struct op_request op = {.kind = OP_PATCH,
                                  .workspace_id = a->workspace_id,
                                  .fingerprint = a->fingerprint,
                                  .operation_id = a->operation_id};
    const struct op_plan plan = {.changes = a->changes,
                                 .n_changes = a->n_changes,
                                 .inverse = a->inverse_omitted ? NULL : buf_bytes(&a->inverse),
                                 .inverse_len = a->inverse.len};
    return opstore_record_planned(l, &op, &plan, outcome, LEDGER_LAZY, &ignored, e);
}

static void applied_free(struct applied *a)
{
    patch_linger_end(a->linger, a->n_linger);
    for (size_t i = 0; i < a->n_changes; i++)
        free(a->changes[i].path);
    free(a->changes);
    buf_fini(&a->inverse);
    free(a->fingerprint);
    free(a->workspace_id);
    free(a->operation_id);
    free(a);
}

static bool write_applied(struct record *record, struct ledger *l)
{
    static const struct op_outcome outcome = {.status = OP_APPLIED};
    struct applied *a = container_of(record, struct applied, record);
    struct err e;
    int rc = 0;
    if (l != NULL && a->workspace_id != NULL)
        rc = record_both(l, a, &outcome, &e);
    else if (l != NULL)
        rc = opstore_finish(l, a->operation_id, &outcome, LEDGER_LAZY, &e);
    if (rc < 0)
        log_error("the outcome of a patch was not recorded: %s", e.message);
    applied_free(a);
    return rc >= 0;
}

static void take_plan(struct applied *a, const struct op_request *op, struct patch_result *r)
{
    a->workspace_id = mem_strdup(op->workspace_id);
    a->fingerprint = mem_strdup(op->fingerprint);
    a->changes = mem_zalloc(r->n_changes, sizeof(*a->changes));
    a->n_changes = r->n_changes;
    for (size_t i = 0; i < r->n_changes; i++) {
        a->changes[i] = r->changes[i];
        a->changes[i].path = mem_strdup(r->changes[i].path);
    }
    a->inverse = r->inverse;
    r->inverse = (struct buf)BUF_INIT;
    a->inverse_omitted = r->inverse_omitted;
}

void patch_record_applied(struct recorder *recorder, const char *operation_id,
                          const struct op_request *op, struct patch_result *result)
{
    struct applied *a = mem_new(struct applied);
    a->record.write = write_applied;
    a->operation_id = mem_strdup(operation_id);
    a->linger = steal(result->linger);
    a->n_linger = result->n_linger;
    if (op != NULL)
        take_plan(a, op, result);
    recorder_push_quietly(recorder, &a->record);
}
