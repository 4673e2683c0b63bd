/* mcp/http_route: what one HTTP request is, and whether it may be.
 *
 * The order of the checks: who asks (Host, Origin, path, token) before the body; then the content
 * type, the JSON, the era, what the headers of that era must say, and only then the message. The
 * rules and their statuses are those of the MCP specification, "Streamable HTTP", of both eras.
 */
#include "mcp/http.h"
#include "mcp/http_cors.h"
#include "mcp/http_modern.h"
#include "mcp/http_operator.h"
#include "mcp/http_param.h"
#include "mcp/meta.h"
#include "mcp/methods.h"
#include "mcp/provider.h"
#include "wire/json.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#define ALLOW "Allow: POST, GET, DELETE\r\n"

static const struct rpc_id no_id;

/* ---- answers ---- */

static void refuse(struct http_conn *c, int status, const char *text)
{
    http_conn_say(c, status, "", "text/plain", text);
}

/* A JSON-RPC error as the whole answer. */
static void fail(struct http_conn *c, int status, const struct rpc_id *id, const struct err *e,
                 const struct buf *data)
{
    autobuf body = BUF_INIT;
    rpc_write_error_data(&body, id, e, data != NULL ? buf_bytes(data) : NULL,
                         data != NULL ? data->len : 0);
    http_conn_answer(c, status, "Content-Type: application/json\r\n", &body);
}

static void accept_only(struct http_conn *c)
{
    autobuf none = BUF_INIT;
    http_conn_answer(c, 202, "", &none);
}

/* ---- who asks ---- */

static bool is_ours(const struct http_conn *c, const struct http1_head *h)
{
    const struct http_policy *p = &c->http->policy;
    bool more = false;
    const struct http1_header *origin = http1_find(h, "origin", &more);
    if (more ||
        (origin != NULL && !http_policy_origin(p, http1_at(h, origin->value), origin->value.len)))
        return false;
    if (c->local) /* no name leads a browser here */
        return true;
    if (h->host < 0)
        return false;
    const struct http1_header *host = &h->headers[h->host];
    return http_policy_host(p, http1_at(h, host->value), host->value.len);
}

static bool is_here(const struct http1_head *h)
{
    size_t n = strlen(HTTP_PATH);
    const char *target = http1_at(h, h->target);
    return h->target.len >= n && memcmp(target, HTTP_PATH, n) == 0 &&
           (h->target.len == n || target[n] == '?');
}

static bool is_metadata(const struct http_conn *c, const struct http1_head *h)
{
    const struct oauth *o = c->http->policy.oauth;
    return o != NULL && oauth_is_metadata(o, http1_at(h, h->target), h->target.len);
}

/* The fixed token is looked at first, where there is one. */
static enum oauth_verdict check_token(struct http_conn *c, const struct http1_head *h,
                                      struct err *why)
{
    const struct http_policy *p = &c->http->policy;
    bool more = false;
    c->principal = (struct oauth_principal){0};
    if (p->token == NULL && p->oauth == NULL)
        return OAUTH_FINE;
    const struct http1_header *a = http1_find(h, "authorization", &more);
    err_set(why, ERR_UNAUTHORIZED, "a token is needed: Authorization: Bearer TOKEN");
    if (a == NULL || more)
        return a == NULL ? OAUTH_NONE : OAUTH_MALFORMED;
    const char *value = http1_at(h, a->value);
    if (p->token != NULL && http_policy_bearer(p, value, a->value.len))
        return OAUTH_FINE;
    return p->oauth != NULL
               ? oauth_check(p->oauth, value, a->value.len, time(NULL), &c->principal, why)
               : OAUTH_INVALID;
}

static void refuse_token(struct http_conn *c, enum oauth_verdict verdict, const struct err *why)
{
    const struct oauth *o = c->http->policy.oauth;
    autobuf challenge = BUF_INIT;
    autobuf body = BUF_INIT;
    struct jsonw w;
    if (o == NULL) {
        http_conn_say(c, 401, "WWW-Authenticate: Bearer\r\n", "application/json",
                      "{\"error\":\"unauthorized\"}");
        return;
    }
    oauth_challenge(o, verdict, &challenge);
    jsonw_init(&w, &body);
    jsonw_object(&w);
    jsonw_kstr(&w, "error", "unauthorized");
    jsonw_kstr(&w, "error_description", why->message);
    jsonw_object_end(&w);
    http_conn_say(c, oauth_status(verdict), buf_cstr(&challenge), "application/json",
                  buf_cstr(&body));
}

static void answer_preflight(struct http_conn *c)
{
    autobuf more = BUF_INIT;
    autobuf none = BUF_INIT;
    http_cors_write_preflight(&more);
    http_conn_answer(c, 204, buf_cstr(&more), &none);
}

static void refuse_head(struct http_conn *c, int status)
{
    if (status == 403)
        refuse(
            c, 403,
            "Host or Origin is not one of this server; --allow-host and --allow-origin add some");
    else if (status == 404)
        refuse(c, 404, "the endpoint is " HTTP_PATH);
    else if (status == 405)
        http_conn_say(c, 405, "Allow: GET\r\n", "text/plain", "this is read with GET");
    else
        refuse(c, 503, "the server is ending");
}

/* What nobody needs a token for takes no body either. */
static bool is_open_read(const struct http1_head *h)
{
    return http1_is(h, h->method, "GET") && h->body == HTTP1_BODY_NONE;
}

int http_route_head(struct http_conn *c, const struct http1_head *h)
{
    struct err why;
    if (http_operator_is(h) && is_ours(c, h))
        return http_operator_head(c, h);
    enum oauth_verdict verdict = OAUTH_FINE;
    bool metadata = is_metadata(c, h);
    int status = !is_ours(c, h) ? 403 : !metadata && !is_here(h) ? 404 : 0;
    if (status == 0 && c->http->draining)
        status = 503;
    c->origin = status == 0 ? http_cors_origin(&c->http->policy, h) : NULL;
    bool preflight = c->origin != NULL && http_cors_is_preflight(h);
    if (status == 0 && !preflight && metadata)
        status = is_open_read(h) ? 0 : 405;
    else if (status == 0 && !preflight)
        verdict = check_token(c, h, &why);
    if (status == 0 && !preflight && verdict == OAUTH_FINE)
        return 0;
    c->keep_alive = false;
    if (status != 0)
        refuse_head(c, status);
    else if (preflight)
        answer_preflight(c);
    else
        refuse_token(c, verdict, &why);
    return -1;
}

/* ---- what is accepted ---- */

static bool is_json(const struct http1_head *h)
{
    const struct http1_header *type = http1_find(h, "content-type", NULL);
    if (type == NULL)
        return false;
    struct http1_slice media = type->value;
    const char *semicolon = memchr(http1_at(h, media), ';', media.len);
    if (semicolon != NULL)
        media.len = (uint32_t)(semicolon - http1_at(h, media));
    while (media.len > 0 && http1_at(h, media)[media.len - 1] == ' ')
        media.len--;
    return http1_is_ci(h, media, "application/json");
}

struct accepts {
    bool json, stream;
};

/* Lenient: parameters are not looked at, an absent header takes anything. */
static void accept_token(struct accepts *a, const char *text, size_t n)
{
    static const struct {
        const char *type;
        bool json, stream;
    } all[] = {{"application/json", true, false},
               {"application/*", true, false},
               {"text/event-stream", false, true},
               {"text/*", false, true},
               {"*/*", true, true}};
    while (n > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        n--;
    }
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        size_t len = strlen(all[i].type);
        bool whole = n == len || (n > len && strchr("; \t", text[len]) != NULL);
        if (whole && strncasecmp(text, all[i].type, len) == 0) {
            a->json |= all[i].json;
            a->stream |= all[i].stream;
        }
    }
}

static struct accepts read_accept(const struct http1_head *h)
{
    struct accepts a = {false, false};
    bool any = false;
    for (uint32_t i = 0; i < h->n_headers; i++) {
        if (!http1_is_ci(h, h->headers[i].name, "accept"))
            continue;
        any = true;
        const char *p = http1_at(h, h->headers[i].value);
        const char *end = p + h->headers[i].value.len;
        while (p < end) {
            const char *comma = memchr(p, ',', (size_t)(end - p));
            const char *stop = comma != NULL ? comma : end;
            accept_token(&a, p, (size_t)(stop - p));
            p = stop + 1;
        }
    }
    return any ? a : (struct accepts){true, true};
}

/* ---- legacy ---- */

/* The session of the request; NULL when it was answered, to `id`, that there is none. */
static struct http_session *session_of(struct http_conn *c, const struct http1_head *h,
                                       const struct rpc_id *id)
{
    struct err e;
    const struct http1_header *name = http1_find(h, "mcp-session-id", NULL);
    if (name == NULL) {
        err_set(&e, ERR_INVALID_REQUEST,
                "Mcp-Session-Id: is required; initialize opens a session and tells its id "
                "(requests of revision 2026-07-28 need none)");
        fail(c, 400, id, &e, NULL);
        return NULL;
    }
    struct http_session *s =
        http_session_get(c->http, http1_at(h, name->value), name->value.len, &c->principal);
    if (s == NULL) {
        err_set(&e, ERR_UNAUTHORIZED, "Session not found; send initialize to open a new one");
        fail(c, 404, id, &e, NULL);
    }
    return s;
}

static bool version_is_served(struct http_conn *c, const struct http1_head *h)
{
    struct err e;
    const struct http1_header *v = http1_find(h, "mcp-protocol-version", NULL);
    if (v == NULL)
        return true;
    autofree char *text = mem_dup(http1_at(h, v->value), v->value.len);
    if (method_version_served(text))
        return true;
    err_set(&e, ERR_INVALID_REQUEST,
            "MCP-Protocol-Version: \"%.32s\" is not served; 2024-11-05, 2025-03-26, 2025-06-18, "
            "2025-11-25 and 2026-07-28 are",
            text);
    fail(c, 400, &no_id, &e, NULL);
    return false;
}

/* Does anything in it want an answer? */
static bool wants_answer(struct json_object *message)
{
    struct rpc_message m;
    if (!json_object_is_type(message, json_type_array))
        return rpc_read(message, &m, NULL) < 0 || m.kind == RPC_REQUEST;
    for (size_t i = 0; i < json_object_array_length(message); i++) {
        if (rpc_read(json_object_array_get_idx(message, i), &m, NULL) < 0 || m.kind == RPC_REQUEST)
            return true;
    }
    return false;
}

static void take_quietly(struct http_session *s, struct json_object *message)
{
    if (!json_object_is_type(message, json_type_array)) {
        session_take(&s->session, &s->peer, message, false);
        return;
    }
    for (size_t i = 0; i < json_object_array_length(message); i++)
        session_take(&s->session, &s->peer, json_object_array_get_idx(message, i), false);
}

static void initialize(struct http_conn *c, struct json_object *message, const struct rpc_id *id,
                       bool may_stream)
{
    struct err e;
    struct http_session *s = http_session_new(c->http, &c->principal);
    if (s == NULL) {
        err_set(&e, ERR_RESOURCE_QUEUE_FULL,
                "HTTP_SESSIONS_MAX (%u) sessions are open, each with a stream or a call; end one "
                "with DELETE",
                HTTP_SESSIONS_MAX);
        fail(c, 503, id, &e, NULL);
        return;
    }
    http_call_start(c, s, message, may_stream, true);
    if (s->session.version == NULL) /* it was refused */
        http_session_free(s);
}

/* 0, or the status with which an array is refused. Several answers need a stream. */
static int check_batch(const struct http_session *s, struct json_object *message, bool may_stream,
                       struct err *e)
{
    if (!session_takes_batches(&s->session) || json_object_array_length(message) == 0) {
        err_set(e, ERR_INVALID_REQUEST,
                "an array is no message here; send each message by itself (batches belong to "
                "revision " METHODS_BATCH_VERSION " and are not empty)");
        return 400;
    }
    if (!wants_answer(message))
        return 0;
    if (!may_stream) {
        err_set(e, ERR_INVALID_REQUEST,
                "Accept: must list text/event-stream for an array, whose answers are a stream");
        return 406;
    }
    if (s->n_streams < HTTP_STREAMS_MAX)
        return 0;
    err_set(e, ERR_RESOURCE_QUEUE_FULL,
            "HTTP_STREAMS_MAX (%u) streams of this session are open, and the answers to an array "
            "are one; wait for others to end",
            HTTP_STREAMS_MAX);
    return 503;
}

static void post_legacy(struct http_conn *c, const struct http1_head *h,
                        struct json_object *message, bool may_stream)
{
    struct err e;
    struct rpc_message m = {0};
    bool batch = json_object_is_type(message, json_type_array);
    if (!version_is_served(c, h))
        return;
    if (!batch && rpc_read(message, &m, &e) < 0) {
        fail(c, 400, &m.id, &e, NULL);
        return;
    }
    if (!batch && m.kind == RPC_REQUEST && strcmp(m.method, "initialize") == 0) {
        initialize(c, message, &m.id, may_stream);
        return;
    }
    struct http_session *s = session_of(c, h, &m.id);
    if (s == NULL)
        return;
    int status = batch ? check_batch(s, message, may_stream, &e) : 0;
    if (status != 0) {
        fail(c, status, &no_id, &e, NULL);
    } else if (wants_answer(message)) {
        http_call_start(c, s, message, may_stream, false);
    } else {
        take_quietly(s, message);
        accept_only(c);
    }
}

/* ---- the three methods ---- */

static int check_params(const struct http_conn *c, const struct http1_head *h,
                        const struct rpc_message *m, struct err *e)
{
    const char *name = json_str(json_get(m->params, "name"));
    if (m->kind != RPC_REQUEST || name == NULL || strcmp(m->method, "tools/call") != 0 ||
        c->http->server->provider->tools == NULL)
        return 0;
    return http_param_check(h, tool_by_name(c->http->server->provider->tools, name),
                            json_get(m->params, "arguments"), e);
}

static void post_modern(struct http_conn *c, const struct http1_head *h,
                        struct json_object *message, bool may_stream)
{
    struct err e;
    autobuf data = BUF_INIT;
    struct rpc_message m = {0};
    if (rpc_read(message, &m, &e) < 0 || http_modern_check(h, &m, &data, &e) < 0 ||
        check_params(c, h, &m, &e) < 0)
        fail(c, 400, &m.id, &e, &data);
    else if (m.kind == RPC_REQUEST && !may_stream && strcmp(m.method, "subscriptions/listen") == 0)
        refuse(c, 406, "Accept: must list text/event-stream for subscriptions/listen");
    else if (m.kind == RPC_REQUEST)
        http_call_start(c, NULL, message, may_stream, false);
    else
        accept_only(c); /* there is nothing it could be about */
}

static void post(struct http_conn *c, const struct http1_head *h, const char *body, size_t n)
{
    struct err e;
    autojson *message = NULL;
    struct accepts accepts = read_accept(h);
    if (!is_json(h)) {
        refuse(c, 415, "Content-Type: must be application/json");
        return;
    }
    if (!accepts.json && !accepts.stream) {
        refuse(c, 406, "Accept: must list application/json or text/event-stream");
        return;
    }
    if (json_parse(body, n, &message, &e) < 0)
        fail(c, 400, &no_id, &e, NULL);
    else if (http_modern_is(h, message))
        post_modern(c, h, message, accepts.stream);
    else
        post_legacy(c, h, message, accepts.stream);
}

static void get(struct http_conn *c, const struct http1_head *h)
{
    const struct http1_header *last = http1_find(h, "last-event-id", NULL);
    if (!read_accept(h).stream) {
        refuse(c, 406, "Accept: must list text/event-stream");
        return;
    }
    struct http_session *s = version_is_served(c, h) ? session_of(c, h, &no_id) : NULL;
    if (s != NULL && !http_session_listen(s, c, last != NULL ? http1_at(h, last->value) : NULL,
                                          last != NULL ? last->value.len : 0))
        refuse(c, 400, "Last-Event-ID: there is no such stream in this session");
}

static void delete_session(struct http_conn *c, const struct http1_head *h)
{
    autobuf none = BUF_INIT;
    struct http_session *s = session_of(c, h, &no_id);
    if (s == NULL)
        return;
    http_session_free(s);
    http_conn_answer(c, 200, "", &none);
}

static void tell_metadata(struct http_conn *c)
{
    autobuf body = BUF_INIT;
    oauth_write_metadata(c->http->policy.oauth, &body);
    http_conn_answer(c, 200, "Content-Type: application/json\r\nCache-Control: max-age=300\r\n",
                     &body);
}

void http_route(struct http_conn *c, const struct http1_head *h, const char *body, size_t n)
{
    bool modern = http_modern_is(h, NULL);
    if (http_operator_is(h))
        http_operator_route(c, h, body, n);
    else if (is_metadata(c, h))
        tell_metadata(c);
    else if (http1_is(h, h->method, "POST"))
        post(c, h, body, n);
    else if (!modern && http1_is(h, h->method, "GET"))
        get(c, h);
    else if (!modern && http1_is(h, h->method, "DELETE"))
        delete_session(c, h);
    else
        http_conn_say(c, 405, modern ? "Allow: POST\r\n" : ALLOW, "text/plain",
                      "POST sends a message; GET and DELETE are for sessions");
}
