/* mcp/tool_patch: apply_patch.
 *
 * A patch takes the lane of its root, so writers of one root go one after the other, and commands
 * and readers never wait for them. Under the lane it is asked first whether its operation_key was
 * used before, then the patch runs on the pool. A call that is cancelled while it waits leaves the
 * lane; one that runs goes on to its end, since a half-applied patch helps nobody, and its key
 * remembers what happened.
 */
#include "core/operations.h"
#include "core/policy.h"
#include "mcp/tool.h"

#include <json-c/linkhash.h>
#include <string.h>

/* What most answers need. */
#define PATCH_ANSWER_BYTES 4096u

struct patch_call {
    const char *workspace_id;
    struct json_bytes patch;
    struct json_object *expected_versions;
    const char *operation_key;
    bool check_only;

    const struct workspace *ws;
    struct patch_expect *expect;
    struct patch_request request;
    char fingerprint[FILES_VERSION_LEN];
    struct request *owner;
    struct lane *lane;
    struct lane_wait turn;
    bool waiting;
    struct operation *op;
    int status;
    struct err e;
};

static void patch_fini(struct request *rq)
{
    struct patch_call *x = rq->state;
    operation_free(x->op);
    free(x->expect);
}

/* Paths that the operation touched, each once; a move names two. */
static void write_files(struct jsonw *w, const struct patch_result *r)
{
    jsonw_key(w, "files");
    jsonw_array(w);
    for (size_t i = 0; i < r->n_changes; i++)
        jsonw_str(w, r->changes[i].path);
    jsonw_array_end(w);
}

static void write_change(struct jsonw *w, const struct patch_change *change)
{
    jsonw_object(w);
    jsonw_kstr(w, "path", change->path);
    jsonw_kstr(w, "kind", patch_kind_name(change->kind));
    if (change->before[0] != '\0')
        jsonw_kstr(w, "before_version", change->before);
    if (change->after[0] != '\0')
        jsonw_kstr(w, "after_version", change->after);
    if (change->fuzzy)
        jsonw_kbool(w, "fuzzy", true);
    jsonw_object_end(w);
}

static void write_refusal(struct jsonw *w, const struct err *refusal)
{
    jsonw_key(w, "error");
    jsonw_object(w);
    jsonw_kstr(w, "code", err_info(refusal->code)->name);
    jsonw_kstr(w, "message", refusal->message);
    jsonw_object_end(w);
}

static void write_operation(struct jsonw *w, const struct operation *op, bool replayed)
{
    const struct patch_result *r = &op->result;
    jsonw_kstr(w, "status", patch_status_name(r->status));
    jsonw_kstr(w, "operation_id", op->id);
    jsonw_kbool(w, "replayed", replayed);
    write_files(w, r);
    jsonw_key(w, "changes");
    jsonw_array(w);
    for (size_t i = 0; i < r->n_changes; i++)
        write_change(w, &r->changes[i]);
    jsonw_array_end(w);
    if (r->failure[0] != '\0')
        jsonw_kstr(w, "failure", r->failure);
    if (r->status == PATCH_REJECTED)
        write_refusal(w, &op->refusal);
}

static void patch_work(struct request *rq)
{
    struct patch_call *x = rq->state;
    x->status = patch_apply(x->ws, &x->request, &x->op->result, &x->e);
}

static void patch_after(struct request *rq)
{
    struct patch_call *x = rq->state;
    struct operation *op = x->op;
    struct lane *lane = x->lane;
    if (x->status < 0) {
        op->result.status = PATCH_REJECTED;
        op->refusal = x->e;
    }
    if (x->operation_key != NULL) {
        memcpy(op->fingerprint, x->fingerprint, sizeof(op->fingerprint));
        operations_keep(&rq->server->operations, x->ws->id, x->operation_key, steal(x->op));
    }
    if (x->status < 0) {
        request_fail_operation(rq, &x->e, op->id);
    } else {
        write_operation(request_answer(rq), op, false);
        request_finish(rq);
    }
    lane_leave(lane);
}

static void patch_start(struct request *rq)
{
    struct patch_call *x = rq->state;
    struct lane *lane = x->lane;
    const struct operation *known = NULL;
    int found = operations_find(&rq->server->operations, x->ws->id, x->operation_key,
                                x->fingerprint, &known, &x->e);
    if (found == 0) {
        x->op = operation_new();
        request_pool(rq, PATCH_ANSWER_BYTES, patch_work, patch_after);
        return;
    }
    if (found < 0) {
        request_fail(rq, &x->e);
    } else {
        write_operation(request_answer(rq), known, true);
        request_finish(rq);
    }
    lane_leave(lane);
}

static void patch_go(struct lane_wait *turn)
{
    struct patch_call *x = container_of(turn, struct patch_call, turn);
    x->waiting = false;
    patch_start(x->owner);
}

static void patch_cancel(struct request *rq)
{
    struct patch_call *x = rq->state;
    if (x->waiting)
        lane_quit(x->lane, &x->turn);
    x->waiting = false;
}

static void fill_request(struct patch_call *x)
{
    struct json_object *map = x->expected_versions;
    size_t n = map == NULL ? 0 : (size_t)json_object_object_length(map);
    size_t i = 0;
    x->expect = mem_zalloc(n == 0 ? 1 : n, sizeof(*x->expect));
    if (map != NULL) {
        json_object_object_foreach(map, path, version)
        {
            x->expect[i++] = (struct patch_expect){path, json_str(version)};
        }
    }
    x->request = (struct patch_request){.text = x->patch.data,
                                        .text_len = x->patch.len,
                                        .expect = x->expect,
                                        .n_expect = n,
                                        .check_only = x->check_only};
}

static int patch_admit(struct request *rq)
{
    struct patch_call *x = rq->state;
    x->ws = registry_get(rq->server->registry, x->workspace_id, &x->e);
    if (x->ws == NULL || policy_check(x->ws, POLICY_WRITE, &x->e) < 0)
        return -1;
    x->owner = rq;
    fill_request(x);
    operation_fingerprint(x->ws->id, &x->request, x->fingerprint);
    x->lane = server_lane(rq->server, x->ws);
    x->turn.go = patch_go;
    return 0;
}

static void patch_run(struct request *rq)
{
    struct patch_call *x = rq->state;
    if (patch_admit(rq) < 0) {
        request_fail(rq, &x->e);
        return;
    }
    switch (lane_enter(x->lane, &x->turn)) {
    case LANE_ENTERED:
        patch_start(rq);
        break;
    case LANE_WAITS:
        x->waiting = true;
        break;
    case LANE_FULL:
        err_set(&x->e, ERR_RESOURCE_QUEUE_FULL,
                "LANE_WAITERS_MAX (%u) patches wait for workspace %s; send this one again when "
                "some have been answered",
                LANE_WAITERS_MAX, x->ws->id);
        request_fail(rq, &x->e);
        break;
    }
}

#define AT(member) offsetof(struct patch_call, member)
static const struct json_field in[] = {
    {"workspace_id", JSON_STR, JSON_REQUIRED, AT(workspace_id), 0, 0, NULL,
     "The workspace, as workspace_info lists it.", NULL},
    {"patch", JSON_BYTES, JSON_REQUIRED, AT(patch), 0, 0, NULL,
     "V4A text from \"*** Begin Patch\" to \"*** End Patch\".", NULL},
    {"expected_versions", JSON_STRMAP, 0, AT(expected_versions), 0, PATCH_FILES_MAX, NULL,
     "Path to the version that read gave, or \"absent\"; another version on disk refuses the "
     "patch.",
     "{}"},
    {"operation_key", JSON_STR, 0, AT(operation_key), 1, OPERATIONS_KEY_MAX, NULL,
     "A key of yours for this request: sent again, it is not applied again.", NULL},
    {"check_only", JSON_BOOL, 0, AT(check_only), 0, 0, NULL, "Only tell whether the patch applies.",
     "false"},
    TOOL_IGNORED_FIELDS,
};
#undef AT

static const struct output_field out[] = {
    {"status", OUTPUT_STR, true,
     "applied, checked, rejected, failed_rolled_back, failed_partial or unknown."},
    {"operation_id", OUTPUT_STR, true, NULL},
    {"replayed", OUTPUT_BOOL, true, "What an earlier request with this operation_key did."},
    {"files", OUTPUT_STRS, true, "Paths that the patch touches."},
    {"changes", OUTPUT_OBJS, true,
     "path, kind (add, update, delete, move), before_version and after_version, fuzzy."},
    {"failure", OUTPUT_STR, false, "Why writing failed."},
    {"error", OUTPUT_OBJ, false, "With a replayed rejected: the code and message of then."},
};

const struct tool tool_apply_patch = {
    .name = "apply_patch",
    .title = "Apply a patch",
    .description =
        "Changes files of a workspace by one patch in V4A form, all of it or nothing:\n"
        "*** Begin Patch\n*** Update File: src/a.c\n@@ int main(void)\n-    return 1;\n"
        "+    return 0;\n*** Add File: b.txt\n+text\n*** Delete File: c.txt\n*** End Patch\n"
        "An Update File may be followed by \"*** Move to: path\". Context lines start with a "
        "blank, \"@@\" names a line above the hunk. Paths are relative to the workspace.",
    .hints = TOOL_DESTROYS,
    .in = in,
    .n_in = ARRAY_LEN(in),
    .out = out,
    .n_out = ARRAY_LEN(out),
    .state_size = sizeof(struct patch_call),
    .run = patch_run,
    .cancel = patch_cancel,
    .fini = patch_fini,
};
