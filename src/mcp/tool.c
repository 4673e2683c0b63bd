/* mcp/tool: see tool.h. */
#include "mcp/tool.h"

#include "mcp/provider.h"
#include "mcp/session.h"
#include "mcp/task_methods.h"

#include <stdio.h>
#include <string.h>

const struct tool *const tools[] = {
    &tool_workspace_info,
    &tool_read,
    &tool_find,
    &tool_search,
    &tool_apply_patch,
    &tool_operation_status,
    &tool_list_operations,
    &tool_revert_operation,
    &tool_exec_command,
    &tool_write_stdin,
    &tool_read_process,
    &tool_process_status,
    &tool_process_resize,
    &tool_terminate_process,
    &tool_signal_process,
    &tool_list_processes,
    &tool_approval_create,
    &tool_approval_resolve,
    &tool_operation_resume,
    &tool_work_open,
    &tool_steer_status,
    &tool_steer_claim_next,
    &tool_steer_complete,
    &tool_work_finish,
    NULL,
};

const struct tool *tool_by_name(const struct tool *const *table, const char *name)
{
    for (const struct tool *const *t = table; *t != NULL; t++) {
        if (strcmp((*t)->name, name) == 0)
            return *t;
    }
    return NULL;
}

/* JSON Schema of each output kind, without the closing brace: a description may follow. */
static const char *const output_schemas[] = {
    [OUTPUT_STR] = "\"type\":\"string\"",
    [OUTPUT_STR_OR_NULL] = "\"type\":[\"string\",\"null\"]",
    [OUTPUT_INT] = "\"type\":\"integer\"",
    [OUTPUT_BOOL] = "\"type\":\"boolean\"",
    [OUTPUT_STRS] = "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
    [OUTPUT_OBJ] = "\"type\":\"object\"",
    [OUTPUT_OBJS] = "\"type\":\"array\",\"items\":{\"type\":\"object\"}",
};

static void write_output_field(struct jsonw *w, const struct output_field *f)
{
    autobuf text = BUF_INIT;
    buf_putc(&text, '{');
    buf_puts(&text, output_schemas[f->kind]);
    if (f->about != NULL) {
        buf_puts(&text, ",\"description\":\"");
        jsonw_escape(&text, f->about, strlen(f->about));
        buf_putc(&text, '"');
    }
    buf_putc(&text, '}');
    jsonw_key(w, f->name);
    jsonw_raw(w, buf_bytes(&text), text.len);
}

/* Open for more members: later versions add some, and a client that checks must not refuse them. */
static void write_output_schema(struct jsonw *w, const struct tool *t)
{
    jsonw_object(w);
    jsonw_kstr(w, "type", "object");
    jsonw_key(w, "properties");
    jsonw_object(w);
    for (size_t i = 0; i < t->n_out; i++)
        write_output_field(w, &t->out[i]);
    jsonw_object_end(w);
    jsonw_key(w, "required");
    jsonw_array(w);
    for (size_t i = 0; i < t->n_out; i++) {
        if (t->out[i].always)
            jsonw_str(w, t->out[i].name);
    }
    jsonw_array_end(w);
    jsonw_object_end(w);
}

static void write_annotations(struct jsonw *w, const struct tool *t)
{
    jsonw_object(w);
    jsonw_kstr(w, "title", t->title);
    jsonw_kbool(w, "readOnlyHint", t->hints & TOOL_READS);
    jsonw_kbool(w, "destructiveHint", t->hints & TOOL_DESTROYS);
    jsonw_kbool(w, "idempotentHint", t->hints & TOOL_IDEMPOTENT);
    jsonw_kbool(w, "openWorldHint", false);
    jsonw_object_end(w);
}

static void write_tool(const struct server *s, struct jsonw *w, const struct tool *t)
{
    autobuf description = BUF_INIT;
    buf_puts(&description, t->description);
    if (t->describe != NULL)
        t->describe(s, &description);
    jsonw_object(w);
    jsonw_kstr(w, "name", t->name);
    jsonw_kstr(w, "title", t->title);
    jsonw_kstr(w, "description", buf_cstr(&description));
    jsonw_key(w, "inputSchema");
    if (t->schema != NULL)
        jsonw_raw(w, t->schema, strlen(t->schema));
    else
        json_schema(w, t->in, t->n_in);
    if (!(t->hints & TOOL_CONTENT)) {
        jsonw_key(w, "outputSchema");
        write_output_schema(w, t);
    }
    jsonw_key(w, "annotations");
    write_annotations(w, t);
    if ((t->hints & TOOL_TASKS) && (s->provider->provides & PROVIDES_TASKS)) {
        jsonw_key(w, "execution");
        jsonw_object(w);
        jsonw_kstr(w, "taskSupport", t->hints & TOOL_TASKS_ONLY ? "required" : "optional");
        jsonw_object_end(w);
    }
    jsonw_object_end(w);
}

void tool_write_list(const struct server *s, struct jsonw *w)
{
    jsonw_key(w, "tools");
    jsonw_array(w);
    for (const struct tool *const *t = s->provider->tools; *t != NULL; t++)
        write_tool(s, w, *t);
    jsonw_array_end(w);
}

static void unknown_tool(const struct inbound *in, const char *name)
{
    struct err e;
    char all[512] = "";
    for (const struct tool *const *t = in->session->server->provider->tools; *t != NULL; t++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", (*t)->name);
    }
    err_set(&e, ERR_INVALID_PARAMS, "unknown tool \"%.64s\"; there are: %s", name, all);
    inbound_error(in, &e, NULL);
}

/* Absent or null arguments are no arguments. */
static struct json_object *arguments_of(struct json_object *params)
{
    struct json_object *args = json_get(params, "arguments");
    if (args == NULL) {
        args = json_object_new_object();
        ensure(args != NULL);
        ensure(json_object_object_add(params, "arguments", args) == 0);
    }
    return args;
}

void tool_call(const struct inbound *in)
{
    struct err e;
    const char *name = json_str(json_get(in->m.params, "name"));
    if (name == NULL) {
        err_set(&e, ERR_INVALID_PARAMS, "params.name: must be the name of a tool (a string)");
        inbound_error(in, &e, NULL);
        return;
    }
    const struct tool *t = tool_by_name(in->session->server->provider->tools, name);
    if (t == NULL) {
        unknown_tool(in, name);
        return;
    }
    if (tasks_take_call(in, t))
        return;
    struct request *rq = request_new(in, t);
    rq->args = arguments_of(in->m.params);
    if (t->schema == NULL &&
        json_read(rq->args, "", t->in, t->n_in, rq->state, ERR_INVALID_ARGUMENT, &e) < 0) {
        request_fail(rq, &e);
        return;
    }
    if (t->hints & TOOL_WAITS)
        notice_tick(rq);
    t->run(rq);
}
