/* mcp/resources: see resources.h. */
#include "mcp/resources.h"

#include "mcp/provider.h"
#include "mcp/session.h"
#include "wire/json.h"

#include <string.h>

static bool is_template(const struct resource *r)
{
    return strchr(r->uri, '{') != NULL;
}

static void write_one(struct jsonw *w, const struct resource *r)
{
    jsonw_object(w);
    jsonw_kstr(w, is_template(r) ? "uriTemplate" : "uri", r->uri);
    jsonw_kstr(w, "name", r->name);
    jsonw_kstr(w, "title", r->title);
    jsonw_kstr(w, "description", r->description);
    jsonw_kstr(w, "mimeType", r->mime);
    jsonw_object_end(w);
}

static void list(const struct inbound *in, const char *key, bool templates)
{
    struct request *rq = request_new(in, NULL);
    struct jsonw *w = request_answer(rq);
    rq->cached = true;
    jsonw_key(w, key);
    jsonw_array(w);
    for (const struct resource *const *r = rq->server->provider->resources; *r != NULL; r++) {
        if (is_template(*r) == templates)
            write_one(w, *r);
    }
    jsonw_array_end(w);
    request_finish(rq);
}

void resources_list_run(const struct inbound *in)
{
    list(in, "resources", false);
}

void resources_templates_run(const struct inbound *in)
{
    list(in, "resourceTemplates", true);
}

bool resources_match(const char *t, const char *uri)
{
    while (*t != '\0') {
        if (*t != '{') {
            if (*t++ != *uri++)
                return false;
            continue;
        }
        t += strcspn(t, "}");
        t += *t == '}';
        size_t n = strcspn(uri, "/");
        /* What follows the braces ends the part, when it comes before the next slash. */
        if (*t != '\0' && *t != '/' && strchr(uri, *t) != NULL && strchr(uri, *t) < uri + n)
            n = (size_t)(strchr(uri, *t) - uri);
        if (n == 0)
            return false;
        uri += n;
    }
    return *uri == '\0';
}

static const struct resource *find(const struct provider *provider, const char *uri)
{
    for (const struct resource *const *r = provider->resources; *r != NULL; r++) {
        if (resources_match((*r)->uri, uri))
            return *r;
    }
    return NULL;
}

static const char *uri_of(const struct inbound *in)
{
    struct err e;
    const char *uri = json_str(json_get(in->m.params, "uri"));
    if (uri == NULL) {
        err_set(&e, ERR_INVALID_PARAMS, "params.uri: is required (a string)");
        inbound_error(in, &e, NULL);
    }
    return uri;
}

static void not_found(const struct inbound *in, const char *uri)
{
    struct err e;
    autobuf data = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &data);
    jsonw_object(&w);
    jsonw_kstr(&w, "uri", uri);
    jsonw_object_end(&w);
    err_set(&e, in->modern ? ERR_INVALID_PARAMS : ERR_RESOURCE_UNKNOWN,
            "params.uri: there is no resource \"%.256s\"", uri);
    inbound_error(in, &e, &data);
}

void resources_read_run(const struct inbound *in)
{
    const char *uri = uri_of(in);
    if (uri == NULL)
        return;
    const struct resource *r = find(in->session->server->provider, uri);
    if (r == NULL) {
        not_found(in, uri);
        return;
    }
    struct request *rq = request_new(in, NULL);
    struct jsonw *w = request_answer(rq);
    rq->cached = true;
    jsonw_key(w, "contents");
    jsonw_array(w);
    jsonw_object(w);
    jsonw_kstr(w, "uri", uri);
    jsonw_kstr(w, "mimeType", r->mime);
    r->read(uri, w);
    jsonw_object_end(w);
    jsonw_array_end(w);
    request_finish(rq);
}

static void reply_empty(const struct inbound *in)
{
    autobuf empty = BUF_INIT;
    buf_puts(&empty, "{}");
    inbound_reply(in, &empty);
}

void resources_subscribe_run(const struct inbound *in)
{
    struct err e;
    struct strv *all = &in->session->subscribed;
    const char *uri = uri_of(in);
    if (uri == NULL)
        return;
    if (strv_has(all, uri)) {
        reply_empty(in);
    } else if (find(in->session->server->provider, uri) == NULL) {
        not_found(in, uri);
    } else if (all->len >= RESOURCES_SUBSCRIBED_MAX) {
        err_set(&e, ERR_LIMIT_EXCEEDED,
                "RESOURCES_SUBSCRIBED_MAX (%u) resources are subscribed to; unsubscribe first",
                RESOURCES_SUBSCRIBED_MAX);
        inbound_error(in, &e, NULL);
    } else {
        strv_add(all, uri);
        reply_empty(in);
    }
}

void resources_unsubscribe_run(const struct inbound *in)
{
    struct strv *all = &in->session->subscribed;
    const char *uri = uri_of(in);
    if (uri == NULL)
        return;
    for (size_t i = 0; i < all->len; i++) {
        if (strcmp(all->items[i], uri) != 0)
            continue;
        free(all->items[i]);
        all->items[i] = all->items[--all->len];
        all->items[all->len] = NULL;
        break;
    }
    reply_empty(in);
}
