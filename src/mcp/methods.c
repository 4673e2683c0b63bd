/* mcp/methods: see methods.h. The rules are those of the MCP specification, revisions 2024-11-05 to
 * 2025-11-25. */
#include "mcp/methods.h"

#include "mcp/tool.h"
#include "wire/json.h"

#include <string.h>

const char *const method_versions[] = {"2025-11-25", "2025-06-18", METHODS_BATCH_VERSION,
                                       "2024-11-05", NULL};

/* A revision that we do not know is answered with our newest; the client decides. */
static const char *negotiate(const char *asked)
{
    for (const char *const *v = method_versions; *v != NULL; v++) {
        if (strcmp(*v, asked) == 0)
            return *v;
    }
    return method_versions[0];
}

static void write_server_info(struct jsonw *w)
{
    jsonw_object(w);
    jsonw_kstr(w, "name", "codespace");
    jsonw_kstr(w, "title", "CodeSpace");
    jsonw_kstr(w, "version", CODESPACE_VERSION);
    jsonw_object_end(w);
}

static void write_initialize(struct session *s, struct jsonw *w)
{
    autobuf instructions = BUF_INIT;
    facts_instructions(&s->server->facts, s->server->registry, &instructions);
    jsonw_object(w);
    jsonw_kstr(w, "protocolVersion", s->version);
    jsonw_key(w, "capabilities");
    jsonw_object(w);
    jsonw_key(w, "tools");
    jsonw_object(w);
    jsonw_object_end(w);
    jsonw_object_end(w);
    jsonw_key(w, "serverInfo");
    write_server_info(w);
    jsonw_kstr(w, "instructions", buf_cstr(&instructions));
    jsonw_object_end(w);
}

static void run_initialize(struct session *s, const struct rpc_message *m,
                           struct json_object *message)
{
    autobuf result = BUF_INIT;
    struct err e;
    struct jsonw w;
    const char *asked = json_str(json_get(m->params, "protocolVersion"));
    if (asked == NULL) {
        err_set(&e, ERR_INVALID_PARAMS, "params.protocolVersion: must be a string such as \"%s\"",
                method_versions[0]);
        session_error(s, &m->id, &e);
        return;
    }
    s->version = negotiate(asked);
    jsonw_init(&w, &result);
    write_initialize(s, &w);
    session_reply(s, &m->id, &result);
}

static void run_ping(struct session *s, const struct rpc_message *m, struct json_object *message)
{
    autobuf result = BUF_INIT;
    buf_puts(&result, "{}");
    session_reply(s, &m->id, &result);
}

static void answer_tools_list(struct request *rq)
{
    struct server *server = rq->server;
    if (server->tools_list.len == 0) {
        struct jsonw w;
        jsonw_init(&w, &server->tools_list);
        jsonw_object(&w);
        tool_write_list(server, &w);
        jsonw_object_end(&w);
    }
    request_finish_text(rq, &server->tools_list);
}

/* Waits for the probe: the description of exec_command says what is really around a command. */
static void run_tools_list(struct session *s, const struct rpc_message *m,
                           struct json_object *message)
{
    struct err e;
    if (json_get(m->params, "cursor") != NULL) {
        err_set(&e, ERR_INVALID_PARAMS, "params.cursor: the list has one page; send no cursor");
        session_error(s, &m->id, &e);
        return;
    }
    request_when_probed(request_new(s, &m->id, NULL, message), answer_tools_list);
}

static void run_tools_call(struct session *s, const struct rpc_message *m,
                           struct json_object *message)
{
    tool_call(s, &m->id, message, m->params);
}

static void run_initialized(struct session *s, const struct rpc_message *m,
                            struct json_object *message)
{
    /* Nothing waits for it: a client that goes on without it is served all the same. */
}

/* Unknown ids, ended calls and malformed notifications are ignored, as the specification says. */
static void run_cancelled(struct session *s, const struct rpc_message *m,
                          struct json_object *message)
{
    struct rpc_id id;
    if (rpc_id_read(json_get(m->params, "requestId"), &id, NULL) < 0)
        return;
    struct request *rq = session_find(s, &id);
    if (rq != NULL)
        request_cancel(rq);
}

static const struct method methods[] = {
    {"tools/call", RPC_REQUEST, true, run_tools_call},
    {"tools/list", RPC_REQUEST, true, run_tools_list},
    {"ping", RPC_REQUEST, false, run_ping},
    {"initialize", RPC_REQUEST, false, run_initialize},
    {"notifications/initialized", RPC_NOTIFICATION, false, run_initialized},
    {"notifications/cancelled", RPC_NOTIFICATION, false, run_cancelled},
};

const struct method *method_by_name(const char *name, enum rpc_kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (methods[i].kind == kind && strcmp(methods[i].name, name) == 0)
            return &methods[i];
    }
    return NULL;
}
