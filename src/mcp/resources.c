/* mcp/resources: see resources.h. */
#include "mcp/resources.h"

#include "base/utf8.h"
#include "mcp/provider.h"
#include "mcp/resource_watch.h"
#include "mcp/session.h"
#include "wire/json.h"

#include <ctype.h>
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

/* The end of the text that the braces at t stand for, when `uri` begins with it; t is behind them.
 */
static const char *part_end(const char *t, const char *uri, bool any)
{
    size_t n = any ? strlen(uri) : strcspn(uri, "/");
    /* What follows the braces ends the part, when it comes before the next slash. */
    if (*t != '\0' && *t != '/' && strchr(uri, *t) != NULL && strchr(uri, *t) < uri + n)
        n = (size_t)(strchr(uri, *t) - uri);
    return uri + n;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    if (!isxdigit((unsigned char)c))
        return -1;
    return (int)(strchr(digits, c | 0x20) - digits);
}

/* RFC 3986, 2.1. False for a '%' that no two digits follow, and for %00. */
static bool decode(const char *text, size_t n, struct strv *ret)
{
    autobuf out = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '%') {
            buf_putc(&out, text[i]);
            continue;
        }
        int high = i + 2 < n ? hex_digit(text[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
        if (low < 0 || (high == 0 && low == 0))
            return false;
        buf_putc(&out, (char)(high << 4 | low));
        i += 2;
    }
    strv_add_take(ret, buf_steal(&out));
    return true;
}

/* ret may be NULL. */
static bool match(const char *t, const char *uri, struct strv *ret)
{
    while (*t != '\0') {
        if (*t != '{') {
            if (*t++ != *uri++)
                return false;
            continue;
        }
        bool any = t[1] == '+';
        t += strcspn(t, "}");
        t += *t == '}';
        const char *end = part_end(t, uri, any);
        if (end == uri || (ret != NULL && !decode(uri, (size_t)(end - uri), ret)))
            return false;
        uri = end;
    }
    return *uri == '\0';
}

bool resources_match(const char *t, const char *uri)
{
    return match(t, uri, NULL);
}

bool resources_parts(const char *t, const char *uri, struct strv *ret)
{
    if (match(t, uri, ret))
        return true;
    strv_fini(ret);
    return false;
}

const struct resource *resources_find(const struct provider *provider, const char *uri,
                                      struct strv *ret)
{
    for (const struct resource *const *r = provider->resources; *r != NULL; r++) {
        if (resources_parts((*r)->uri, uri, ret))
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

static void write_data(struct buf *data, const char *uri, const char *code)
{
    struct jsonw w;
    jsonw_init(&w, data);
    jsonw_object(&w);
    jsonw_kstr(&w, "uri", uri);
    if (code != NULL)
        jsonw_kstr(&w, "code", code);
    jsonw_object_end(&w);
}

static void not_found(const struct inbound *in, const char *uri)
{
    struct err e;
    autobuf data = BUF_INIT;
    write_data(&data, uri, NULL);
    err_set(&e, in->modern ? ERR_INVALID_PARAMS : ERR_RESOURCE_UNKNOWN,
            "params.uri: there is no resource \"%.256s\"", uri);
    inbound_error(in, &e, &data);
}

/* ---- resources/read ---- */

static struct jsonw *begin(struct request *rq, const char *uri, const char *mime)
{
    struct jsonw *w = request_answer(rq);
    jsonw_key(w, "contents");
    jsonw_array(w);
    jsonw_object(w);
    jsonw_kstr(w, "uri", uri);
    jsonw_kstr(w, "mimeType", mime);
    return w;
}

static void end(struct request *rq)
{
    jsonw_object_end(&rq->w);
    jsonw_array_end(&rq->w);
    request_finish(rq);
}

void resources_answer(struct resource_read *x, const char *mime, const void *bytes, size_t n)
{
    struct jsonw *w = begin(x->rq, x->uri, mime != NULL ? mime : x->resource->mime);
    bool text = utf8_valid(bytes, n);
    jsonw_key(w, text ? "text" : "blob");
    if (text)
        jsonw_strn(w, bytes, n);
    else
        jsonw_base64(w, bytes, n);
    end(x->rq);
}

/* The protocol's own codes, ours beside them. */
void resources_refuse(struct resource_read *x, const struct err *e)
{
    struct err shown = *e;
    autobuf data = BUF_INIT;
    write_data(&data, x->uri, err_info(e->code)->name);
    shown.code = x->rq->modern ? ERR_INVALID_PARAMS : ERR_RESOURCE_UNKNOWN;
    request_error(x->rq, &shown, &data);
}

static void cancel_read(struct request *rq)
{
    struct resource_read *x = rq->state;
    runner_cancel(rq->server->runner, x->ticket);
}

static void fini_read(struct request *rq)
{
    struct resource_read *x = rq->state;
    strv_fini(&x->parts);
    if (x->own_free != NULL)
        x->own_free(x->own);
}

/* Not in any list: what a call needs that may wait. */
static const struct tool reader = {.name = "resources/read",
                                   .hints = TOOL_READS | TOOL_CONTENT,
                                   .state_size = sizeof(struct resource_read),
                                   .cancel = cancel_read,
                                   .fini = fini_read};

static void read_start(const struct inbound *in, const struct resource *r, const char *uri,
                       struct strv *parts)
{
    struct request *rq = request_new(in, &reader);
    struct resource_read *x = rq->state;
    *x = (struct resource_read){.rq = rq, .resource = r, .uri = uri, .parts = *parts};
    *parts = (struct strv){0};
    rq->cached = true;
    rq->changes = !r->lasting;
    if (r->fetch != NULL) {
        r->fetch(x);
    } else {
        r->read(uri, begin(rq, uri, r->mime));
        end(rq);
    }
}

void resources_read_run(const struct inbound *in)
{
    const char *uri = uri_of(in);
    autostrv parts = {0};
    if (uri == NULL)
        return;
    const struct resource *r = resources_find(in->session->server->provider, uri, &parts);
    if (r == NULL)
        not_found(in, uri);
    else
        read_start(in, r, uri, &parts);
}

/* ---- subscriptions ---- */

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
    autostrv parts = {0};
    const char *uri = uri_of(in);
    if (uri == NULL)
        return;
    if (strv_has(all, uri)) {
        reply_empty(in);
    } else if (resources_find(in->session->server->provider, uri, &parts) == NULL) {
        not_found(in, uri);
    } else if (all->len >= RESOURCES_SUBSCRIBED_MAX) {
        err_set(&e, ERR_LIMIT_EXCEEDED,
                "RESOURCES_SUBSCRIBED_MAX (%u) resources are subscribed to; unsubscribe first",
                RESOURCES_SUBSCRIBED_MAX);
        inbound_error(in, &e, NULL);
    } else if (resource_watch_add(in->session->server, uri, &e) < 0) {
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
    resource_watch_check(in->session->server);
    reply_empty(in);
}
