/* mcp/tool_operations: operation_status and list_operations, which ask the ledger.
 *
 * Look-ups only: nothing here runs, waits for a lane or changes a row. They are not bound to a
 * workspace, since whoever may talk to this server may ask what it did.
 */
#include "mcp/operation_answer.h"
#include "mcp/recorder.h"
#include "mcp/tool.h"

#include <string.h>

/* ---- operation_status ---- */

struct status_call {
    const char *operation_id;
    const char *operation_key;
    const char *process_id;
    const char *workspace_id;
    int status;
    struct err e;
};

static int look_up(const struct status_call *x, struct ledger *l, struct op_record *ret,
                   struct err *e)
{
    if (x->operation_id != NULL)
        return opstore_get(l, x->operation_id, ret, e);
    if (x->operation_key != NULL)
        return opstore_get_by_key(l, x->workspace_id, x->operation_key, ret, e);
    return opstore_get_by_process(l, x->process_id, ret, e);
}

static void status_work(struct request *rq)
{
    struct status_call *x = rq->state;
    autorecord r = {0};
    recorder_flush(rq->server->recorder);
    x->status = look_up(x, rq->server->ledger, &r, &x->e);
    if (x->status < 0)
        return;
    struct jsonw *w = request_answer(rq);
    operation_write_record(w, &r, true);
    jsonw_kbool(w, "replayed", false);
    request_render(rq);
}

static void status_after(struct request *rq)
{
    struct status_call *x = rq->state;
    if (x->status < 0)
        request_fail(rq, &x->e);
    else
        request_finish(rq);
}

/* The code is the public contract's. */
static void status_run(struct request *rq)
{
    struct status_call *x = rq->state;
    int given = (x->operation_id != NULL) + (x->operation_key != NULL) + (x->process_id != NULL);
    if (given == 1) {
        request_pool(rq, 0, status_work, status_after);
        return;
    }
    err_set(&x->e, ERR_OPERATION_NOT_FOUND,
            "operation_id, operation_key, process_id: exactly one of them names an operation; "
            "list_operations tells which there are");
    request_fail(rq, &x->e);
}

#define AT(member) offsetof(struct status_call, member)
static const struct json_field status_in[] = {
    {"operation_id", JSON_STR, 0, AT(operation_id), 1, 0, NULL, "As apply_patch gave it.", NULL},
    {"operation_key", JSON_STR, 0, AT(operation_key), 1, 0, NULL, "Or the key you gave.", NULL},
    {"process_id", JSON_STR, 0, AT(process_id), 1, 0, NULL, "Or the handle of a command.", NULL},
    {"workspace_id", JSON_STR, 0, AT(workspace_id), 1, 0, NULL,
     "With a key that several workspaces use: which one is meant.", NULL},
    TOOL_IGNORED_FIELDS,
};
#undef AT

/* What operation_write_record() gives. */
#define RECORD_OUT                                                                                 \
    {"operation_id", OUTPUT_STR, true, NULL},                                                      \
        {"status", OUTPUT_STR, true,                                                               \
         "Of a patch: applied, checked, rejected, failed_rolled_back, failed_partial, unknown. "   \
         "Of "                                                                                     \
         "a command: running, ended, rejected (it did not start), lost, unknown."},                \
        {"kind", OUTPUT_STR, true, "patch, command, revert or egress."},                           \
        {"workspace_id", OUTPUT_STR, true, NULL},                                                  \
        {"created_at", OUTPUT_INT, true, "Seconds since 1970, as all times here."},                \
        {"finished_at", OUTPUT_INT, false, NULL}, {"operation_key", OUTPUT_STR, false, NULL},      \
        {"reverts", OUTPUT_STR, false, "The operation that this one undoes."},                     \
        {"revertible", OUTPUT_BOOL, false, "revert_operation can undo it, if the files allow."},   \
        {"recovered", OUTPUT_BOOL, false, "The outcome was found out after a crash."},             \
        {"process_id", OUTPUT_STR, false, "Of a command; as the rest of these."},                  \
        {"argv_sha256", OUTPUT_STR, false, NULL}, {"termination", OUTPUT_STR, false, NULL},        \
        {"exit_code", OUTPUT_INT, false, NULL}, {"signal", OUTPUT_INT, false, NULL},               \
        {"duration_ms", OUTPUT_INT, false, NULL},                                                  \
        {"rules", OUTPUT_OBJ, false,                                                               \
         "Of egress (the operator replaced what a workspace's commands may reach; no call can): "  \
         "by, changed (keys), running_with_these and running_with_others (how many commands; "     \
         "null: not known)."},                                                                     \
        {"failure", OUTPUT_STR, false, "Why it ended so."},                                        \
    {                                                                                              \
        "error", OUTPUT_OBJ, false, "Why it was refused: code and message."                        \
    }

static const struct output_field status_out[] = {
    RECORD_OUT,
    {"replayed", OUTPUT_BOOL, true, "Always false."},
    {"files", OUTPUT_STRS, false, "Paths that the patch touches."},
    {"changes", OUTPUT_OBJS, false, "As in the answer of apply_patch."},
    {"events", OUTPUT_OBJS, false,
     "What happened to it: at, name (minted, planned, started, finished, recovered), status, "
     "reason."},
};

const struct tool tool_operation_status = {
    .name = "operation_status",
    .title = "Look up an operation",
    .description =
        "Tells what became of a patch, a revert or a command: also of one whose answer was lost, "
        "by the operation_key that was given with it. Changes nothing.",
    .hints = TOOL_READS | TOOL_IDEMPOTENT,
    .in = status_in,
    .n_in = ARRAY_LEN(status_in),
    .out = status_out,
    .n_out = ARRAY_LEN(status_out),
    .state_size = sizeof(struct status_call),
    .run = status_run,
};

/* ---- list_operations ---- */

struct list_call {
    const char *workspace_id;
    int kind; /* index into kinds */
    bool unfinished;
    uint64_t cursor;
    uint64_t limit;
    struct op_page page;
    int status;
    struct err e;
};

static const char *const kinds[] = {"all", "patch", "command", "revert", "egress", NULL};

static void list_fini(struct request *rq)
{
    struct list_call *x = rq->state;
    op_page_fini(&x->page);
}

static void write_page(const struct op_page *page, struct jsonw *w)
{
    jsonw_key(w, "operations");
    jsonw_array(w);
    for (size_t i = 0; i < page->n; i++) {
        jsonw_object(w);
        operation_write_record(w, &page->items[i], false);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    jsonw_kbool(w, "truncated", page->next_seq != 0);
    if (page->next_seq != 0)
        jsonw_kint(w, "next_cursor", page->next_seq);
}

static void list_work(struct request *rq)
{
    struct list_call *x = rq->state;
    const struct op_filter filter = {
        .workspace_id = x->workspace_id,
        .kind = x->kind - 1,
        .unfinished = x->unfinished,
        .before_seq = (int64_t)x->cursor,
        .limit = (uint32_t)x->limit,
    };
    recorder_flush(rq->server->recorder);
    x->status = opstore_list(rq->server->ledger, &filter, &x->page, &x->e);
    if (x->status < 0)
        return;
    write_page(&x->page, request_answer(rq));
    request_render(rq);
}

static void list_after(struct request *rq)
{
    struct list_call *x = rq->state;
    if (x->status < 0)
        request_fail(rq, &x->e);
    else
        request_finish(rq);
}

/* About what one entry takes. */
#define ENTRY_BYTES 512u

static void list_run(struct request *rq)
{
    struct list_call *x = rq->state;
    uint64_t n = x->limit == 0 ? OPSTORE_PAGE_DEFAULT : x->limit;
    request_pool(rq, n * ENTRY_BYTES, list_work, list_after);
}

#define AT(member) offsetof(struct list_call, member)
static const struct json_field list_in[] = {
    {"workspace_id", JSON_STR, 0, AT(workspace_id), 1, 0, NULL, "Only of this workspace.", NULL},
    {"kind", JSON_ENUM, 0, AT(kind), 0, 0, kinds, "Only of this kind.", "\"all\""},
    {"unfinished", JSON_BOOL, 0, AT(unfinished), 0, 0, NULL,
     "Only those whose end is not recorded.", "false"},
    {"limit", JSON_U64, 0, AT(limit), 1, OPSTORE_PAGE_MAX, NULL, "Operations of this page.", "50"},
    {"cursor", JSON_U64, 0, AT(cursor), 1, INT64_MAX, NULL,
     "next_cursor of the page before; without it from the newest.", NULL},
    TOOL_IGNORED_FIELDS,
};
#undef AT

static const struct output_field list_out[] = {
    {"operations", OUTPUT_OBJS, true,
     "Newest first, each as operation_status tells it but without changes and events."},
    {"truncated", OUTPUT_BOOL, true, "There are older ones; ask with cursor = next_cursor."},
    {"next_cursor", OUTPUT_INT, false, NULL},
};

const struct tool tool_list_operations = {
    .name = "list_operations",
    .title = "List operations",
    .description =
        "Lists what was done through this server, newest first, a page at a time: patches, reverts "
        "and commands with their outcome, and changes of egress rules by the operator. "
        "operation_status tells the files of one.",
    .hints = TOOL_READS | TOOL_IDEMPOTENT,
    .in = list_in,
    .n_in = ARRAY_LEN(list_in),
    .out = list_out,
    .n_out = ARRAY_LEN(list_out),
    .state_size = sizeof(struct list_call),
    .run = list_run,
    .fini = list_fini,
};
