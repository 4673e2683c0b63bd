/* mcp/http_operator: see http_operator.h. */
#include "mcp/http_operator.h"

#include "base/log.h"
#include "base/num.h"
#include "core/approvals.h"
#include "core/registry.h"
#include "core/registry_egress.h"
#include "mcp/approval_show.h"
#include "mcp/works_json.h"
#include "wire/json.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define JSON_TYPE "Content-Type: application/json\r\nCache-Control: no-store\r\n"
/* An id is ours and short; one that is longer is none. */
#define ID_BYTES_MAX 128u

struct http_operator_call;

/* On the pool. 0: `out` is the answer. -1: `e` is filled. */
typedef int (*operator_fn)(struct http_operator_call *x);

struct operator_route {
    const char *method;
    const char *path; /* '*' stands for one id */
    const struct json_field *in;
    size_t n_in;
    operator_fn work;
    int status; /* of success */
    bool stops; /* ends processes between `work` and `more` */
    operator_fn more;
    bool here;  /* `work` is done at once, on the loop: it asks no ledger */
    bool lists; /* the live processes of the workspace end the answer */
};

struct operator_query {
    char workspace_id[REGISTRY_ID_MAX + 1]; /* "" = all */
    uint64_t all, limit, before, offset;
};

struct operator_body {
    const char *text, *reason;
    int kind, delivery;
    uint64_t revision;
    struct json_object *intent_ids;
};

struct http_operator_call {
    struct list node;
    struct http_conn *conn; /* NULL: the client has gone */
    struct http_server *http;
    struct ledger *ledger;
    const struct operator_route *route;
    char id[ID_BYTES_MAX + 1];
    struct operator_query query;
    struct json_object *message; /* what `body` borrows from; NULL = none */
    bool has_body;
    struct operator_body body;
    uv_work_t job;
    operator_fn step; /* what the pool does */
    run_ticket ticket;
    char *workspace_id; /* whose processes are ended */
    uint64_t after;
    unsigned killed;
    struct buf out;
    struct jsonw w;
    char *link; /* a header line, or NULL */
    int status;
    struct err e;
};

static void call_free(struct http_operator_call *x)
{
    list_remove(&x->node);
    x->http->n_operator_calls--;
    if (x->conn != NULL)
        x->conn->operator_call = NULL;
    json_object_put(x->message);
    buf_fini(&x->out);
    free(x->workspace_id);
    free(x->link);
    free(x);
}

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

static void say(struct http_conn *c, int status, const char *more, enum err_code code,
                const char *text)
{
    autobuf body = BUF_INIT;
    autofree char *all = mem_printf(JSON_TYPE "%s", more);
    struct jsonw w;
    jsonw_init(&w, &body);
    jsonw_object(&w);
    jsonw_kstr(&w, "code", err_info(code)->name);
    jsonw_kstr(&w, "message", text);
    jsonw_object_end(&w);
    http_conn_answer(c, status, all, &body);
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
    if (p->oauth != NULL && oauth_check(p->oauth, value, n, time(NULL), &why) == OAUTH_FINE)
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
        say(c, 404, "", ERR_UNAUTHORIZED,
            "this server has no operator's token, so nobody can be the operator here; start it "
            "with --operator-token-file FILE, or use `codespace-mcp approvals`");
    else if (status == 403)
        say(c, 403, "", ERR_UNAUTHORIZED,
            "this is the token of clients, which make calls; what they ask for is decided with "
            "the operator's token");
    else if (status == 503)
        say(c, 503, "", ERR_RESOURCE_QUEUE_FULL, "the server is ending");
    else
        say(c, 401, "WWW-Authenticate: Bearer realm=\"operator\"\r\n", ERR_UNAUTHORIZED,
            "the operator's token is needed: Authorization: Bearer TOKEN");
    return -1;
}

/* ---- approvals ---- */

static void set_link(struct http_operator_call *x, const char *path, const char *name,
                     uint64_t value, uint64_t limit)
{
    const struct operator_query *q = &x->query;
    x->link = mem_printf("Link: <%s?%s=%" PRIu64 "&limit=%" PRIu64 "%s%s%s>; rel=\"next\"\r\n",
                         path, name, value, limit, q->all ? "&all=1" : "",
                         q->workspace_id[0] != '\0' ? "&workspace_id=" : "", q->workspace_id);
}

static const char *workspace_of(const struct http_operator_call *x)
{
    return x->query.workspace_id[0] != '\0' ? x->query.workspace_id : NULL;
}

static int list_approvals(struct http_operator_call *x)
{
    struct approval *items = NULL;
    size_t n = 0;
    uint32_t limit = x->query.limit != 0 ? (uint32_t)x->query.limit : APPROVALS_PAGE_DEFAULT;
    const struct approval_filter filter = {workspace_of(x), !x->query.all, (int64_t)x->query.before,
                                           limit};
    if (approvals_list(x->ledger, &filter, &items, &n, &x->e) < 0)
        return -1;
    jsonw_array(&x->w);
    for (size_t i = 0; i < n; i++)
        approval_show_json(&x->w, &items[i], false);
    jsonw_array_end(&x->w);
    if (n == limit)
        set_link(x, "/operator/approvals", "before", (uint64_t)items[n - 1].seq, limit);
    approvals_free(items, n);
    return 0;
}

static int show_approval(struct http_operator_call *x)
{
    autoapproval a = {0};
    if (approvals_get(x->ledger, x->id, &a, &x->e) < 0)
        return -1;
    approval_show_json(&x->w, &a, true);
    return 0;
}

static int tell_decision(struct http_operator_call *x)
{
    autoapproval a = {0};
    if (approvals_get(x->ledger, x->id, &a, &x->e) < 0)
        return -1;
    jsonw_object(&x->w);
    jsonw_kstr(&x->w, "approval_id", a.approval_id);
    jsonw_kstr(&x->w, "state", approval_state_name(a.state));
    jsonw_object_end(&x->w);
    log_info("approval %s: %s with the operator's token", a.approval_id,
             approval_state_name(a.state));
    return 0;
}

static int grant(struct http_operator_call *x)
{
    if (approvals_grant(x->ledger, x->id, APPROVAL_BY_OPERATOR_TOKEN, false, &x->e) < 0)
        return -1;
    return tell_decision(x);
}

static int deny(struct http_operator_call *x)
{
    if (approvals_deny(x->ledger, x->id, APPROVAL_BY_OPERATOR_TOKEN, &x->e) < 0)
        return -1;
    return tell_decision(x);
}

/* ---- rules of the network ---- */

static struct workspace *find_rules(struct http_operator_call *x)
{
    struct workspace *ws = x->http->rules == NULL ? NULL : map_get(&x->http->rules->by_id, x->id);
    if (ws == NULL)
        err_set(&x->e, ERR_WORKSPACE_NOT_FOUND, "no workspace \"%s\" is registered", x->id);
    return ws;
}

/* Leaves the object open. */
static int tell_egress(struct http_operator_call *x, const struct workspace *ws)
{
    jsonw_object(&x->w);
    jsonw_kstr(&x->w, "workspace_id", ws->id);
    jsonw_kstr(&x->w, "network", network_name(ws->network));
    jsonw_key(&x->w, "egress");
    egress_policy_show(&ws->egress, &x->w);
    return 0;
}

static int show_egress(struct http_operator_call *x)
{
    const struct workspace *ws = find_rules(x);
    if (ws == NULL)
        return -1;
    tell_egress(x, ws);
    jsonw_object_end(&x->w);
    return 0;
}

static int replace_egress(struct http_operator_call *x)
{
    struct workspace *ws = find_rules(x);
    if (ws == NULL)
        return -1;
    if (!x->has_body)
        return err_set(&x->e, ERR_INVALID_ARGUMENT,
                       "the body is missing: the whole \"egress\" of the configuration");
    if (registry_egress_replace(ws, x->message, &x->e) < 0) {
        x->e.code = ERR_INVALID_ARGUMENT;
        return -1;
    }
    log_info(
        "workspace '%s': new rules of egress (allow: %zu, deny: %zu) with the operator's token",
        ws->id, ws->egress.allow.len, ws->egress.deny.len);
    x->workspace_id = mem_strdup(ws->id);
    tell_egress(x, ws);
    jsonw_kstr(&x->w, "counts_for", "commands that start from now on");
    return 0;
}

/* ---- works ---- */

static void put_work(struct http_operator_call *x, const struct work *work)
{
    jsonw_object(&x->w);
    work_write_members(&x->w, work);
    jsonw_object_end(&x->w);
}

static void put_intent(struct http_operator_call *x, const struct intent *i)
{
    jsonw_object(&x->w);
    intent_write_members(&x->w, i);
    jsonw_object_end(&x->w);
}

static int list_works(struct http_operator_call *x)
{
    struct work *items = NULL;
    size_t n = 0;
    uint32_t limit = x->query.limit != 0 ? (uint32_t)x->query.limit : WORKS_PAGE_DEFAULT;
    const struct work_filter filter = {workspace_of(x), (int64_t)x->query.before, limit};
    if (works_list(x->ledger, &filter, &items, &n, &x->e) < 0)
        return -1;
    jsonw_array(&x->w);
    for (size_t i = 0; i < n; i++)
        put_work(x, &items[i]);
    jsonw_array_end(&x->w);
    if (n == limit)
        set_link(x, "/inbox/works", "before", (uint64_t)items[n - 1].seq, limit);
    works_free(items, n);
    return 0;
}

static int show_work(struct http_operator_call *x)
{
    autowork work = {0};
    if (works_get(x->ledger, x->id, &work, &x->e) < 0)
        return -1;
    put_work(x, &work);
    return 0;
}

static int list_intents(struct http_operator_call *x)
{
    struct intent *items = NULL;
    size_t n = 0;
    uint32_t limit = x->query.limit != 0 ? (uint32_t)x->query.limit : INTENTS_PAGE_DEFAULT;
    uint32_t offset = (uint32_t)x->query.offset;
    if (intents_list(x->ledger, x->id, offset, limit, &items, &n, &x->e) < 0)
        return -1;
    jsonw_array(&x->w);
    for (size_t i = 0; i < n; i++)
        put_intent(x, &items[i]);
    jsonw_array_end(&x->w);
    autofree char *path = mem_printf("/inbox/works/%s/intents", x->id);
    if (n == limit)
        set_link(x, path, "offset", (uint64_t)offset + n, limit);
    intents_free(items, n);
    return 0;
}

/* ---- instructions ---- */

static int tell_intent(struct http_operator_call *x, int status, struct intent *i)
{
    if (status == 0)
        put_intent(x, i);
    intent_fini(i);
    return status;
}

static int add_intent(struct http_operator_call *x)
{
    struct intent i = {0};
    const struct operator_body *b = &x->body;
    return tell_intent(x,
                       intents_add(x->ledger, x->id, (enum intent_kind)b->kind,
                                   (enum intent_delivery)b->delivery, b->text, &i, &x->e),
                       &i);
}

static int edit_intent(struct http_operator_call *x)
{
    struct intent i = {0};
    const struct operator_body *b = &x->body;
    int delivery = json_get(x->message, "delivery") != NULL ? b->delivery : -1;
    return tell_intent(x, intents_edit(x->ledger, x->id, b->revision, b->text, delivery, &i, &x->e),
                       &i);
}

static int queue_intent(struct http_operator_call *x)
{
    struct intent i = {0};
    return tell_intent(x, intents_queue(x->ledger, x->id, x->body.revision, &i, &x->e), &i);
}

static int cancel_intent(struct http_operator_call *x)
{
    struct intent i = {0};
    return tell_intent(x, intents_cancel(x->ledger, x->id, &i, &x->e), &i);
}

static int reorder(struct http_operator_call *x)
{
    size_t n = json_object_array_length(x->body.intent_ids);
    autofree const char **ids = mem_zalloc(n + 1, sizeof(*ids));
    for (size_t i = 0; i < n; i++)
        ids[i] = json_str(json_object_array_get_idx(x->body.intent_ids, i));
    if (intents_reorder(x->ledger, x->id, ids, n, &x->e) < 0)
        return -1;
    return list_intents(x);
}

/* ---- stop: the processes of the workspace, then the notice ---- */

static int find_workspace(struct http_operator_call *x)
{
    autowork work = {0};
    if (works_get(x->ledger, x->id, &work, &x->e) < 0)
        return -1;
    x->workspace_id = mem_strdup(work.workspace_id);
    return 0;
}

static int leave_notice(struct http_operator_call *x)
{
    autointent i = {0};
    if (intents_stop(x->ledger, x->id, x->body.reason, &i, &x->e) < 0)
        return -1;
    jsonw_object(&x->w);
    jsonw_kbool(&x->w, "ok", true);
    jsonw_kuint(&x->w, "killed", x->killed);
    jsonw_key(&x->w, "intent");
    put_intent(x, &i);
    jsonw_object_end(&x->w);
    return 0;
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
    {"GET", "/operator/approvals", NULL, 0, list_approvals, 200},
    {"GET", "/operator/approvals/*", NULL, 0, show_approval, 200},
    {"POST", "/operator/approvals/*/grant", NULL, 0, grant, 200},
    {"POST", "/operator/approvals/*/deny", NULL, 0, deny, 200},
    {"GET", "/operator/workspaces/*/egress", NULL, 0, show_egress, 200, .here = true},
    {"PUT", "/operator/workspaces/*/egress", NULL, 0, replace_egress, 200, .here = true,
     .lists = true},
    {"GET", "/inbox/works", NULL, 0, list_works, 200},
    {"GET", "/inbox/works/*", NULL, 0, show_work, 200},
    {"GET", "/inbox/works/*/intents", NULL, 0, list_intents, 200},
    {"POST", "/inbox/works/*/intents", IN(add_in), add_intent, 201},
    {"POST", "/inbox/works/*/reorder", IN(reorder_in), reorder, 200},
    {"POST", "/inbox/works/*/stop", IN(stop_in), find_workspace, 200, true, leave_notice},
    {"PATCH", "/inbox/intents/*", IN(edit_in), edit_intent, 200},
    {"POST", "/inbox/intents/*/queue", IN(queue_in), queue_intent, 200},
    {"POST", "/inbox/intents/*/cancel", NULL, 0, cancel_intent, 200},
};

/* Does the path fit? The id goes to `ret`. Ids of ours need no decoding, so nothing is decoded. */
static bool fits(const char *pattern, const char *path, size_t n, char ret[ID_BYTES_MAX + 1])
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
    if (len == 0 || len > ID_BYTES_MAX)
        return false;
    memcpy(ret, path + head, len);
    ret[len] = '\0';
    return n - head - len == strlen(star + 1) &&
           memcmp(star + 1, path + head + len, strlen(star + 1)) == 0;
}

/* ---- the query ---- */

static int take_number(const char *value, size_t n, uint64_t max, uint64_t *ret)
{
    autofree char *text = mem_dup(value, n);
    return strlen(text) == n ? num_parse_u64(text, 0, max, ret) : -1;
}

static int take_pair(struct operator_query *q, const char *name, size_t n, const char *value,
                     size_t len)
{
    const struct {
        const char *name;
        uint64_t max;
        uint64_t *to;
    } numbers[] = {{"all", 1, &q->all},
                   {"limit", UINT32_MAX, &q->limit},
                   {"before", INT64_MAX, &q->before},
                   {"offset", INT32_MAX, &q->offset}};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (strlen(numbers[i].name) == n && memcmp(numbers[i].name, name, n) == 0)
            return take_number(value, len, numbers[i].max, numbers[i].to);
    }
    static const char own[] = "workspace_id";
    if (n != sizeof(own) - 1 || memcmp(own, name, n) != 0 || len > REGISTRY_ID_MAX)
        return -1;
    memcpy(q->workspace_id, value, len);
    q->workspace_id[len] = '\0';
    return registry_id_valid(q->workspace_id) ? 0 : -1;
}

static int take_query(struct operator_query *q, const char *p, size_t n, struct err *e)
{
    const char *end = p + n;
    while (p < end) {
        const char *stop = memchr(p, '&', (size_t)(end - p));
        stop = stop != NULL ? stop : end;
        const char *equal = memchr(p, '=', (size_t)(stop - p));
        if (equal == NULL ||
            take_pair(q, p, (size_t)(equal - p), equal + 1, (size_t)(stop - equal - 1)) < 0)
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "the query is not understood; workspace_id=ID, all=1, limit=N, before=N "
                           "and offset=N are, each where it makes sense");
        p = stop + 1;
    }
    return 0;
}

/* ---- from request to answer ---- */

static void next_step(struct http_operator_call *x, operator_fn step);

/* What the inbox's clients expect of this one, other than elsewhere. */
static int status_of(const struct err *e)
{
    return e->code == ERR_INTENT_NOT_EDITABLE ? 400 : err_info(e->code)->http_status;
}

static void answer(struct http_operator_call *x)
{
    struct http_conn *c = x->conn;
    if (c == NULL) {
        call_free(x);
        return;
    }
    c->operator_call = NULL;
    x->conn = NULL;
    if (x->status < 0) {
        say(c, status_of(&x->e), "", x->e.code, x->e.message);
    } else {
        autofree char *head = mem_printf(JSON_TYPE "%s", x->link != NULL ? x->link : "");
        http_conn_answer(c, x->route->status, head, &x->out);
    }
    call_free(x);
    http_conn_next(c);
}

static void ignore_done(void *user, const struct err *failure)
{
}

static void list_live(struct http_operator_call *x);

static void on_list(void *user, const struct run_listing *list, const struct err *failure)
{
    struct http_operator_call *x = user;
    x->ticket = 0;
    if (failure != NULL) {
        x->status = -1;
        x->e = *failure;
        answer(x);
        return;
    }
    struct runner *runner = x->http->server->runner;
    autostrv ids = {0};
    for (size_t i = 0; i < list->n; i++)
        strv_add(&ids, list->items[i].process_id);
    bool more = list->more;
    x->after = list->n > 0 ? list->items[list->n - 1].serial : x->after;
    for (size_t i = 0; i < ids.len; i++)
        runner_terminate(runner, ids.items[i], ignore_done, NULL);
    x->killed += (unsigned)ids.len;
    if (more)
        list_live(x);
    else
        next_step(x, x->route->more);
}

static void list_live(struct http_operator_call *x)
{
    const struct run_list q = {
        .workspace_id = x->workspace_id, .after = x->after, .live_only = true};
    run_ticket ticket = runner_list(x->http->server->runner, &q, on_list, x);
    if (ticket != 0) /* 0: answered already, and the call may be gone */
        x->ticket = ticket;
}

/* Who keeps the rules that were; null when that is not known. */
static void on_live(void *user, const struct run_listing *list, const struct err *failure)
{
    struct http_operator_call *x = user;
    x->ticket = 0;
    jsonw_key(&x->w, "running_with_others");
    if (failure != NULL)
        jsonw_null(&x->w);
    else
        jsonw_array(&x->w);
    for (size_t i = 0; failure == NULL && i < list->n; i++)
        jsonw_str(&x->w, list->items[i].process_id);
    if (failure == NULL)
        jsonw_array_end(&x->w);
    jsonw_object_end(&x->w);
    answer(x);
}

static void tell_live(struct http_operator_call *x)
{
    const struct run_list q = {.workspace_id = x->workspace_id, .live_only = true};
    run_ticket ticket = runner_list(x->http->server->runner, &q, on_live, x);
    if (ticket != 0) /* as in list_live() */
        x->ticket = ticket;
}

static void step_work(uv_work_t *job)
{
    struct http_operator_call *x = container_of(job, struct http_operator_call, job);
    x->status = x->step(x);
}

static void step_after(uv_work_t *job, int status)
{
    struct http_operator_call *x = container_of(job, struct http_operator_call, job);
    struct http_server *h = x->http;
    bool stops = x->status == 0 && x->route->stops && x->step == x->route->work;
    ensure(status == 0);
    h->handles--;
    if (stops && !h->over)
        list_live(x);
    else
        answer(x);
    http_server_less(h);
}

static void next_step(struct http_operator_call *x, operator_fn step)
{
    x->step = step;
    x->http->handles++;
    ensure(uv_queue_work(x->http->server->loop, &x->job, step_work, step_after) == 0);
}

static int read_body(struct http_operator_call *x, const char *body, size_t n)
{
    x->body.delivery = INTENT_AFTER_CURRENT_WORK;
    if (n > HTTP_OPERATOR_BODY_MAX)
        return err_set(&x->e, ERR_LIMIT_EXCEEDED,
                       "the body has %zu bytes and HTTP_OPERATOR_BODY_MAX is %u", n,
                       HTTP_OPERATOR_BODY_MAX);
    x->has_body = n > 0;
    if (n > 0 && json_parse(body, n, &x->message, &x->e) < 0)
        return -1;
    if (x->message == NULL)
        x->message = json_object_new_object();
    ensure(x->message != NULL);
    if (x->route->in == NULL)
        return 0;
    return json_read(x->message, "", x->route->in, x->route->n_in, &x->body, ERR_INVALID_ARGUMENT,
                     &x->e);
}

static void refuse_route(struct http_conn *c, bool known)
{
    if (known)
        say(c, 405, "Allow: GET, POST, PUT, PATCH\r\n", ERR_METHOD_NOT_FOUND,
            "this path does not take that method");
    else
        say(c, 404, "", ERR_INVALID_ARGUMENT,
            "no such path; /operator/approvals, /operator/workspaces/ID/egress and /inbox/works "
            "are "
            "the beginnings");
}

static const struct operator_route *find_route(const struct http1_head *h, size_t n,
                                               char id[ID_BYTES_MAX + 1], bool *ret_known)
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

static struct http_operator_call *call_new(struct http_conn *c)
{
    struct http_operator_call *x = mem_new(struct http_operator_call);
    x->conn = c;
    x->http = c->http;
    x->ledger = c->http->server->ledger;
    c->operator_call = x;
    list_append(&c->http->operator_calls, &x->node);
    c->http->n_operator_calls++;
    jsonw_init(&x->w, &x->out);
    return x;
}

void http_operator_route(struct http_conn *c, const struct http1_head *h, const char *body,
                         size_t n)
{
    char id[ID_BYTES_MAX + 1] = "";
    bool known = false;
    const char *target = http1_at(h, h->target);
    const char *query = memchr(target, '?', h->target.len);
    size_t path_len = query != NULL ? (size_t)(query - target) : h->target.len;
    const struct operator_route *route = find_route(h, path_len, id, &known);
    if (route == NULL) {
        refuse_route(c, known);
        return;
    }
    if (c->http->n_operator_calls >= HTTP_OPERATOR_CALLS_MAX) {
        say(c, 429, "", ERR_RESOURCE_QUEUE_FULL,
            "HTTP_OPERATOR_CALLS_MAX (64) of these calls are being worked on; try again");
        return;
    }
    struct http_operator_call *x = call_new(c);
    x->route = route;
    memcpy(x->id, id, sizeof(id));
    size_t query_len = query != NULL ? h->target.len - path_len - 1 : 0;
    x->status = take_query(&x->query, query != NULL ? query + 1 : "", query_len, &x->e);
    if (x->status == 0)
        x->status = read_body(x, body, n);
    if (x->status == 0 && route->here)
        x->status = route->work(x);
    if (x->status == 0 && route->lists)
        tell_live(x);
    else if (x->status < 0 || route->here)
        answer(x);
    else
        next_step(x, route->work);
}

void http_operator_lost(struct http_operator_call *x)
{
    x->conn = NULL;
}

void http_operator_drop(struct http_server *h)
{
    list_each (it, &h->operator_calls) {
        struct http_operator_call *x = container_of(it, struct http_operator_call, node);
        if (x->ticket == 0)
            continue; /* the pool has it */
        runner_cancel(h->server->runner, x->ticket);
        call_free(x);
    }
}
