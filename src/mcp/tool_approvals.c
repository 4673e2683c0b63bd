/* mcp/tool_approvals: approval_create, approval_resolve, operation_resume.
 *
 * What a caller can do about calls that wait for a person: hold one on purpose, look, withdraw, and
 * have a granted one run. Granting is the operator's side (mcp/http_operator, the question that a
 * client shows, the command line); the caller grants only where the operator wrote
 * approvals.self_grant. All of it but the run itself is a question to the ledger, on the pool.
 */
#include "base/str.h"
#include "core/policy.h"
#include "mcp/approval_gate.h"
#include "mcp/approval_run.h"
#include "mcp/tool.h"

#include <string.h>

static const char *const tool_names[] = {
    [APPROVAL_APPLY_PATCH] = "apply_patch", [APPROVAL_EXEC_COMMAND] = "exec_command", NULL};

/* ---- approval_create ---- */

struct create_call {
    int tool;
    struct json_object *arguments;
    const struct workspace *ws;
    struct approval hold;
    int status;
    struct err e;
};

static void create_fini(struct request *rq)
{
    struct create_call *x = rq->state;
    approval_fini(&x->hold);
}

static const struct tool *held_tool(const struct create_call *x)
{
    return x->tool == APPROVAL_APPLY_PATCH ? &tool_apply_patch : &tool_exec_command;
}

static void create_work(struct request *rq)
{
    struct create_call *x = rq->state;
    x->status = approval_hold(rq->server->ledger, held_tool(x), (enum approval_tool)x->tool,
                              x->ws->id, x->arguments, &x->hold, &x->e);
}

static void create_after(struct request *rq)
{
    struct create_call *x = rq->state;
    if (x->status < 0) {
        request_fail(rq, &x->e);
        return;
    }
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "approval_id", x->hold.approval_id);
    jsonw_kstr(w, "state", approval_state_name(x->hold.state));
    request_finish(rq);
}

static int check_arguments(struct create_call *x)
{
    const struct tool *t = held_tool(x);
    bool patch = x->tool == APPROVAL_APPLY_PATCH;
    autofree void *state = mem_zalloc(1, t->state_size);
    if (json_read(x->arguments, "arguments", t->in, t->n_in, state,
                  patch ? ERR_INVALID_PATCH : ERR_INVALID_COMMAND, &x->e) < 0)
        return -1;
    struct json_object *argv = json_get(x->arguments, "command");
    const char *first = patch ? "" : json_str(json_object_array_get_idx(argv, 0));
    if (!patch && (first == NULL || first[0] == '\0'))
        return err_set(&x->e, ERR_INVALID_COMMAND,
                       "arguments.command: must name a program and its arguments");
    return 0;
}

static int create_admit(struct request *rq)
{
    struct create_call *x = rq->state;
    enum policy_action action = x->tool == APPROVAL_APPLY_PATCH ? POLICY_WRITE : POLICY_EXEC;
    if (check_arguments(x) < 0)
        return -1;
    x->ws =
        registry_get(rq->server->registry, json_str(json_get(x->arguments, "workspace_id")), &x->e);
    return x->ws == NULL ? -1 : policy_check(x->ws, action, &x->e);
}

static void create_run(struct request *rq)
{
    struct create_call *x = rq->state;
    if (create_admit(rq) < 0)
        request_fail(rq, &x->e);
    else
        request_pool(rq, 0, create_work, create_after);
}

static const struct json_field create_in[] = {
    {"tool", JSON_ENUM, JSON_REQUIRED, offsetof(struct create_call, tool), 0, 0, tool_names,
     "The tool to call later.", NULL},
    {"arguments", JSON_OBJECT, JSON_REQUIRED, offsetof(struct create_call, arguments), 0, 0, NULL,
     "Its arguments, as that tool takes them.", NULL},
    TOOL_IGNORED_FIELDS,
};

static const struct output_field create_out[] = {
    {"approval_id", OUTPUT_STR, true, "For operation_resume, and for the person who decides."},
    {"state", OUTPUT_STR, true, "pending, granted, queued or resuming."},
};

const struct tool tool_approval_create = {
    .name = "approval_create",
    .title = "Hold a call for a person",
    .description =
        "Holds a call of apply_patch or exec_command until a person decides it, in any workspace; "
        "nothing runs. The same call that is held already gives the same approval_id. In a "
        "workspace with approvals=confirm those tools hold their calls by themselves.",
    .in = create_in,
    .n_in = ARRAY_LEN(create_in),
    .out = create_out,
    .n_out = ARRAY_LEN(create_out),
    .state_size = sizeof(struct create_call),
    .run = create_run,
    .fini = create_fini,
};

/* ---- approval_resolve ---- */

enum { DECISION_LOOK, DECISION_GRANT, DECISION_DENY };
static const char *const decision_names[] = {
    [DECISION_LOOK] = "look", [DECISION_GRANT] = "grant", [DECISION_DENY] = "deny", NULL};

struct resolve_call {
    const char *approval_id;
    int decision;
    struct approval hold;
    int status;
    struct err e;
};

static void resolve_fini(struct request *rq)
{
    struct resolve_call *x = rq->state;
    approval_fini(&x->hold);
}

static void resolve_work(struct request *rq)
{
    struct resolve_call *x = rq->state;
    struct ledger *l = rq->server->ledger;
    bool self_grant = rq->server->registry->self_grant;
    if (x->decision == DECISION_GRANT)
        x->status = approvals_grant(l, x->approval_id, APPROVAL_BY_CALLER, self_grant, &x->e);
    else if (x->decision == DECISION_DENY)
        x->status = approvals_deny(l, x->approval_id, APPROVAL_BY_CALLER, &x->e);
    if (x->status == 0)
        x->status = approvals_get(l, x->approval_id, &x->hold, &x->e);
}

static void resolve_after(struct request *rq)
{
    struct resolve_call *x = rq->state;
    if (x->status < 0) {
        approval_fail(rq, &x->e, x->approval_id);
        return;
    }
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "approval_id", x->hold.approval_id);
    jsonw_kstr(w, "state", approval_state_name(x->hold.state));
    jsonw_kstr(w, "tool", approval_tool_name(x->hold.tool));
    jsonw_kstr(w, "workspace_id", x->hold.workspace_id);
    if (x->hold.resolved_by[0] != '\0')
        jsonw_kstr(w, "resolved_by", x->hold.resolved_by);
    request_finish(rq);
}

static void resolve_run(struct request *rq)
{
    request_pool(rq, 0, resolve_work, resolve_after);
}

/* An id is ours and short; one that is longer is none. */
#define ID_BYTES_MAX 128u

static const struct json_field resolve_in[] = {
    {"approval_id", JSON_STR, JSON_REQUIRED, offsetof(struct resolve_call, approval_id), 1,
     ID_BYTES_MAX, NULL, "What APPROVAL_REQUIRED or approval_create gave.", NULL},
    {"decision", JSON_ENUM, 0, offsetof(struct resolve_call, decision), 0, 0, decision_names,
     "look only tells the state. deny withdraws the call for good. grant is for a person and is "
     "refused here, unless the operator set approvals.self_grant.",
     "\"look\""},
    TOOL_IGNORED_FIELDS,
};

static const struct output_field resolve_out[] = {
    {"approval_id", OUTPUT_STR, true, NULL},
    {"state", OUTPUT_STR, true, "pending, granted, denied, queued, resuming or consumed."},
    {"tool", OUTPUT_STR, true, "apply_patch or exec_command."},
    {"workspace_id", OUTPUT_STR, true, NULL},
    {"resolved_by", OUTPUT_STR, false,
     "operator_token, elicitation, command_line or caller: who decided."},
};

const struct tool tool_approval_resolve = {
    .name = "approval_resolve",
    .title = "Look at or withdraw a held call",
    .description = "Tells how far a held call is, or withdraws it (deny). Only a person grants, "
                   "outside of this conversation; after that operation_resume runs the call.",
    .in = resolve_in,
    .n_in = ARRAY_LEN(resolve_in),
    .out = resolve_out,
    .n_out = ARRAY_LEN(resolve_out),
    .state_size = sizeof(struct resolve_call),
    .run = resolve_run,
    .fini = resolve_fini,
};

/* ---- operation_resume ---- */

struct resume_call {
    const char *approval_id;
    struct approval_run *run;
};

static void resume_fini(struct request *rq)
{
    struct resume_call *x = rq->state;
    approval_run_leave(x->run);
}

static void on_run(struct request *rq, const struct approval_outcome *outcome,
                   const struct err *failure)
{
    struct resume_call *x = rq->state;
    x->run = NULL;
    if (failure != NULL) {
        approval_fail(rq, failure, x->approval_id);
        return;
    }
    if (outcome->is_error) {
        request_fail_body(rq, outcome->json);
        return;
    }
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "approval_id", outcome->approval_id);
    jsonw_kstr(w, "state", approval_state_name(APPROVAL_CONSUMED));
    jsonw_key(w, approval_tool_name(outcome->tool));
    jsonw_raw(w, buf_bytes(outcome->json), outcome->json->len);
    request_finish(rq);
}

static void resume_run(struct request *rq)
{
    struct resume_call *x = rq->state;
    x->run = approval_run_new(rq, x->approval_id, on_run);
}

static const struct json_field resume_in[] = {
    {"approval_id", JSON_STR, JSON_REQUIRED, offsetof(struct resume_call, approval_id), 1,
     ID_BYTES_MAX, NULL, "Of a held call that a person granted.", NULL},
    TOOL_IGNORED_FIELDS,
};

static const struct output_field resume_out[] = {
    {"approval_id", OUTPUT_STR, true, NULL},
    {"state", OUTPUT_STR, true, "consumed."},
    {"apply_patch", OUTPUT_OBJ, false, "The answer of apply_patch, when that was held."},
    {"exec_command", OUTPUT_OBJ, false, "The answer of exec_command, when that was held."},
};

const struct tool tool_operation_resume = {
    .name = "operation_resume",
    .title = "Run a granted call",
    .description =
        "Runs a held call that a person granted, once, with the arguments that were held, and "
        "gives its answer; another time it gives the answer of then. APPROVAL_CONFLICT: not "
        "decided yet, or denied. WORKSPACE_BUSY, RESOURCE_QUEUE_FULL and the process limits leave "
        "it granted: repeat later. APPROVAL_AMBIGUOUS: it is not known whether it ran; look at "
        "what it would have changed.",
    .hints = TOOL_DESTROYS | TOOL_IDEMPOTENT | TOOL_WAITS,
    .in = resume_in,
    .n_in = ARRAY_LEN(resume_in),
    .out = resume_out,
    .n_out = ARRAY_LEN(resume_out),
    .state_size = sizeof(struct resume_call),
    .run = resume_run,
    .fini = resume_fini,
};
