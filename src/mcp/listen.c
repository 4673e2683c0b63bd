/* mcp/listen: see listen.h. */
#include "mcp/listen.h"

#include "mcp/meta.h"
#include "mcp/provider.h"
#include "mcp/resource_watch.h"
#include "mcp/session.h"
#include "mcp/task.h"
#include "mcp/task_methods.h"
#include "wire/json.h"

struct listener {
    struct list node; /* in server->listeners */
    struct request *rq;
    bool topics[LISTEN_TOPICS];
    struct strv uris;
    struct strv tasks; /* ids */
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

static void write_strings(struct jsonw *w, const char *name, const struct strv *all)
{
    if (all->len == 0)
        return;
    jsonw_key(w, name);
    jsonw_array(w);
    for (size_t i = 0; i < all->len; i++)
        jsonw_str(w, all->items[i]);
    jsonw_array_end(w);
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
    write_strings(&w, "resourceSubscriptions", &l->uris);
    write_strings(&w, "taskIds", &l->tasks);
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
        if (resource_watch_add(l->rq->server, uri, e) < 0)
            return -1;
        strv_add(&l->uris, uri);
    }
    return 0;
}

/* Those that there are; the acknowledgement says which. */
static int read_tasks(struct listener *l, struct json_object *ids, struct err *e)
{
    if (ids == NULL)
        return 0;
    if (!json_object_is_type(ids, json_type_array) ||
        json_object_array_length(ids) > LISTEN_TASKS_MAX)
        return err_set(e, ERR_INVALID_PARAMS,
                       "params.notifications.taskIds: must be an array of at most "
                       "LISTEN_TASKS_MAX (%u) ids of tasks",
                       LISTEN_TASKS_MAX);
    for (size_t i = 0; i < json_object_array_length(ids); i++) {
        const char *id = json_str(json_object_array_get_idx(ids, i));
        if (id == NULL)
            return err_set(e, ERR_INVALID_PARAMS,
                           "params.notifications.taskIds[%zu]: must be a string", i);
        if (task_find_for(l->rq->session, id) != NULL && !strv_has(&l->tasks, id))
            strv_add(&l->tasks, id);
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
    if ((provides & PROVIDES_TASKS) && read_tasks(l, json_get(filter, "taskIds"), e) < 0)
        return -1;
    if (!(provides & PROVIDES_RESOURCES))
        return 0;
    return read_uris(l, json_get(filter, "resourceSubscriptions"), e);
}

static void tell_task(struct listener *l, const struct task *t)
{
    autobuf out = BUF_INIT;
    struct jsonw w;
    start(&out, &w, "notifications/tasks");
    task_write_detail(&w, t);
    write_subscription(l, &w);
    say(l, &out, &w);
}

/* What changed before anybody listened would never be told. */
static void tell_tasks(struct listener *l)
{
    for (size_t i = 0; i < l->tasks.len; i++) {
        const struct task *t = task_find(l->rq->server, l->tasks.items[i]);
        if (t != NULL && t->status != TASK_WORKING) /* its time may be over just now */
            tell_task(l, t);
    }
}

void listen_run(const struct inbound *in)
{
    struct err e;
    struct json_object *ids = json_get(json_get(in->m.params, "notifications"), "taskIds");
    if (ids != NULL && tasks_refuse_undeclared(in))
        return;
    struct request *rq = request_new(in, NULL);
    struct listener *l = mem_new(struct listener);
    l->rq = rq;
    rq->listener = l;
    list_append(&rq->server->listeners, &l->node);
    if (read_filter(l, json_get(in->m.params, "notifications"), &e) < 0) {
        request_error(rq, &e, NULL);
        return;
    }
    acknowledge(l);
    tell_tasks(l);
}

void listen_end(struct request *rq)
{
    struct listener *l = steal(rq->listener);
    if (l == NULL)
        return;
    list_remove(&l->node);
    bool watched = l->uris.len > 0;
    strv_fini(&l->uris);
    strv_fini(&l->tasks);
    free(l);
    if (watched)
        resource_watch_check(rq->server);
}

void listen_each_uri(struct server *server, void (*visit)(const char *uri, void *user), void *user)
{
    list_each (it, &server->listeners) {
        const struct listener *l = container_of(it, struct listener, node);
        for (size_t i = 0; i < l->uris.len; i++)
            visit(l->uris.items[i], user);
    }
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

static void tell_owner(struct session *s, const struct task *t)
{
    autobuf out = BUF_INIT;
    struct jsonw w;
    start(&out, &w, "notifications/tasks/status");
    task_write(&w, t, false);
    jsonw_object_end(&w);
    buf_putc(&out, '}');
    peer_notify(s->peer, &out);
}

void listen_task_changed(const struct task *t)
{
    list_each (it, &t->server->listeners) {
        struct listener *l = container_of(it, struct listener, node);
        if (strv_has(&l->tasks, t->id))
            tell_task(l, t);
    }
    list_each (it, &t->server->sessions) {
        struct session *s = container_of(it, struct session, node);
        if (!t->modern && s->serial == t->owner)
            tell_owner(s, t);
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
