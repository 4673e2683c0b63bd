/* mcp/tool_info: workspace_info, the tool that tells what this server is and what is really on. */
#include "core/exec_limits.h"
#include "core/ledger.h"
#include "core/operations_store.h"
#include "core/search.h"
#include "mcp/egress_change.h"
#include "mcp/patch_job.h"
#include "mcp/recorder.h"
#include "mcp/session.h"
#include "mcp/stdio_peer.h"
#include "mcp/task.h"
#include "mcp/tool.h"

struct info {
    const char *workspace_id;
    const struct workspace *ws;
    enum facts_warm warm;
    run_ticket ticket;
};

static void write_tools(struct jsonw *w)
{
    jsonw_key(w, "tools_exposed");
    jsonw_array(w);
    for (const struct tool *const *t = tools; *t != NULL; t++)
        jsonw_str(w, (*t)->name);
    jsonw_array_end(w);
}

static void write_workspaces(struct jsonw *w, const struct registry *r)
{
    jsonw_key(w, "workspaces");
    jsonw_array(w);
    for (size_t i = 0; i < r->n; i++) {
        jsonw_object(w);
        jsonw_kstr(w, "workspace_id", r->items[i]->id);
        jsonw_kstr(w, "profile", profile_name(r->items[i]->profile));
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

/* Limits of the server; those of files, patches and processes are in the execution block. */
static void write_limits(struct jsonw *w)
{
    static const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"message_bytes", STDIO_LENGTH_MAX},
        {"calls_in_flight", SESSION_CALLS_MAX},
        {"patches_waiting", LANE_WAITERS_MAX},
        {"operation_key_bytes", OPSTORE_KEY_MAX},
        {"operations_page", OPSTORE_PAGE_MAX},
        {"diff_shown_bytes", PATCH_DIFF_SHOWN_MAX},
        {"argument_bytes", EXEC_STRING_MAX},
        {"arguments_total_bytes", EXEC_TOTAL_MAX},
        {"arguments", EXEC_ARGV_MAX},
        {"variables", EXEC_ENV_MAX},
        {"stdin_bytes", RUN_STDIN_MAX},
        {"wait_ms", RUN_WAIT_MAX_MS},
        {"output_page_bytes", RUN_PAGE_MAX},
        {"search_pattern_bytes", SEARCH_PATTERN_MAX},
        {"search_globs", SEARCH_GLOBS_MAX},
        {"search_context_lines", SEARCH_CONTEXT_MAX},
        {"search_page_matches", SEARCH_PAGE_MAX},
        {"search_line_shown_bytes", SEARCH_COLUMNS_MAX},
        {"search_held_bytes", SEARCH_HELD_MAX},
        {"search_file_bytes", SEARCH_FILE_MAX},
        {"search_data_bytes", SEARCH_DATA_MAX},
        {"terminal_size", EXEC_TERMINAL_MAX},
        {"listed_processes", RUN_LIST_MAX},
        {"grace_ms", RUN_GRACE_MAX_MS},
        {"exclusive_wait_ms", RUN_TURN_MAX_MS},
        {"exclusive_waiting", RUN_QUEUE_MAX},
        {"output_file_bytes", RUN_SPILL_BYTES},
        {"output_files_total_bytes", RUN_SPILL_TOTAL_BYTES},
        {"output_follow_bytes", RUN_SPILL_FOLLOW_BYTES},
        {"background_named", RUN_BACKGROUND_NAMED_MAX},
        {"ended_processes_kept", RUN_RETAIN_MAX},
        {"ended_processes_kept_ms", RUN_RETAIN_MS},
        {"tasks", TASKS_MAX},
        {"task_ttl_ms", TASK_TTL_MAX_MS},
        {"task_result_bytes", TASK_RESULT_MAX},
        {"task_results_bytes", TASK_RESULTS_MAX},
    };
    jsonw_key(w, "limits");
    jsonw_object(w);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        jsonw_kuint(w, rows[i].name, rows[i].value);
    jsonw_object_end(w);
}

/* What of operations, keys, approvals and works outlives this server, and whether a crash in the
 * middle of a patch is undone at the next start. */
static void write_ledger(struct jsonw *w, const struct server *s)
{
    bool durable = !ledger_in_memory(s->ledger);
    jsonw_key(w, "ledger");
    jsonw_object(w);
    jsonw_kbool(w, "durable", durable);
    jsonw_kbool(w, "patch_journal", s->journals != NULL);
    jsonw_kuint(w, "unrecorded", recorder_lost(s->recorder));
    jsonw_kstr(w, "note",
               durable ? "Operations and their keys outlive this server."
                       : "In memory: operations and their keys are forgotten when this server "
                         "ends. The operator can name a file (--ledger).");
    jsonw_object_end(w);
}

static void answer(struct request *rq)
{
    struct info *x = rq->state;
    const struct server *s = rq->server;
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "server", "codespace");
    jsonw_kstr(w, "version", CODESPACE_VERSION);
    jsonw_kbool(w, "internal_model_calls", false);
    write_tools(w);
    jsonw_key(w, "transports");
    jsonw_array(w);
    jsonw_str(w, "stdio");
    jsonw_str(w, "streamable-http");
    jsonw_array_end(w);
    jsonw_kstr(w, "workspace_id", x->ws != NULL ? x->ws->id : NULL);
    jsonw_kbool(w, "workspace_id_is_credential", false);
    jsonw_kstr(w, "note",
               "The operator of this server registers workspaces and decides what is allowed in "
               "them; nothing a client sends changes that.");
    write_workspaces(w, s->registry);
    write_limits(w);
    write_ledger(w, s);
    if (x->ws != NULL) {
        jsonw_kstr(w, "profile", profile_name(x->ws->profile));
        jsonw_kstr(w, "root", x->ws->root);
        jsonw_key(w, "execution");
        struct facts facts = s->facts;
        struct facts_rules rules;
        facts.warm = x->warm;
        facts.rules = egress_change_facts(s, x->ws->id, &rules) ? &rules : NULL;
        facts_write_execution(&facts, x->ws, w);
    }
    request_finish(rq);
}

static void on_warm(void *user, enum run_warm warm)
{
    static const enum facts_warm facts[] = {[RUN_WARM_UNKNOWN] = FACTS_WARM_UNKNOWN,
                                            [RUN_WARM_OFF] = FACTS_WARM_OFF,
                                            [RUN_WARM_ON] = FACTS_WARM_ON};
    struct request *rq = user;
    struct info *x = rq->state;
    x->warm = facts[warm];
    answer(rq);
}

static void ask_warm(struct request *rq)
{
    struct info *x = rq->state;
    run_ticket ticket = runner_warm(rq->server->runner, x->ws->id, on_warm, rq);
    if (ticket != 0) /* 0: answered already, and the call is gone */
        x->ticket = ticket;
}

static void cancel(struct request *rq)
{
    struct info *x = rq->state;
    runner_cancel(rq->server->runner, x->ticket);
}

static void run(struct request *rq)
{
    struct info *x = rq->state;
    struct err e;
    if (x->workspace_id == NULL || *x->workspace_id == '\0') {
        answer(rq);
        return;
    }
    x->ws = registry_get(rq->server->registry, x->workspace_id, &e);
    if (x->ws == NULL)
        request_fail(rq, &e);
    else
        request_when_probed(rq, ask_warm);
}

static const struct json_field in[] = {
    {"workspace_id", JSON_STR, 0, offsetof(struct info, workspace_id), 0, 0, NULL,
     "Which workspace to tell about; without it only the server is told about.", NULL},
    TOOL_IGNORED_FIELDS,
};

static const struct output_field out[] = {
    {"server", OUTPUT_STR, true, NULL},
    {"version", OUTPUT_STR, true, NULL},
    {"internal_model_calls", OUTPUT_BOOL, true, "Always false: this server calls no model."},
    {"tools_exposed", OUTPUT_STRS, true, NULL},
    {"transports", OUTPUT_STRS, true, "Those that this program speaks; --http chooses the second."},
    {"workspace_id", OUTPUT_STR_OR_NULL, true, NULL},
    {"workspace_id_is_credential", OUTPUT_BOOL, true, NULL},
    {"note", OUTPUT_STR, true, NULL},
    {"workspaces", OUTPUT_OBJS, true, "Every registered workspace: workspace_id and profile."},
    {"limits", OUTPUT_OBJ, true, "Limits of this server, by name."},
    {"ledger", OUTPUT_OBJ, true,
     "durable: operations outlive this server; patch_journal: what a crash cut off is undone; "
     "unrecorded: records that could not be written."},
    {"profile", OUTPUT_STR, false, "read-only or workspace-write."},
    {"root", OUTPUT_STR, false, "The absolute path of the workspace on the server."},
    {"execution", OUTPUT_OBJ, false,
     "What is really on for this workspace: permissions, files, processes, isolation, network."},
};

const struct tool tool_workspace_info = {
    .name = "workspace_info",
    .title = "About a workspace",
    .description =
        "Tells which workspaces there are, what is allowed in one, and which walls really stand "
        "around its commands on this machine. Start here when in doubt.",
    .hints = TOOL_READS | TOOL_IDEMPOTENT,
    .in = in,
    .n_in = ARRAY_LEN(in),
    .out = out,
    .n_out = ARRAY_LEN(out),
    .state_size = sizeof(struct info),
    .run = run,
    .cancel = cancel,
};
