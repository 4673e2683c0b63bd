/* mcp/tool_info: workspace_info, the tool that tells what this server is and what is really on. */
#include "core/exec_limits.h"
#include "core/operations.h"
#include "mcp/session.h"
#include "mcp/stdio_peer.h"
#include "mcp/tool.h"

struct info {
    const char *workspace_id;
    const struct workspace *ws;
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
        {"operation_keys", OPERATIONS_MAX},
        {"operation_key_bytes", OPERATIONS_KEY_MAX},
        {"argument_bytes", EXEC_STRING_MAX},
        {"arguments_total_bytes", EXEC_TOTAL_MAX},
        {"arguments", EXEC_ARGV_MAX},
        {"variables", EXEC_ENV_MAX},
        {"stdin_bytes", RUN_STDIN_MAX},
        {"wait_ms", RUN_WAIT_MAX_MS},
        {"output_page_bytes", RUN_PAGE_MAX},
        {"terminal_size", EXEC_TERMINAL_MAX},
        {"ended_processes_kept", RUN_RETAIN_MAX},
        {"ended_processes_kept_ms", RUN_RETAIN_MS},
    };
    jsonw_key(w, "limits");
    jsonw_object(w);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        jsonw_kuint(w, rows[i].name, rows[i].value);
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
    jsonw_raw(w, "[\"stdio\"]", 9);
    jsonw_kstr(w, "workspace_id", x->ws != NULL ? x->ws->id : NULL);
    jsonw_kbool(w, "workspace_id_is_credential", false);
    jsonw_kstr(w, "note",
               "The operator of this server registers workspaces and decides what is allowed in "
               "them; nothing a client sends changes that.");
    write_workspaces(w, s->registry);
    write_limits(w);
    if (x->ws != NULL) {
        jsonw_kstr(w, "profile", profile_name(x->ws->profile));
        jsonw_kstr(w, "root", x->ws->root);
        jsonw_key(w, "execution");
        facts_write_execution(&s->facts, x->ws, w);
    }
    request_finish(rq);
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
        request_when_probed(rq, answer);
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
    {"transports", OUTPUT_STRS, true, NULL},
    {"workspace_id", OUTPUT_STR_OR_NULL, true, NULL},
    {"workspace_id_is_credential", OUTPUT_BOOL, true, NULL},
    {"note", OUTPUT_STR, true, NULL},
    {"workspaces", OUTPUT_OBJS, true, "Every registered workspace: workspace_id and profile."},
    {"limits", OUTPUT_OBJ, true, "Limits of this server, by name."},
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
};
