/* mcp/tool_revert: revert_operation.
 *
 * The inverse of an applied patch was kept in the ledger before the patch was written. Undoing is a
 * patch of its own: it applies that inverse, expects every file to have the version that the patch
 * left, and can itself be reverted. When a file has another version, nothing is changed and the
 * answer names the later operations that touched it.
 *
 * The operation is looked up first, because it tells the workspace; what it says is asked again
 * when the revert is recorded. A workspace whose changes a person approves is not changed by this
 * way: the inverse (check_only shows it) can be sent as a patch, which is held as any other.
 */
#include "core/fingerprint.h"
#include "core/policy.h"
#include "mcp/operation_answer.h"
#include "mcp/patch_lane.h"
#include "mcp/recorder.h"
#include "mcp/tool.h"

#include <string.h>

/* Later operations that a refusal names. */
#define NAMED_MAX 8u

struct revert_call {
    struct patch_lane way; /* first: see mcp/patch_lane.c */

    const char *operation_id;
    const char *workspace_id;
    const char *operation_key;
    bool check_only;
    bool durable;

    struct op_record undone;
    struct buf inverse;
    struct patch_expect *expect;
    char fingerprint[LEDGER_HASH_LEN];
};

static void revert_fini(struct request *rq)
{
    struct revert_call *x = rq->state;
    patch_lane_fini(&x->way);
    op_record_fini(&x->undone);
    buf_fini(&x->inverse);
    free(x->expect);
}

/* ---- what stands in the way ---- */

/* Append who changed the files since; an error of the look-up is no reason to hide the first. */
static void say_touched(struct revert_call *x)
{
    struct err *e = &x->way.job.e;
    struct op_touch *touches = NULL;
    size_t n = 0;
    autobuf text = BUF_INIT;
    recorder_flush(x->way.job.recorder);
    if (opstore_touched_since(x->way.job.ledger, x->operation_id, &touches, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n && i < NAMED_MAX; i++)
        buf_printf(&text, "%s%s (%s of %.100s)", i > 0 ? ", " : "", touches[i].operation_id,
                   op_kind_name(touches[i].kind), touches[i].path);
    if (n > NAMED_MAX)
        buf_printf(&text, " and %zu more", n - NAMED_MAX);
    if (n == 0)
        buf_puts(&text, "none that this server recorded (a command, or somebody else)");
    char old[ERR_MESSAGE_MAX];
    memcpy(old, e->message, sizeof(old));
    err_set(e, ERR_VERSION_CONFLICT,
            "%.300s; nothing was changed. Later operations on these files: %s. Revert those first, "
            "or change the files with a patch",
            old, buf_cstr(&text));
    op_touches_free(touches, n);
}

static void explain(struct patch_job *job)
{
    if (job->e.code == ERR_VERSION_CONFLICT)
        say_touched(container_of(job, struct revert_call, way.job));
}

/* ---- the request ---- */

static void look_work(struct request *rq)
{
    struct revert_call *x = rq->state;
    struct patch_job *job = &x->way.job;
    recorder_flush(rq->server->recorder);
    job->status = opstore_get(rq->server->ledger, x->operation_id, &x->undone, &job->e);
}

/* The inverse is read under the lane, after the key was asked: a repeated request finds the
 * operation reverted, by itself. */
static int load_inverse(struct patch_job *job)
{
    struct revert_call *x = container_of(job, struct revert_call, way.job);
    if (opstore_inverse(job->ledger, x->operation_id, &x->inverse, &job->e) < 0)
        return -1;
    job->request.text = buf_bytes(&x->inverse);
    job->request.text_len = x->inverse.len;
    return 0;
}

static void fill(struct revert_call *x)
{
    struct patch_job *job = &x->way.job;
    const struct op_record *r = &x->undone;
    x->expect = mem_zalloc(r->n_changes + 1, sizeof(*x->expect));
    for (size_t i = 0; i < r->n_changes; i++) {
        const char *after = r->changes[i].after;
        x->expect[i] =
            (struct patch_expect){r->changes[i].path, after[0] != '\0' ? after : "absent"};
    }
    job->request = (struct patch_request){
        .expect = x->expect,
        .n_expect = r->n_changes,
        .check_only = x->check_only,
        .format = PATCH_FORMAT_UNIFIED,
        .is_inverse = true,
        .lax = job->request.lax,
    };
    fingerprint_revert(job->ws->id, x->operation_id, x->check_only, job->request.lax,
                       x->fingerprint);
    job->op = (struct op_request){.kind = OP_REVERT,
                                  .key = x->operation_key,
                                  .fingerprint = x->fingerprint,
                                  .reverts = x->operation_id};
    job->load = load_inverse;
    job->explain = explain;
}

static int check(struct request *rq)
{
    struct revert_call *x = rq->state;
    struct patch_job *job = &x->way.job;
    const char *id = x->undone.workspace_id;
    if (x->workspace_id != NULL && strcmp(x->workspace_id, id) != 0)
        return err_set(&job->e, ERR_OPERATION_NOT_FOUND,
                       "operation %.80s is of workspace %.64s, not of %.64s", x->operation_id, id,
                       x->workspace_id);
    job->ws = registry_get(rq->server->registry, id, &job->e);
    if (job->ws == NULL || policy_check(job->ws, POLICY_WRITE, &job->e) < 0)
        return -1;
    if (job->ws->approvals == APPROVALS_CONFIRM && !x->check_only)
        return err_set(&job->e, ERR_APPROVAL_REQUIRED,
                       "a person approves the changes of workspace %s one by one, and a revert is "
                       "not held: ask for the inverse with check_only and send it as apply_patch",
                       job->ws->id);
    return 0;
}

static void look_after(struct request *rq)
{
    struct revert_call *x = rq->state;
    if (x->way.job.status < 0 || check(rq) < 0) {
        request_fail(rq, &x->way.job.e);
        return;
    }
    x->way.job.request.lax = request_given(rq, "durable") && !x->durable;
    fill(x);
    patch_lane_run(rq, &x->way);
}

static void revert_run(struct request *rq)
{
    request_pool(rq, 0, look_work, look_after);
}

#define AT(member) offsetof(struct revert_call, member)
static const struct json_field in[] = {
    {"operation_id", JSON_STR, JSON_REQUIRED, AT(operation_id), 1, 0, NULL,
     "The applied patch or revert to undo.", NULL},
    {"workspace_id", JSON_STR, 0, AT(workspace_id), 1, 0, NULL,
     "Refuse unless it is an operation of this workspace.", NULL},
    {"operation_key", JSON_STR, 0, AT(operation_key), 1, OPSTORE_KEY_MAX, NULL,
     "A key of yours for this request: sent again, it is not done again.", NULL},
    {"check_only", JSON_BOOL, 0, AT(check_only), 0, 0, NULL,
     "Change nothing; tell whether it can be undone, and the diff that does it.", "false"},
    {"durable", JSON_BOOL, 0, AT(durable), 0, 0, NULL,
     "Answer when the bytes are on the disk; false is faster and may lose them with the power.",
     "true"},
    TOOL_IGNORED_FIELDS,
};
#undef AT

static const struct output_field out[] = {OPERATION_PATCH_OUT};

const struct tool tool_revert_operation = {
    .name = "revert_operation",
    .title = "Undo a patch",
    .description =
        "Undoes an applied patch, all of it or nothing: every file gets the bytes that it had "
        "before, when it still has those that the patch left. Else nothing changes and the error "
        "names the later operations on the same files. The undoing is an operation of its own and "
        "can be undone.",
    .hints = TOOL_DESTROYS,
    .in = in,
    .n_in = ARRAY_LEN(in),
    .out = out,
    .n_out = ARRAY_LEN(out),
    .state_size = sizeof(struct revert_call),
    .run = revert_run,
    .cancel = patch_lane_cancel,
    .fini = revert_fini,
};
