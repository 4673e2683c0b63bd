/* mcp/ask: see ask.h. */
#include "mcp/ask.h"

#include "mcp/meta.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdio.h>

struct ask {
    struct list node;
    struct rpc_id id;
    struct request *rq;
    ask_fn done;
};

struct json_object *ask_client_capability(const struct request *rq, const char *capability)
{
    struct json_object *all = rq->session != NULL ? rq->session->capabilities : NULL;
    if (rq->modern)
        all = meta_get(json_get(rq->message, "params"), META_CAPABILITIES);
    struct json_object *one = json_get(all, capability);
    return json_object_is_type(one, json_type_object) ? one : NULL;
}

bool ask_client_has(const struct request *rq, const char *capability)
{
    return ask_client_capability(rq, capability) != NULL;
}

void ask_refuse(struct request *rq, const char *capability)
{
    struct err e;
    autobuf data = BUF_INIT;
    buf_printf(&data, "{\"requiredCapabilities\":{\"%s\":{}}}", capability);
    err_set(&e, rq->modern ? ERR_CAPABILITY_MISSING : ERR_INVALID_REQUEST,
            "this needs a client that declares the capability \"%s\"", capability);
    peer_status(rq->peer, rq->modern ? 400 : 200);
    request_error(rq, &e, &data);
}

static void ask_free(struct session *s, struct ask *a)
{
    list_remove(&a->node);
    s->n_asks--;
    free(a);
}

bool ask_client(struct request *rq, const char *method, const char *params, ask_fn done)
{
    struct session *s = rq->session;
    autobuf out = BUF_INIT;
    if (rq->modern || s == NULL || s->n_asks >= ASK_MAX)
        return false;
    struct ask *a = mem_new(struct ask);
    a->rq = rq;
    a->done = done;
    a->id.len =
        (unsigned)snprintf(a->id.text, sizeof(a->id.text), "\"ask-%" PRIu64 "\"", ++s->ask_seq);
    list_append(&s->asks, &a->node);
    s->n_asks++;
    buf_printf(&out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":", a->id.text,
               method);
    buf_puts(&out, params);
    buf_putc(&out, '}');
    if (peer_notify(rq->peer, &out))
        return true;
    ask_free(s, a);
    return false;
}

void ask_answered(struct session *s, const struct rpc_message *m, struct json_object *message)
{
    list_each (it, &s->asks) {
        struct ask *a = container_of(it, struct ask, node);
        if (!rpc_id_equal(&a->id, &m->id))
            continue;
        struct request *rq = a->rq;
        ask_fn done = a->done;
        ask_free(s, a);
        done(rq, json_get(message, "result"));
        return;
    }
}

bool ask_waits(struct session *s, const struct request *rq)
{
    list_each (it, &s->asks) {
        if (container_of(it, struct ask, node)->rq == rq)
            return true;
    }
    return false;
}

void ask_drop(struct session *s, const struct request *rq)
{
    list_each (it, &s->asks) {
        struct ask *a = container_of(it, struct ask, node);
        if (a->rq == rq)
            ask_free(s, a);
    }
}
