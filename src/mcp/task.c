/* mcp/task: see task.h. */
#include "mcp/task.h"

#include "base/log.h"
#include "base/str.h"
#include "mcp/listen.h"
#include "mcp/meta.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* The revision that the inner session speaks. */
#define INNER_VERSION "2025-11-25"

const char *task_status_name(enum task_status s)
{
    static const char *const names[] = {[TASK_WORKING] = "working",
                                        [TASK_INPUT_REQUIRED] = "input_required",
                                        [TASK_COMPLETED] = "completed",
                                        [TASK_FAILED] = "failed",
                                        [TASK_CANCELLED] = "cancelled"};
    return names[s];
}

static uint64_t now_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* RFC 3339, UTC. */
static void write_time(struct jsonw *w, const char *key, uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char day[32];
    char text[48];
    gmtime_r(&seconds, &tm);
    strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof(text), "%s.%03uZ", day, (unsigned)(ms % 1000));
    jsonw_kstr(w, key, text);
}

void task_write(struct jsonw *w, const struct task *t, bool modern)
{
    static const char *const messages[] = {
        [TASK_INPUT_REQUIRED] = "Waits for the answer to a question.",
        [TASK_CANCELLED] = "Cancelled; what the command had begun was ended."};
    bool failed = !modern && t->status == TASK_COMPLETED && t->tool_failed;
    jsonw_kstr(w, "taskId", t->id);
    jsonw_kstr(w, "status", task_status_name(failed ? TASK_FAILED : t->status));
    if (messages[t->status] != NULL)
        jsonw_kstr(w, "statusMessage", messages[t->status]);
    write_time(w, "createdAt", t->created_ms);
    write_time(w, "lastUpdatedAt", t->updated_ms);
    jsonw_kuint(w, modern ? "ttlMs" : "ttl", t->ttl_ms);
    jsonw_kuint(w, modern ? "pollIntervalMs" : "pollInterval", TASK_POLL_MS);
}

static void write_inputs(struct jsonw *w, const struct task *t)
{
    jsonw_key(w, "inputRequests");
    jsonw_object(w);
    list_each (it, &t->inputs) {
        const struct task_input *in = container_of(it, struct task_input, node);
        jsonw_key(w, in->key);
        jsonw_object(w);
        jsonw_kstr(w, "method", in->method);
        jsonw_key(w, "params");
        jsonw_raw(w, in->params, strlen(in->params));
        jsonw_object_end(w);
    }
    jsonw_object_end(w);
}

void task_write_detail(struct jsonw *w, const struct task *t)
{
    task_write(w, t, true);
    if (t->status == TASK_INPUT_REQUIRED) {
        write_inputs(w, t);
    } else if (t->status == TASK_COMPLETED) {
        jsonw_key(w, "result");
        jsonw_raw(w, buf_bytes(&t->result), t->result.len);
    } else if (t->status == TASK_FAILED) {
        jsonw_key(w, "error");
        jsonw_raw(w, buf_bytes(&t->failure), t->failure.len);
    }
}

/* ---- changes ---- */

static void change(struct task *t, enum task_status status)
{
    t->status = status;
    t->updated_ms = now_ms(CLOCK_REALTIME);
    if (!t->handling) /* until then nobody knows of it */
        listen_task_changed(t);
}

static void free_input(struct task_input *in)
{
    free(in->key);
    free(in->method);
    free(in->params);
    free(in);
}

static void drop_inputs(struct task *t)
{
    while (!list_empty(&t->inputs)) {
        struct task_input *in = container_of(t->inputs.next, struct task_input, node);
        list_remove(&in->node);
        free_input(in);
    }
}

static void end(struct task *t, enum task_status status)
{
    struct list waiting;
    t->over = true;
    session_fini(&t->session); /* a call that still runs is cancelled by it */
    drop_inputs(t);
    change(t, status);
    list_init(&waiting);
    while (!list_empty(&t->waiting)) { /* a waiter may free the task */
        struct list *first = t->waiting.next;
        list_remove(first);
        list_append(&waiting, first);
    }
    while (!list_empty(&waiting)) {
        struct task_wait *w = container_of(waiting.next, struct task_wait, node);
        list_remove(&w->node);
        w->ended(w, t);
    }
}

static void keep(struct buf *b, struct json_object *value)
{
    if (value != NULL)
        buf_puts(b, json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
                                                              JSON_C_TO_STRING_NOSLASHESCAPE));
}

/* Keep the result or the error as text; whether the tool says that it failed. */
static void take_answer(struct task *t)
{
    autojson *message = NULL;
    if (json_parse(buf_bytes(&t->answer), t->answer.len, &message, NULL) == 0) {
        struct json_object *result = json_get(message, "result");
        t->tool_failed = json_object_get_boolean(json_get(result, "isError"));
        keep(&t->result, result);
        keep(&t->failure, json_get(message, "error"));
    }
    if (t->result.len == 0 && t->failure.len == 0)
        buf_printf(
            &t->failure, "{\"code\":%d,\"message\":\"%s\"}", err_info(ERR_INTERNAL)->rpc_code,
            t->too_large ? "the result is larger than TASK_RESULT_MAX and was not kept; make "
                           "a call that answers with less"
                         : "the call was not answered");
    buf_reset(&t->answer, 0);
}

static size_t kept_bytes(const struct task *t)
{
    return t->result.cap + t->failure.cap;
}

static void evict(struct task *t)
{
    log_info("%s: its result (%zu bytes) is dropped; TASK_RESULTS_MAX (%u bytes) are kept of all",
             t->id, t->result.len + t->failure.len, TASK_RESULTS_MAX);
    buf_fini(&t->result);
    buf_fini(&t->failure);
    t->evicted = true;
}

/* Of those that have ended, the one that did so first makes room. */
static void bound_results(const struct task *newest)
{
    for (;;) {
        size_t total = kept_bytes(newest);
        struct task *oldest = NULL;
        list_each (it, &newest->server->tasks) {
            struct task *t = container_of(it, struct task, node);
            if (!t->over || kept_bytes(t) == 0)
                continue;
            total += kept_bytes(t);
            if (oldest == NULL || t->updated_ms < oldest->updated_ms)
                oldest = t;
        }
        if (total <= TASK_RESULTS_MAX || oldest == NULL)
            return;
        evict(oldest);
    }
}

static void settle(struct task *t)
{
    take_answer(t);
    bound_results(t);
    end(t, t->result.len > 0 ? TASK_COMPLETED : TASK_FAILED);
}

static void on_send(struct peer *p, struct buf *message)
{
    struct task *t = container_of(p, struct task, peer);
    buf_truncate(&t->answer, 0);
    t->too_large = message->len > TASK_RESULT_MAX;
    if (!t->too_large)
        buf_put(&t->answer, buf_bytes(message), message->len);
    buf_truncate(message, 0);
}

static struct session *owner_of(const struct task *t)
{
    list_each (it, &t->server->sessions) {
        struct session *s = container_of(it, struct session, node);
        if (s->serial == t->owner)
            return s;
    }
    return NULL;
}

/* The stream of a tasks/result that the client has open is where it looks. */
static bool tell_waiter(const struct task *t, struct buf *out)
{
    list_each (it, &t->waiting) {
        const struct request *rq = container_of(it, struct task_wait, node)->rq;
        if (rq != NULL && rq->session != NULL && rq->session->serial == t->owner)
            return peer_notify(rq->peer, out);
    }
    return false;
}

/* What the call wants to say (progress, log), marked with the task. */
static bool pass_on(const struct task *t, struct json_object *message)
{
    struct session *owner = owner_of(t);
    struct json_object *params = json_get(message, "params");
    struct json_object *meta = json_object_new_object();
    struct json_object *related = json_object_new_object();
    autobuf out = BUF_INIT;
    ensure(meta != NULL && related != NULL);
    json_object_object_add(related, "taskId", json_object_new_string(t->id));
    json_object_object_add(meta, TASK_RELATED, related);
    json_object_object_add(params, "_meta", meta);
    keep(&out, message);
    return owner != NULL && (tell_waiter(t, &out) || peer_notify(owner->peer, &out));
}

/* A question of the call is kept. */
static bool on_notify(struct peer *p, struct buf *message)
{
    struct task *t = container_of(p, struct task, peer);
    autojson *all = NULL;
    if (t->over || json_parse(buf_bytes(message), message->len, &all, NULL) < 0)
        return false;
    const char *key = json_str(json_get(all, "id"));
    if (key == NULL)
        return !t->modern && pass_on(t, all);
    struct task_input *in = mem_new(struct task_input);
    in->key = mem_strdup(key);
    in->method = mem_strdup(json_str(json_get(all, "method")));
    in->params = mem_strdup(json_object_to_json_string_ext(
        json_get(all, "params"), JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    list_append(&t->inputs, &in->node);
    change(t, TASK_INPUT_REQUIRED);
    list_each (it, &t->waiting) {
        struct task_wait *w = container_of(it, struct task_wait, node);
        if (w->asked != NULL)
            w->asked(w, t);
    }
    return true;
}

static void on_ended(struct peer *p)
{
    struct task *t = container_of(p, struct task, peer);
    if (!t->over && !t->handling)
        settle(t);
}

static const struct peer_ops inner_ops = {.send = on_send, .ended = on_ended, .notify = on_notify};

/* ---- answers to questions ---- */

struct task_input *task_unshown(struct task *t)
{
    list_each (it, &t->inputs) {
        struct task_input *in = container_of(it, struct task_input, node);
        if (!in->shown)
            return in;
    }
    return NULL;
}

static struct task_input *find_input(struct task *t, const char *key)
{
    list_each (it, &t->inputs) {
        struct task_input *in = container_of(it, struct task_input, node);
        if (str_eq(in->key, key))
            return in;
    }
    return NULL;
}

void task_unshow(struct task *t, const char *key)
{
    struct task_input *in = find_input(t, key);
    if (in != NULL)
        in->shown = false;
}

struct task_input *task_take_input(struct task *t, const char *key)
{
    struct task_input *in = find_input(t, key);
    if (in == NULL)
        return NULL;
    list_remove(&in->node);
    if (list_empty(&t->inputs))
        change(t, TASK_WORKING);
    return in;
}

void task_answer(struct task *t, struct task_input *question, struct json_object *result)
{
    autojson *message = json_object_new_object();
    ensure(message != NULL);
    json_object_object_add(message, "jsonrpc", json_object_new_string("2.0"));
    json_object_object_add(message, "id", json_object_new_string(question->key));
    free_input(question);
    if (result != NULL) {
        json_object_object_add(message, "result", json_object_get(result));
    } else {
        struct json_object *error = json_object_new_object();
        json_object_object_add(error, "code",
                               json_object_new_int(err_info(ERR_INTERNAL)->rpc_code));
        json_object_object_add(error, "message", json_object_new_string("no answer"));
        json_object_object_add(message, "error", error);
    }
    session_take(&t->session, &t->peer, message, false);
}

/* ---- the table ---- */

static bool expired(const struct task *t, uint64_t now)
{
    return t->over && t->until_ms <= now;
}

void task_forget_expired(struct server *s)
{
    uint64_t now = now_ms(CLOCK_BOOTTIME);
    list_each (it, &s->tasks) {
        struct task *t = container_of(it, struct task, node);
        if (expired(t, now))
            task_free(t);
    }
}

/* When what is over its time leaves no room, the oldest that has ended goes. */
static bool make_room(struct server *s)
{
    struct task *oldest = NULL;
    unsigned n = 0;
    task_forget_expired(s);
    list_each (it, &s->tasks) {
        struct task *t = container_of(it, struct task, node);
        n++;
        if (oldest == NULL && t->over)
            oldest = t;
    }
    if (n < TASKS_MAX)
        return true;
    task_free(oldest);
    return oldest != NULL;
}

struct task *task_find(struct server *s, const char *id)
{
    uint64_t now = now_ms(CLOCK_BOOTTIME);
    list_each (it, &s->tasks) {
        struct task *t = container_of(it, struct task, node);
        if (str_eq(t->id, id))
            return expired(t, now) ? NULL : t;
    }
    return NULL;
}

struct task *task_find_for(const struct session *who, const char *id)
{
    struct task *t = task_find(who->server, id);
    bool own = t != NULL && t->told && oauth_principal_same(&t->session.principal, &who->principal);
    return own ? t : NULL;
}

void task_free(struct task *t)
{
    if (t == NULL)
        return;
    list_remove(&t->node);
    if (!t->over) {
        t->over = true;
        session_fini(&t->session);
    }
    drop_inputs(t);
    buf_fini(&t->answer);
    buf_fini(&t->result);
    buf_fini(&t->failure);
    free(t->id);
    free(t);
}

void task_free_all(struct server *s)
{
    while (!list_empty(&s->tasks))
        task_free(container_of(s->tasks.next, struct task, node));
}

bool task_await(struct task *t, struct task_wait *w)
{
    if (t->over)
        return false;
    list_append(&t->waiting, &w->node);
    return true;
}

void task_cancel(struct task *t)
{
    end(t, TASK_CANCELLED);
}

/* ---- the start ---- */

/* Its `_meta` says nothing but the token, of a revision that has progress of tasks. */
static void add_token(struct json_object *inner, struct json_object *params)
{
    struct json_object *token = meta_get(params, "progressToken");
    if (token == NULL)
        return;
    struct json_object *meta = json_object_new_object();
    ensure(meta != NULL);
    json_object_object_add(meta, "progressToken", json_object_get(token));
    json_object_object_add(inner, "_meta", meta);
}

static struct json_object *make_call(struct json_object *params, bool modern)
{
    struct json_object *message = json_object_new_object();
    struct json_object *inner = json_object_new_object();
    ensure(message != NULL && inner != NULL);
    static const char *const members[] = {"name", "arguments", "inputResponses"};
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        struct json_object *value = json_get(params, members[i]);
        if (value != NULL)
            json_object_object_add(inner, members[i], json_object_get(value));
    }
    if (!modern)
        add_token(inner, params);
    json_object_object_add(message, "jsonrpc", json_object_new_string("2.0"));
    json_object_object_add(message, "id", json_object_new_int(1));
    json_object_object_add(message, "method", json_object_new_string("tools/call"));
    json_object_object_add(message, "params", inner);
    return message;
}

static struct task *task_new(const struct inbound *in, uint64_t ttl_ms)
{
    struct task *t = mem_new(struct task);
    t->peer.ops = &inner_ops;
    t->server = in->session->server;
    t->owner = in->session->serial;
    t->modern = in->modern;
    t->id = str_new_id("task-");
    t->created_ms = t->updated_ms = now_ms(CLOCK_REALTIME);
    t->ttl_ms =
        ttl_ms == 0 ? TASK_TTL_DEFAULT_MS : (ttl_ms < TASK_TTL_MAX_MS ? ttl_ms : TASK_TTL_MAX_MS);
    t->until_ms = now_ms(CLOCK_BOOTTIME) + t->ttl_ms;
    list_init(&t->inputs);
    list_init(&t->waiting);
    list_append(&t->server->tasks, &t->node);
    session_init(&t->session, t->server, &t->peer);
    t->session.version = INNER_VERSION;
    t->session.patient = true;
    t->session.principal = in->session->principal;
    t->session.remote = in->session->remote;
    t->session.log_level = in->session->log_level;
    t->session.capabilities = json_object_get(in->modern ? meta_get(in->m.params, META_CAPABILITIES)
                                                         : in->session->capabilities);
    return t;
}

/* An answer without a result at this point is a refusal of the call. */
static int refused(struct task *t, struct err *e)
{
    autojson *error = NULL;
    if (t->status != TASK_FAILED || t->too_large ||
        json_parse(buf_bytes(&t->failure), t->failure.len, &error, NULL) < 0)
        return 0;
    const char *text = json_str(json_get(error, "message"));
    err_set(e, ERR_INVALID_PARAMS, "%s", text != NULL ? text : "the call was refused");
    return -1;
}

struct task *task_start(const struct inbound *in, uint64_t ttl_ms, struct err *e)
{
    if (!make_room(in->session->server)) {
        err_set(e, ERR_RESOURCE_QUEUE_FULL,
                "TASKS_MAX (%u) tasks are at work; wait for some, or cancel some", TASKS_MAX);
        return NULL;
    }
    struct task *t = task_new(in, ttl_ms);
    autojson *message = make_call(in->m.params, in->modern);
    t->handling = true;
    session_take(&t->session, &t->peer, message, false);
    if (t->session.n_calls == 0)
        settle(t);
    t->handling = false;
    if (refused(t, e) == 0)
        return t;
    task_free(t);
    return NULL;
}
