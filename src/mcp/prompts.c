/* mcp/prompts: see prompts.h. */
#include "mcp/prompts.h"

#include "mcp/provider.h"
#include "mcp/session.h"
#include "wire/json.h"

#include <string.h>

static void write_arguments(struct jsonw *w, const struct prompt *p)
{
    jsonw_key(w, "arguments");
    jsonw_array(w);
    for (size_t i = 0; i < p->n_arguments; i++) {
        jsonw_object(w);
        jsonw_kstr(w, "name", p->arguments[i].name);
        jsonw_kstr(w, "description", p->arguments[i].about);
        jsonw_kbool(w, "required", p->arguments[i].required);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

void prompts_list_run(const struct inbound *in)
{
    struct request *rq = request_new(in, NULL);
    struct jsonw *w = request_answer(rq);
    rq->cached = true;
    jsonw_key(w, "prompts");
    jsonw_array(w);
    for (const struct prompt *const *p = rq->server->provider->prompts; *p != NULL; p++) {
        jsonw_object(w);
        jsonw_kstr(w, "name", (*p)->name);
        jsonw_kstr(w, "title", (*p)->title);
        jsonw_kstr(w, "description", (*p)->description);
        write_arguments(w, *p);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    request_finish(rq);
}

static const struct prompt *find(const struct provider *provider, const char *name)
{
    for (const struct prompt *const *p = provider->prompts; name != NULL && *p != NULL; p++) {
        if (strcmp((*p)->name, name) == 0)
            return *p;
    }
    return NULL;
}

const char *prompts_argument(const struct request *rq, const char *name)
{
    const char *value = json_str(json_get(json_get(request_params(rq), "arguments"), name));
    return value != NULL ? value : "";
}

static int check(const struct prompt *p, struct json_object *arguments, struct err *e)
{
    for (size_t i = 0; i < p->n_arguments; i++) {
        struct json_object *value = json_get(arguments, p->arguments[i].name);
        if (value == NULL && p->arguments[i].required)
            return err_set(e, ERR_INVALID_PARAMS, "params.arguments.%s: is required (a string)",
                           p->arguments[i].name);
        if (value != NULL && json_str(value) == NULL)
            return err_set(e, ERR_INVALID_PARAMS, "params.arguments.%s: must be a string",
                           p->arguments[i].name);
    }
    return 0;
}

void prompts_get_run(const struct inbound *in)
{
    struct err e;
    const char *name = json_str(json_get(in->m.params, "name"));
    const struct prompt *p = find(in->session->server->provider, name);
    int ok = p != NULL ? check(p, json_get(in->m.params, "arguments"), &e)
                       : err_set(&e, ERR_INVALID_PARAMS,
                                 "params.name: there is no prompt \"%.64s\"; see prompts/list",
                                 name != NULL ? name : "");
    if (ok < 0)
        inbound_error(in, &e, NULL);
    else
        p->get(request_new(in, NULL));
}

/* A template as resources/templates/list has it, or a URI that fits one. */
static int check_template(const struct inbound *in, const char *uri, struct err *e)
{
    const struct provider *p = in->session->server->provider;
    for (const struct resource *const *r = p->resources; r != NULL && uri != NULL && *r != NULL;
         r++) {
        if (strcmp((*r)->uri, uri) == 0 || resources_match((*r)->uri, uri))
            return 0;
    }
    return err_set(e, ERR_INVALID_PARAMS,
                   "params.ref.uri: there is no such resource template; see "
                   "resources/templates/list");
}

static int check_reference(const struct inbound *in, struct err *e)
{
    struct json_object *ref = json_get(in->m.params, "ref");
    const char *type = json_str(json_get(ref, "type"));
    if (json_str(json_get(json_get(in->m.params, "argument"), "name")) == NULL)
        return err_set(e, ERR_INVALID_PARAMS, "params.argument: must be {name, value}");
    if (type != NULL && strcmp(type, "ref/resource") == 0)
        return check_template(in, json_str(json_get(ref, "uri")), e);
    if (type == NULL || strcmp(type, "ref/prompt") != 0)
        return err_set(e, ERR_INVALID_PARAMS,
                       "params.ref.type: must be \"ref/prompt\" or \"ref/resource\"");
    if (find(in->session->server->provider, json_str(json_get(ref, "name"))) == NULL)
        return err_set(e, ERR_INVALID_PARAMS, "params.ref.name: there is no such prompt");
    return 0;
}

void prompts_complete_run(const struct inbound *in)
{
    struct err e;
    if (check_reference(in, &e) < 0) {
        inbound_error(in, &e, NULL);
        return;
    }
    const struct tool *completer = in->session->server->provider->completer;
    struct request *rq = request_new(in, completer);
    if (completer != NULL) {
        completer->run(rq);
        return;
    }
    struct jsonw *w = request_answer(rq);
    static const char none[] = "{\"values\":[],\"total\":0,\"hasMore\":false}";
    jsonw_key(w, "completion");
    jsonw_raw(w, none, sizeof(none) - 1);
    request_finish(rq);
}
