/* mcp/listen: see listen.h. */
#include "mcp/listen.h"

#include "mcp/meta.h"
#include "mcp/provider.h"
#include "mcp/session.h"
#include "wire/json.h"

struct listener {
    struct list node; /* in server->listeners */
    struct request *rq;
    bool topics[LISTEN_TOPICS];
    struct strv uris;
};

struct topic {
    const char *filter; /* in params.notifications */
    const char *method;
    unsigned provides;
};

static const struct topic topics[LISTEN_TOPICS] = {
    [LISTEN_TOOLS] = {"toolsListChanged", "notifications/tools/list_changed", PROVIDES_TOOLS},
    [LISTEN_PROMPTS] = {"promptsListChanged", "notifications/prompts/list_changed",
                        PROVIDES_PROMPTS},
    [LISTEN_RESOURCES] = {"resourcesListChanged", "notifications/resources/list_changed",
                          PROVIDES_RESOURCES},
};

static void start(struct buf *out, struct jsonw *w, const char *method)
{
    buf_printf(out, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":", method);
    jsonw_init(w, out);
    jsonw_object(w);
}

static void write_subscription(const struct listener *l, struct jsonw *w)
{
    jsonw_key(w, "_meta");
    jsonw_object(w);
    jsonw_key(w, META_SUBSCRIPTION);
    jsonw_raw(w, l->rq->id.text, l->rq->id.len);
    jsonw_object_end(w);
}

static void say(struct listener *l, struct buf *out, struct jsonw *w)
{
    jsonw_object_end(w);
    buf_putc(out, '}');
    peer_notify(l->rq->peer, out);
}

static void acknowledge(struct listener *l)
{
    autobuf out = BUF_INIT;
    struct jsonw w;
    start(&out, &w, "notifications/subscriptions/acknowledged");
    jsonw_key(&w, "notifications");
    jsonw_object(&w);
    for (size_t i = 0; i < LISTEN_TOPICS; i++) {
        if (l->topics[i])
            jsonw_kbool(&w, topics[i].filter, true);
    }
    if (l->uris.len > 0) {
        jsonw_key(&w, "resourceSubscriptions");
        jsonw_array(&w);
        for (size_t i = 0; i < l->uris.len; i++)
            jsonw_str(&w, l->uris.items[i]);
        jsonw_array_end(&w);
    }
    jsonw_object_end(&w);
    write_subscription(l, &w);
    say(l, &out, &w);
}

static int read_uris(struct listener *l, struct json_object *uris, struct err *e)
{
    if (uris == NULL)
        return 0;
    if (!json_object_is_type(uris, json_type_array) ||
        json_object_array_length(uris) > LISTEN_URIS_MAX)
        return err_set(e, ERR_INVALID_PARAMS,
                       "params.notifications.resourceSubscriptions: must be an array of at most "
                       "LISTEN_URIS_MAX (%u) URIs",
                       LISTEN_URIS_MAX);
    for (size_t i = 0; i < json_object_array_length(uris); i++) {
        const char *uri = json_str(json_object_array_get_idx(uris, i));
        if (uri == NULL)
            return err_set(e, ERR_INVALID_PARAMS,
                           "params.notifications.resourceSubscriptions[%zu]: must be a string", i);
        strv_add(&l->uris, uri);
    }
    return 0;
}

static int read_filter(struct listener *l, struct json_object *filter, struct err *e)
{
    unsigned provides = l->rq->server->provider->provides;
    if (!json_object_is_type(filter, json_type_object))
        return err_set(e, ERR_INVALID_PARAMS,
                       "params.notifications: must be an object that names what to listen for");
    for (size_t i = 0; i < LISTEN_TOPICS; i++)
        l->topics[i] = json_object_get_boolean(json_get(filter, topics[i].filter)) &&
                       (provides & PROVIDES_CHANGES) && (provides & topics[i].provides);
    if (!(provides & PROVIDES_RESOURCES))
        return 0;
    return read_uris(l, json_get(filter, "resourceSubscriptions"), e);
}

void listen_run(const struct inbound *in)
{
    struct err e;
    struct request *rq = request_new(in, NULL);
    struct listener *l = mem_new(struct listener);
    l->rq = rq;
    rq->listener = l;
    list_append(&rq->server->listeners, &l->node);
    if (read_filter(l, json_get(in->m.params, "notifications"), &e) < 0)
        request_error(rq, &e, NULL);
    else
        acknowledge(l);
}

void listen_end(struct request *rq)
{
    struct listener *l = steal(rq->listener);
    if (l == NULL)
        return;
    list_remove(&l->node);
    strv_fini(&l->uris);
    free(l);
}

static void tell_legacy(struct session *s, const char *method, const char *uri)
{
    autobuf out = BUF_INIT;
    struct jsonw w;
    start(&out, &w, method);
    if (uri != NULL)
        jsonw_kstr(&w, "uri", uri);
    jsonw_object_end(&w);
    buf_putc(&out, '}');
    peer_notify(s->peer, &out);
}

void listen_changed(struct server *server, enum listen_topic topic)
{
    list_each (it, &server->listeners) {
        struct listener *l = container_of(it, struct listener, node);
        autobuf out = BUF_INIT;
        struct jsonw w;
        if (!l->topics[topic])
            continue;
        start(&out, &w, topics[topic].method);
        write_subscription(l, &w);
        say(l, &out, &w);
    }
    list_each (it, &server->sessions) {
        struct session *s = container_of(it, struct session, node);
        if (s->version != NULL)
            tell_legacy(s, topics[topic].method, NULL);
    }
}

void listen_updated(struct server *server, const char *uri)
{
    static const char method[] = "notifications/resources/updated";
    list_each (it, &server->listeners) {
        struct listener *l = container_of(it, struct listener, node);
        autobuf out = BUF_INIT;
        struct jsonw w;
        if (!strv_has(&l->uris, uri))
            continue;
        start(&out, &w, method);
        jsonw_kstr(&w, "uri", uri);
        write_subscription(l, &w);
        say(l, &out, &w);
    }
    list_each (it, &server->sessions) {
        struct session *s = container_of(it, struct session, node);
        if (strv_has(&s->subscribed, uri))
            tell_legacy(s, method, uri);
    }
}

/* The result of a subscription names it too. */
static void finish(struct listener *l)
{
    struct request *rq = l->rq;
    autobuf message = BUF_INIT;
    rpc_write_result_head(&message, &rq->id);
    buf_printf(&message, "{\"resultType\":\"complete\",\"_meta\":{\"" META_SUBSCRIPTION "\":%s}}}",
               rq->id.text);
    rq->peer->ops->send(rq->peer, &message);
    request_cancel(rq);
}

void listen_finish_all(struct server *server)
{
    while (!list_empty(&server->listeners))
        finish(container_of(server->listeners.next, struct listener, node));
}
