/* mcp/tool_patch: apply_patch, from its arguments to a patch_job.
 *
 * A patch comes as text (V4A or a unified diff) or as exact edits. What is wrong with the arguments
 * is found here, before anything is looked up, recorded or queued; the rest of the way is
 * mcp/patch_lane.
 */
#include "core/fingerprint.h"
#include "core/policy.h"
#include "mcp/approval_gate.h"
#include "mcp/operation_answer.h"
#include "mcp/patch_lane.h"
#include "mcp/tool.h"

#include <json-c/linkhash.h>
#include <stdio.h>

struct patch_call {
    struct patch_lane way; /* first: see mcp/patch_lane.c */

    const char *workspace_id;
    struct json_bytes patch;
    int format;
    struct json_object *edits;
    struct json_object *expected_versions;
    const char *operation_key;
    bool check_only;
    bool durable;

    struct patch_expect *expect;
    struct patch_edit *edit_items;
    char fingerprint[LEDGER_HASH_LEN];
};

static void patch_fini(struct request *rq)
{
    struct patch_call *x = rq->state;
    patch_lane_fini(&x->way);
    free(x->expect);
    free(x->edit_items);
}

/* ---- exact edits ---- */

struct edit_fields {
    const char *path;
    struct json_bytes old;
    struct json_bytes new;
    uint64_t count;
};

#define AT(member) offsetof(struct edit_fields, member)
static const struct json_field edit_in[] = {
    {"path", JSON_STR, JSON_REQUIRED, AT(path), 1, 0},
    {"old", JSON_BYTES, JSON_REQUIRED, AT(old), 0, 0},
    {"new", JSON_BYTES, JSON_REQUIRED, AT(new), 0, 0},
    {"count", JSON_U64, 0, AT(count), 1, UINT32_MAX},
};
#undef AT

static const char edit_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"path\":{\"type\":\"string\",\"description\":\"Relative to the workspace.\"},"
    "\"old\":{\"type\":\"string\",\"description\":\"The exact text that is there; \\\"\\\" only "
    "for an empty or missing file.\"},"
    "\"new\":{\"type\":\"string\",\"description\":\"What takes its place.\"},"
    "\"count\":{\"type\":\"integer\",\"minimum\":1,\"default\":1,\"description\":\"How often `old` "
    "occurs; all places are changed.\"}},"
    "\"required\":[\"path\",\"old\",\"new\"],\"additionalProperties\":false}";

static int read_edits(struct patch_call *x, struct err *e)
{
    size_t n = x->edits == NULL ? 0 : json_object_array_length(x->edits);
    x->edit_items = mem_zalloc(n + 1, sizeof(*x->edit_items));
    for (size_t i = 0; i < n; i++) {
        struct edit_fields f = {0};
        char where[32];
        snprintf(where, sizeof(where), "edits[%zu]", i);
        if (json_read(json_object_array_get_idx(x->edits, i), where, edit_in, ARRAY_LEN(edit_in),
                      &f, ERR_INVALID_ARGUMENT, e) < 0)
            return -1;
        x->edit_items[i] = (struct patch_edit){.path = f.path,
                                               .old = f.old.data,
                                               .old_len = f.old.len,
                                               .replacement = f.new.data,
                                               .replacement_len = f.new.len,
                                               .count = f.count};
    }
    x->way.job.request.edits = x->edit_items;
    x->way.job.request.n_edits = n;
    return 0;
}

/* ---- the request ---- */

static int check_form(struct request *rq, struct err *e)
{
    bool text = request_given(rq, "patch");
    struct patch_call *x = rq->state;
    if (text == request_given(rq, "edits"))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "patch, edits: exactly one of the two must be given: a patch as text, or a "
                       "list of exact edits");
    if (!text && request_given(rq, "format"))
        return err_set(e, ERR_INVALID_ARGUMENT, "format: is of a patch; edits have none");
    if (!text && json_object_array_length(x->edits) == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "edits: names no edit");
    return 0;
}

static void read_expectations(struct patch_call *x)
{
    struct json_object *map = x->expected_versions;
    size_t n = map == NULL ? 0 : (size_t)json_object_object_length(map);
    size_t i = 0;
    x->expect = mem_zalloc(n + 1, sizeof(*x->expect));
    if (map != NULL) {
        json_object_object_foreach(map, path, version)
        {
            x->expect[i++] = (struct patch_expect){path, json_str(version)};
        }
    }
    x->way.job.request.expect = x->expect;
    x->way.job.request.n_expect = n;
}

static int fill(struct request *rq, struct err *e)
{
    struct patch_call *x = rq->state;
    struct patch_request *q = &x->way.job.request;
    if (check_form(rq, e) < 0 || read_edits(x, e) < 0)
        return -1;
    read_expectations(x);
    q->text = x->patch.data;
    q->text_len = x->patch.len;
    q->format = (enum patch_format)x->format;
    q->check_only = x->check_only;
    q->lax = request_given(rq, "durable") && !x->durable;
    fingerprint_patch(x->way.job.ws->id, q, x->fingerprint);
    return 0;
}

static void patch_admit(struct request *rq, request_fn go)
{
    struct patch_call *x = rq->state;
    if (x->check_only) /* nobody is asked about what changes nothing */
        go(rq);
    else
        approval_gate(rq, x->way.job.ws, APPROVAL_APPLY_PATCH, go);
}

static int prepare(struct request *rq)
{
    struct patch_call *x = rq->state;
    struct patch_job *job = &x->way.job;
    job->ws = registry_get(rq->server->registry, x->workspace_id, &job->e);
    if (job->ws == NULL || policy_check(job->ws, POLICY_WRITE, &job->e) < 0 ||
        fill(rq, &job->e) < 0)
        return -1;
    job->op.kind = OP_PATCH;
    job->op.key = x->operation_key;
    job->op.fingerprint = x->fingerprint;
    x->way.admit = patch_admit;
    return 0;
}

static void patch_run(struct request *rq)
{
    struct patch_call *x = rq->state;
    if (prepare(rq) < 0)
        request_fail(rq, &x->way.job.e);
    else
        patch_lane_run(rq, &x->way);
}

static const char *const formats[] = {
    [PATCH_FORMAT_AUTO] = "auto",
    [PATCH_FORMAT_V4A] = "v4a",
    [PATCH_FORMAT_UNIFIED] = "unified",
    NULL,
};

#define AT(member) offsetof(struct patch_call, member)
static const struct json_field in[] = {
    {"workspace_id", JSON_STR, JSON_REQUIRED, AT(workspace_id), 0, 0, NULL,
     "The workspace, as workspace_info lists it.", NULL},
    {"patch", JSON_BYTES, 0, AT(patch), 0, 0, NULL,
     "V4A text from \"*** Begin Patch\" to \"*** End Patch\", or a unified diff as git or diff "
     "make it.",
     NULL},
    {"format", JSON_ENUM, 0, AT(format), 0, 0, formats,
     "How `patch` is read; auto goes by its first line.", "\"auto\""},
    {"edits", JSON_ARRAY, 0, AT(edits), 0, PATCH_EDITS_MAX, NULL,
     "Instead of `patch`: exact replacements, in order, all of them or none.", NULL, edit_schema},
    {"expected_versions", JSON_STRMAP, 0, AT(expected_versions), 0, PATCH_FILES_MAX, NULL,
     "Path to the version that read gave, or \"absent\"; another version on disk refuses the "
     "patch.",
     "{}"},
    {"operation_key", JSON_STR, 0, AT(operation_key), 1, OPSTORE_KEY_MAX, NULL,
     "A key of yours for this request: sent again, it is not applied again.", NULL},
    {"check_only", JSON_BOOL, 0, AT(check_only), 0, 0, NULL,
     "Change nothing; tell whether it applies, and the diff that it would make.", "false"},
    {"durable", JSON_BOOL, 0, AT(durable), 0, 0, NULL,
     "Answer when the bytes are on the disk; false is faster and may lose them with the power.",
     "true"},
    TOOL_IGNORED_FIELDS,
};
#undef AT

static const struct output_field out[] = {OPERATION_PATCH_OUT};

const struct tool tool_apply_patch = {
    .name = "apply_patch",
    .title = "Apply a patch",
    .description =
        "Changes files of a workspace, all of them or none, by a patch in V4A form:\n"
        "*** Begin Patch\n*** Update File: src/a.c\n@@ int main(void)\n-    return 1;\n"
        "+    return 0;\n*** Add File: b.txt\n+text\n*** Delete File: c.txt\n*** End Patch\n"
        "or by a unified diff, or by exact edits. In V4A an Update File may be followed by "
        "\"*** Move to: path\", context lines start with a blank, \"@@\" names a line above the "
        "hunk. Paths are relative to the workspace. revert_operation undoes it by its "
        "operation_id.",
    .hints = TOOL_DESTROYS,
    .in = in,
    .n_in = ARRAY_LEN(in),
    .out = out,
    .n_out = ARRAY_LEN(out),
    .state_size = sizeof(struct patch_call),
    .run = patch_run,
    .cancel = patch_lane_cancel,
    .fini = patch_fini,
};
