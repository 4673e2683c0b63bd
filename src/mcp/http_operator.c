/* mcp/http_operator: see http_operator.h. */
#include "mcp/http_operator.h"

#include "core/intents.h"
#include "mcp/operator_approvals.h"
#include "mcp/operator_call.h"
#include "mcp/operator_egress.h"
#include "mcp/operator_inbox.h"

#include <string.h>
#include <time.h>

/* ---- who asks ---- */

static bool starts(const struct http1_head *h, const char *path)
{
    size_t n = strlen(path);
    const char *target = http1_at(h, h->target);
    return h->target.len >= n && memcmp(target, path, n) == 0 &&
           (h->target.len == n || target[n] == '/' || target[n] == '?');
}

bool http_operator_is(const struct http1_head *h)
{
    return starts(h, "/operator") || starts(h, "/inbox");
}

/* 0: the operator. Else the HTTP status: 403 for somebody else whom we know. */
static int check_token(const struct http_policy *p, const struct http1_head *h)
{
    struct err why;
    bool more = false;
    const struct http1_header *a = http1_find(h, "authorization", &more);
    if (a == NULL || more)
        return 401;
    const char *value = http1_at(h, a->value);
    size_t n = a->value.len;
    if (http_policy_operator(p, value, n))
        return 0;
    if (p->token != NULL && http_policy_bearer(p, value, n))
        return 403;
    if (p->oauth != NULL && oauth_check(p->oauth, value, n, time(NULL), NULL, &why) == OAUTH_FINE)
        return 403;
    return 401;
}

int http_operator_head(struct http_conn *c, const struct http1_head *h)
{
    const struct http_policy *p = &c->http->policy;
    int status = p->operator_token == NULL ? 404 : check_token(p, h);
    if (status == 0 && c->http->draining)
        status = 503;
    if (status == 0)
        return 0;
    c->keep_alive = false;
    if (status == 404)
        operator_say(
            c, 404, "", ERR_UNAUTHORIZED,
            "this server has no operator's token, so nobody can be the operator here; start it "
            "with --operator-token-file FILE, or use `codespace-mcp approvals`");
    else if (status == 403)
        operator_say(
            c, 403, "", ERR_UNAUTHORIZED,
            "this is the token of clients, which make calls; what they ask for is decided with "
            "the operator's token");
    else if (status == 503)
        operator_say(c, 503, "", ERR_RESOURCE_QUEUE_FULL, "the server is ending");
    else
        operator_say(c, 401, "WWW-Authenticate: Bearer realm=\"operator\"\r\n", ERR_UNAUTHORIZED,
                     "the operator's token is needed: Authorization: Bearer TOKEN");
    return -1;
}

/* ---- the table ---- */

static const char *const kinds[] = {[INTENT_FOLLOW_UP] = "follow_up", [INTENT_NOTE] = "note", NULL};
static const char *const deliveries[] = {[INTENT_NEXT_CHECKPOINT] = "next_checkpoint",
                                         [INTENT_AFTER_CURRENT_WORK] = "after_current_work",
                                         [INTENT_NEXT_WORK] = "next_work",
                                         NULL};

#define AT(member) offsetof(struct operator_body, member)
#define BODY_ROW                                                                                   \
    {                                                                                              \
        "body", JSON_STR, JSON_REQUIRED, AT(text), 1, INTENTS_BODY_MAX                             \
    }
#define DELIVERY_ROW                                                                               \
    {                                                                                              \
        "delivery", JSON_ENUM, 0, AT(delivery), .names = deliveries                                \
    }
#define REVISION_ROW                                                                               \
    {                                                                                              \
        "revision", JSON_U64, JSON_REQUIRED, AT(revision)                                          \
    }
static const struct json_field add_in[] = {
    BODY_ROW, DELIVERY_ROW, {"kind", JSON_ENUM, 0, AT(kind), .names = kinds}};
static const struct json_field edit_in[] = {BODY_ROW, DELIVERY_ROW, REVISION_ROW};
static const struct json_field queue_in[] = {REVISION_ROW};
static const struct json_field reorder_in[] = {
    {"intent_ids", JSON_STRV, JSON_REQUIRED, AT(intent_ids), 0, INTENTS_OPEN_MAX}};
static const struct json_field stop_in[] = {
    {"reason", JSON_STR, 0, AT(reason), 1, INTENTS_BODY_MAX}};
#undef AT

#define IN(table) table, ARRAY_LEN(table)
static const struct operator_route routes[] = {
    {"GET", "/operator/approvals", NULL, 0, operator_approvals_list, 200},
    {"GET", "/operator/approvals/*", NULL, 0, operator_approvals_show, 200},
    {"POST", "/operator/approvals/*/grant", NULL, 0, operator_approvals_grant, 200},
    {"POST", "/operator/approvals/*/deny", NULL, 0, operator_approvals_deny, 200},
    {"GET", "/operator/workspaces/*/egress", NULL, 0, operator_egress_show, 200, .here = true},
    {"PUT", "/operator/workspaces/*/egress", NULL, 0, operator_egress_replace, 200, .here = true,
     .then = operator_egress_bring},
    {"GET", "/inbox/works", NULL, 0, operator_inbox_works, 200},
    {"GET", "/inbox/works/*", NULL, 0, operator_inbox_work, 200},
    {"GET", "/inbox/works/*/intents", NULL, 0, operator_inbox_intents, 200},
    {"POST", "/inbox/works/*/intents", IN(add_in), operator_inbox_add, 201},
    {"POST", "/inbox/works/*/reorder", IN(reorder_in), operator_inbox_reorder, 200},
    {"POST", "/inbox/works/*/stop", IN(stop_in), operator_inbox_stop, 200,
     .then = operator_inbox_stop_processes},
    {"PATCH", "/inbox/intents/*", IN(edit_in), operator_inbox_edit, 200},
    {"POST", "/inbox/intents/*/queue", IN(queue_in), operator_inbox_queue, 200},
    {"POST", "/inbox/intents/*/cancel", NULL, 0, operator_inbox_cancel, 200},
};

/* Does the path fit? The id goes to `ret`. Ids of ours need no decoding, so nothing is decoded. */
static bool fits(const char *pattern, const char *path, size_t n, char ret[OPERATOR_ID_MAX + 1])
{
    static const char id_chars[] = "abcdefghijklmnopqrstuvwxyz0123456789-"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ_.";
    const char *star = strchr(pattern, '*');
    size_t head = star != NULL ? (size_t)(star - pattern) : strlen(pattern);
    if (n < head || memcmp(pattern, path, head) != 0)
        return false;
    if (star == NULL)
        return n == head;
    size_t len = 0;
    while (head + len < n && strchr(id_chars, path[head + len]) != NULL && path[head + len] != '\0')
        len++;
    if (len == 0 || len > OPERATOR_ID_MAX)
        return false;
    memcpy(ret, path + head, len);
    ret[len] = '\0';
    return n - head - len == strlen(star + 1) &&
           memcmp(star + 1, path + head + len, strlen(star + 1)) == 0;
}

static void refuse_route(struct http_conn *c, bool known)
{
    if (known)
        operator_say(c, 405, "Allow: GET, POST, PUT, PATCH\r\n", ERR_METHOD_NOT_FOUND,
                     "this path does not take that method");
    else
        operator_say(
            c, 404, "", ERR_INVALID_ARGUMENT,
            "no such path; they begin with /operator/approvals, /operator/workspaces/ID/egress, "
            "/inbox/works and /inbox/intents");
}

static const struct operator_route *find_route(const struct http1_head *h, size_t n,
                                               char id[OPERATOR_ID_MAX + 1], bool *ret_known)
{
    const char *path = http1_at(h, h->target);
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        if (!fits(routes[i].path, path, n, id))
            continue;
        *ret_known = true;
        if (http1_is(h, h->method, routes[i].method))
            return &routes[i];
    }
    return NULL;
}

void http_operator_route(struct http_conn *c, const struct http1_head *h, const char *body,
                         size_t n)
{
    char id[OPERATOR_ID_MAX + 1] = "";
    bool known = false;
    const char *target = http1_at(h, h->target);
    const char *query = memchr(target, '?', h->target.len);
    size_t path_len = query != NULL ? (size_t)(query - target) : h->target.len;
    const struct operator_route *route = find_route(h, path_len, id, &known);
    if (route == NULL)
        refuse_route(c, known);
    else
        operator_call_start(c, route, id, query != NULL ? query + 1 : "",
                            query != NULL ? h->target.len - path_len - 1 : 0, body, n);
}
