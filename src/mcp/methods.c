/* mcp/methods: see methods.h. The rules are those of the MCP specification, revisions 2024-11-05 to
 * 2026-07-28. */
#include "mcp/methods.h"

#include "mcp/listen.h"
#include "mcp/meta.h"
#include "mcp/provider.h"
#include "mcp/task_methods.h"
#include "wire/json.h"

#include <string.h>

const char *const method_versions[] = {"2025-11-25", "2025-06-18", METHODS_BATCH_VERSION,
                                       "2024-11-05", NULL};

/* The one of ours, which outlives the message, or NULL. */
static const char *served_version(const char *asked)
{
    for (const char *const *v = method_versions; *v != NULL; v++) {
        if (strcmp(*v, asked) == 0)
            return *v;
    }
    return NULL;
}

bool method_version_served(const char *version)
{
    return served_version(version) != NULL;
}

static void write_instructions(const struct server *server, struct jsonw *w)
{
    autobuf instructions = BUF_INIT;
    facts_instructions(&server->facts, server->registry, &instructions);
    jsonw_kstr(w, "instructions", buf_cstr(&instructions));
}

static void write_initialize(struct session *s, struct jsonw *w)
{
    jsonw_object(w);
    jsonw_kstr(w, "protocolVersion", s->version);
    jsonw_key(w, "capabilities");
    provider_write_capabilities(s->server->provider, s->version, w);
    jsonw_key(w, "serverInfo");
    meta_write_server_info(w);
    write_instructions(s->server, w);
    jsonw_object_end(w);
}

static void run_initialize(const struct inbound *in)
{
    struct session *s = in->session;
    autobuf result = BUF_INIT;
    struct err e;
    struct jsonw w;
    const char *asked = json_str(json_get(in->m.params, "protocolVersion"));
    if (asked == NULL) {
        err_set(&e, ERR_INVALID_PARAMS, "params.protocolVersion: must be a string such as \"%s\"",
                method_versions[0]);
        inbound_error(in, &e, NULL);
        return;
    }
    /* A revision that we do not know is answered with our newest; the client decides. */
    s->version = method_version_served(asked) ? served_version(asked) : method_versions[0];
    json_object_put(s->capabilities);
    s->capabilities = json_object_get(json_get(in->m.params, "capabilities"));
    jsonw_init(&w, &result);
    write_initialize(s, &w);
    inbound_reply(in, &result);
}

static void answer_discover(struct request *rq)
{
    struct jsonw *w = request_answer(rq);
    rq->cached = true;
    jsonw_key(w, "supportedVersions");
    jsonw_array(w);
    for (const char *const *v = meta_versions; *v != NULL; v++)
        jsonw_str(w, *v);
    jsonw_array_end(w);
    jsonw_key(w, "capabilities");
    provider_write_capabilities(rq->server->provider, NULL, w);
    write_instructions(rq->server, w);
    request_finish(rq);
}

/* Answered at once, whatever the probe does: clients that probe for the era give up soon. */
static void run_discover(const struct inbound *in)
{
    answer_discover(request_new(in, NULL));
}

static void reply_empty(const struct inbound *in)
{
    autobuf result = BUF_INIT;
    buf_puts(&result, "{}");
    inbound_reply(in, &result);
}

static void run_set_level(const struct inbound *in)
{
    struct err e;
    int level = notice_level_of(json_str(json_get(in->m.params, "level")));
    if (level < 0) {
        err_set(&e, ERR_INVALID_PARAMS,
                "params.level: debug, info, notice, warning, error, critical, alert and emergency "
                "are levels");
        inbound_error(in, &e, NULL);
        return;
    }
    in->session->log_level = (enum notice_level)level;
    reply_empty(in);
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
    rq->cached = true;
    request_finish_text(rq, &server->tools_list);
}

/* Waits for the probe: the description of exec_command says what is really around a command. */
static void run_tools_list(const struct inbound *in)
{
    request_when_probed(request_new(in, NULL), answer_tools_list);
}

static void run_initialized(const struct inbound *in)
{
    /* Nothing waits for it: a client that goes on without it is served all the same. */
}

/* Unknown ids, ended calls and malformed notifications are ignored, as the specification says. */
static void run_cancelled(const struct inbound *in)
{
    struct rpc_id id;
    if (rpc_id_read(json_get(in->m.params, "requestId"), &id, NULL) < 0)
        return;
    struct request *rq = session_find(in->session, &id);
    if (rq != NULL)
        request_cancel(rq);
}

static const struct method methods[] = {
    {"tools/call", RPC_REQUEST, METHOD_BOTH, PROVIDES_TOOLS, true, tool_call},
    {"tools/list", RPC_REQUEST, METHOD_BOTH, PROVIDES_TOOLS, true, run_tools_list,
     .one_page = true},
    {"ping", RPC_REQUEST, METHOD_LEGACY, 0, false, reply_empty},
    {"initialize", RPC_REQUEST, METHOD_LEGACY, 0, false, run_initialize},
    {"server/discover", RPC_REQUEST, METHOD_MODERN, 0, false, run_discover},
    {"subscriptions/listen", RPC_REQUEST, METHOD_MODERN, 0, false, listen_run},
    {"prompts/list", RPC_REQUEST, METHOD_BOTH, PROVIDES_PROMPTS, true, prompts_list_run,
     .one_page = true},
    {"prompts/get", RPC_REQUEST, METHOD_BOTH, PROVIDES_PROMPTS, true, prompts_get_run},
    {"resources/list", RPC_REQUEST, METHOD_BOTH, PROVIDES_RESOURCES, true, resources_list_run,
     .one_page = true},
    {"resources/templates/list", RPC_REQUEST, METHOD_BOTH, PROVIDES_RESOURCES, true,
     resources_templates_run, .one_page = true},
    {"resources/read", RPC_REQUEST, METHOD_BOTH, PROVIDES_RESOURCES, true, resources_read_run},
    {"resources/subscribe", RPC_REQUEST, METHOD_LEGACY, PROVIDES_RESOURCES, true,
     resources_subscribe_run},
    {"resources/unsubscribe", RPC_REQUEST, METHOD_LEGACY, PROVIDES_RESOURCES, true,
     resources_unsubscribe_run},
    {"completion/complete", RPC_REQUEST, METHOD_BOTH, PROVIDES_COMPLETION, true,
     prompts_complete_run},
    {"tasks/get", RPC_REQUEST, METHOD_BOTH, PROVIDES_TASKS, true, tasks_get_run},
    {"tasks/cancel", RPC_REQUEST, METHOD_BOTH, PROVIDES_TASKS, true, tasks_cancel_run},
    {"tasks/result", RPC_REQUEST, METHOD_LEGACY, PROVIDES_TASKS, true, tasks_result_run},
    {"tasks/list", RPC_REQUEST, METHOD_LEGACY, PROVIDES_TASKS, true, tasks_list_run,
     .one_page = true},
    {"tasks/update", RPC_REQUEST, METHOD_MODERN, PROVIDES_TASKS, true, tasks_update_run},
    {"logging/setLevel", RPC_REQUEST, METHOD_LEGACY, PROVIDES_LOGGING, true, run_set_level},
    {"notifications/initialized", RPC_NOTIFICATION, METHOD_LEGACY, 0, false, run_initialized},
    {"notifications/cancelled", RPC_NOTIFICATION, METHOD_BOTH, 0, false, run_cancelled},
};

const struct method *method_find(const struct provider *p, const struct inbound *in)
{
    unsigned era = in->modern ? METHOD_MODERN : METHOD_LEGACY;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        const struct method *m = &methods[i];
        if (m->kind == in->m.kind && strcmp(m->name, in->m.method) == 0)
            return (m->eras & era) && (p->provides & m->provides) == m->provides ? m : NULL;
    }
    return NULL;
}
