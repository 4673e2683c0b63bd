/* mcp/task_methods: see task_methods.h. The rules are those of the MCP specification, revisions
 * 2025-11-25 (tasks) and 2026-07-28 (the extension of that name). */
#include "mcp/task_methods.h"

#include "base/str.h"
#include "mcp/ask.h"
#include "mcp/meta.h"
#include "mcp/provider.h"
#include "mcp/task.h"
#include "wire/json.h"

#include <json-c/linkhash.h>

#include <string.h>

static bool declared(const struct inbound *in)
{
    struct json_object *all = meta_get(in->m.params, META_CAPABILITIES);
    return json_get(json_get(all, "extensions"), TASK_EXTENSION) != NULL;
}

static bool has_tasks(const struct inbound *in)
{
    if (!(in->session->server->provider->provides & PROVIDES_TASKS))
        return false;
    return in->modern ? declared(in) : str_eq(in->session->version, TASK_LEGACY_VERSION);
}

bool tasks_refuse_undeclared(const struct inbound *in)
{
    struct err e;
    autobuf data = BUF_INIT;
    if (declared(in))
        return false;
    buf_puts(&data, "{\"requiredCapabilities\":{\"extensions\":{\"" TASK_EXTENSION "\":{}}}}");
    err_set(&e, ERR_CAPABILITY_MISSING,
            "%s needs a client that declares the extension " TASK_EXTENSION, in->m.method);
    peer_status(in->peer, 400);
    inbound_error(in, &e, &data);
    return true;
}

/* The task that the message names; NULL when that was answered. */
static struct task *task_of(const struct inbound *in)
{
    struct err e;
    const char *id = json_str(json_get(in->m.params, "taskId"));
    if (in->modern && tasks_refuse_undeclared(in))
        return NULL;
    struct task *t = id != NULL ? task_find_for(in->session, id) : NULL;
    if (t == NULL) {
        err_set(&e, ERR_INVALID_PARAMS,
                id == NULL ? "params.taskId: is required (a string)"
                           : "params.taskId: there is no such task, or its time is over");
        inbound_error(in, &e, NULL);
        return NULL;
    }
    if (!t->evicted)
        return t;
    err_set(
        &e, ERR_INVALID_PARAMS,
        "params.taskId: this task has ended, and what it ended with was dropped for newer ones: "
        "TASK_RESULTS_MAX (%u bytes) are kept of all. Fetch results sooner, or have calls "
        "answer with less (output_bytes, ranges)",
        TASK_RESULTS_MAX);
    inbound_error(in, &e, NULL);
    return NULL;
}

void tasks_get_run(const struct inbound *in)
{
    const struct task *t = task_of(in);
    if (t == NULL)
        return;
    struct request *rq = request_new(in, NULL);
    struct jsonw *w = request_answer(rq);
    if (in->modern)
        task_write_detail(w, t);
    else
        task_write(w, t, false);
    request_finish(rq);
}

/* Where clients are told from each other, all of the client; else those of the session. */
static bool is_listed(const struct task *t, const struct session *s)
{
    return t->told &&
           (t->owner == s->serial || (!t->modern && oauth_principal_known(&s->principal) &&
                                      oauth_principal_same(&t->session.principal, &s->principal)));
}

void tasks_list_run(const struct inbound *in)
{
    struct server *s = in->session->server;
    task_forget_expired(s);
    struct request *rq = request_new(in, NULL);
    struct jsonw *w = request_answer(rq);
    jsonw_key(w, "tasks");
    jsonw_array(w);
    list_each (it, &s->tasks) {
        const struct task *t = container_of(it, struct task, node);
        if (t->evicted || !is_listed(t, in->session))
            continue;
        jsonw_object(w);
        task_write(w, t, false);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    request_finish(rq);
}

void tasks_cancel_run(const struct inbound *in)
{
    struct err e;
    struct task *t = task_of(in);
    if (t == NULL)
        return;
    if (!t->over) {
        task_cancel(t);
    } else if (!in->modern) {
        err_set(&e, ERR_INVALID_PARAMS, "params.taskId: the task is %s already",
                task_status_name(t->status));
        inbound_error(in, &e, NULL);
        return;
    }
    struct request *rq = request_new(in, NULL);
    struct jsonw *w = request_answer(rq);
    if (!in->modern)
        task_write(w, t, false);
    request_finish(rq);
}

/* Objects by key; nothing is taken of a message that holds anything else. */
static int read_responses(const struct inbound *in, struct json_object **ret, struct err *e)
{
    struct json_object *all = json_get(in->m.params, "inputResponses");
    if (!json_object_is_type(all, json_type_object))
        return err_set(e, ERR_INVALID_PARAMS,
                       "params.inputResponses: is required, an object of answers by the keys of "
                       "inputRequests");
    json_object_object_foreach(all, key, value)
    {
        if (!json_object_is_type(value, json_type_object))
            return err_set(e, ERR_INVALID_PARAMS,
                           "params.inputResponses.%.64s: must be an object, the answer to that "
                           "question",
                           key);
    }
    *ret = all;
    return 0;
}

/* Keys that nobody asked for, or not any more, are ignored. Each answer may end the task. */
void tasks_update_run(const struct inbound *in)
{
    struct err e;
    struct json_object *all = NULL;
    struct server *s = in->session->server;
    struct task *t = task_of(in);
    if (t == NULL)
        return;
    if (read_responses(in, &all, &e) < 0) {
        inbound_error(in, &e, NULL);
        return;
    }
    autofree char *id = mem_strdup(t->id);
    json_object_object_foreach(all, key, value)
    {
        t = task_find(s, id);
        struct task_input *question = t != NULL ? task_take_input(t, key) : NULL;
        if (question != NULL)
            task_answer(t, question, value);
    }
    struct request *rq = request_new(in, NULL);
    request_answer(rq);
    request_finish(rq);
}

/* ---- tasks/result ---- */

struct result_call {
    struct task_wait wait;
    struct request *rq;
    struct task *task; /* NULL: not waiting */
    char *shown;       /* the key of the question that this client was asked */
};

/* The error that the call was answered with, whole. */
static void answer_failure(struct request *rq, const struct task *t)
{
    autobuf out = BUF_INIT;
    buf_printf(&out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":", rq->id.text);
    buf_put(&out, buf_bytes(&t->failure), t->failure.len);
    buf_putc(&out, '}');
    rq->peer->ops->send(rq->peer, &out);
    request_cancel(rq);
}

/* The result as it was, and which task it is of. */
static void answer_result(struct request *rq, const struct task *t)
{
    struct err e;
    autobuf out = BUF_INIT;
    if (t->status == TASK_FAILED) {
        answer_failure(rq, t);
        return;
    }
    if (t->status == TASK_CANCELLED) {
        err_set(&e, ERR_CANCELLED, "the task is cancelled and has no result");
        request_error(rq, &e, NULL);
        return;
    }
    buf_put(&out, buf_bytes(&t->result), t->result.len - 1);
    buf_printf(&out, ",\"_meta\":{\"" TASK_RELATED "\":{\"taskId\":\"%s\"}}}", t->id);
    request_finish_text(rq, &out);
}

static void on_result(struct task_wait *w, struct task *t)
{
    struct result_call *x = container_of(w, struct result_call, wait);
    x->task = NULL;
    answer_result(x->rq, t);
}

static void show_question(struct result_call *x);

/* The client answered, or could not. The task may end by it, and this call with the task. */
static void on_reply(struct request *rq, struct json_object *result)
{
    struct result_call *x = rq->state;
    struct task *t = x->task;
    autofree char *key = steal(x->shown);
    struct task_input *question = task_take_input(t, key);
    show_question(x);
    if (question != NULL)
        task_answer(t, question, result);
}

static void write_question(struct buf *out, const struct task *t, const struct task_input *question)
{
    buf_puts(out, question->params);
    bool more = out->len > 2;
    buf_truncate(out, out->len - 1);
    buf_printf(out, "%s\"_meta\":{\"" TASK_RELATED "\":{\"taskId\":\"%s\"}}}", more ? "," : "",
               t->id);
}

/* Whoever waits need not be who made the task: what did its client declare? The name of the
 * capability is the first part of the method. */
static bool may_be_asked(const struct request *rq, const struct task_input *question)
{
    const char *slash = strchr(question->method, '/');
    autofree char *capability =
        mem_dup(question->method, slash != NULL ? (size_t)(slash - question->method) : 0);
    return ask_client_has(rq, capability);
}

/* One after the other, to a client that can be asked. */
static void show_question(struct result_call *x)
{
    autobuf params = BUF_INIT;
    struct task_input *question = x->shown == NULL ? task_unshown(x->task) : NULL;
    if (question == NULL || !may_be_asked(x->rq, question))
        return;
    write_question(&params, x->task, question);
    if (!ask_client(x->rq, question->method, buf_cstr(&params), on_reply))
        return;
    question->shown = true;
    x->shown = mem_strdup(question->key);
}

static void on_question(struct task_wait *w, struct task *t)
{
    show_question(container_of(w, struct result_call, wait));
}

/* The next that waits may ask again. */
static void cancel_result(struct request *rq)
{
    struct result_call *x = rq->state;
    if (x->task == NULL)
        return;
    list_remove(&x->wait.node);
    if (x->shown != NULL)
        task_unshow(x->task, x->shown);
    x->task = NULL;
}

static void fini_result(struct request *rq)
{
    struct result_call *x = rq->state;
    free(x->shown);
}

/* Not in any list: what a call needs that waits. */
static const struct tool result_waiter = {.name = "tasks/result",
                                          .hints = TOOL_READS | TOOL_CONTENT | TOOL_WAITS,
                                          .state_size = sizeof(struct result_call),
                                          .cancel = cancel_result,
                                          .fini = fini_result};

void tasks_result_run(const struct inbound *in)
{
    struct task *t = task_of(in);
    if (t == NULL)
        return;
    struct request *rq = request_new(in, &result_waiter);
    struct result_call *x = rq->state;
    x->rq = rq;
    x->wait = (struct task_wait){.ended = on_result, .asked = on_question, .rq = rq};
    if (!task_await(t, &x->wait)) {
        answer_result(rq, t);
        return;
    }
    x->task = t;
    show_question(x);
}

/* ---- tools/call ---- */

static void answer_task(struct request *rq, struct task *t)
{
    t->told = true;
    struct jsonw *w = request_answer(rq);
    if (rq->modern) {
        task_write(w, t, true);
        request_finish_as(rq, "task");
        return;
    }
    jsonw_key(w, "task");
    jsonw_object(w);
    task_write(w, t, false);
    jsonw_object_end(w);
    request_finish(rq);
}

/* A modern call that is given a moment to end. */
struct grace_call {
    struct task_wait wait;
    struct request *rq;
    struct task *task;
    uv_timer_t *timer; /* NULL: over */
};

static void free_timer(uv_handle_t *handle)
{
    free(handle);
}

static void stop_grace(struct grace_call *x)
{
    uv_timer_t *timer = steal(x->timer);
    if (timer == NULL)
        return;
    list_remove(&x->wait.node);
    uv_close((uv_handle_t *)timer, free_timer);
}

static void answer_now(struct request *rq, struct task *t)
{
    autobuf result = BUF_INIT;
    buf_put(&result, buf_bytes(&t->result), t->result.len);
    task_free(t); /* nobody was told of it */
    request_finish_text(rq, &result);
}

static void on_soon(struct task_wait *w, struct task *t)
{
    struct grace_call *x = container_of(w, struct grace_call, wait);
    list_init(&x->wait.node);
    stop_grace(x);
    if (t->status == TASK_COMPLETED)
        answer_now(x->rq, t);
    else
        answer_task(x->rq, t);
}

/* A client that is asked must know of the task now. */
static void on_grace_asked(struct task_wait *w, struct task *t)
{
    struct grace_call *x = container_of(w, struct grace_call, wait);
    stop_grace(x);
    answer_task(x->rq, t);
}

static void on_grace(uv_timer_t *timer)
{
    struct grace_call *x = timer->data;
    stop_grace(x);
    answer_task(x->rq, x->task);
}

/* The client gave the call up before it was told of a task. */
static void cancel_grace(struct request *rq)
{
    struct grace_call *x = rq->state;
    stop_grace(x);
    task_free(steal(x->task));
}

static const struct tool grace_waiter = {.name = "tools/call",
                                         .hints = TOOL_CONTENT | TOOL_WAITS,
                                         .state_size = sizeof(struct grace_call),
                                         .cancel = cancel_grace};

static void answer_at_once(struct request *rq, struct task *t)
{
    if (t->status == TASK_COMPLETED)
        answer_now(rq, t);
    else
        answer_task(rq, t);
}

static void wait_a_moment(const struct inbound *in, struct task *t)
{
    if (t->status != TASK_WORKING) {
        answer_at_once(request_new(in, NULL), t);
        return;
    }
    struct request *rq = request_new(in, &grace_waiter);
    struct grace_call *x = rq->state;
    *x = (struct grace_call){
        .wait = {.ended = on_soon, .asked = on_grace_asked}, .rq = rq, .task = t};
    ensure(task_await(t, &x->wait));
    x->timer = mem_new(uv_timer_t);
    x->timer->data = x;
    ensure(uv_timer_init(rq->server->loop, x->timer) == 0);
    ensure(uv_timer_start(x->timer, on_grace, TASK_GRACE_MS, 0) == 0);
}

/* Does the call ask to wait for something that may take long? */
static bool may_take_long(const struct inbound *in)
{
    struct json_object *wait = json_get(json_get(in->m.params, "arguments"), "wait_ms");
    return json_object_is_type(wait, json_type_int) &&
           json_object_get_int64(wait) > (int64_t)TASK_GRACE_MS;
}

static int read_ttl(struct json_object *task, uint64_t *ret, struct err *e)
{
    struct json_object *ttl = json_get(task, "ttl");
    *ret = 0;
    if (ttl == NULL || json_object_is_type(ttl, json_type_null))
        return 0;
    if (!json_object_is_type(ttl, json_type_int) || json_object_get_int64(ttl) <= 0)
        return err_set(e, ERR_INVALID_PARAMS,
                       "params.task.ttl: must be a whole number of milliseconds above 0; more than "
                       "TASK_TTL_MAX_MS (%u) is taken for that",
                       TASK_TTL_MAX_MS);
    *ret = (uint64_t)json_object_get_int64(ttl);
    return 0;
}

static void take_legacy(const struct inbound *in, const struct tool *tool, struct json_object *task)
{
    struct err e;
    uint64_t ttl = 0;
    struct task *t = NULL;
    if (!(tool->hints & TOOL_TASKS))
        err_set(&e, ERR_METHOD_NOT_FOUND,
                "%s cannot be a task; call it without `task` (tools/list says which can)",
                tool->name);
    else if (read_ttl(task, &ttl, &e) == 0)
        t = task_start(in, ttl, &e);
    if (t == NULL)
        inbound_error(in, &e, NULL);
    else
        answer_task(request_new(in, NULL), t);
}

/* For those that can run in no other way. */
static void refuse_plain(const struct inbound *in, const struct tool *tool)
{
    struct err e;
    if (in->modern && tasks_refuse_undeclared(in))
        return;
    err_set(&e, ERR_METHOD_NOT_FOUND,
            "%s runs as a task only; call it with `task` (revision " TASK_LEGACY_VERSION ")",
            tool->name);
    inbound_error(in, &e, NULL);
}

static bool take_modern(const struct inbound *in, const struct tool *tool)
{
    struct err e;
    bool at_once = tool->hints & TOOL_TASKS_AT_ONCE;
    if (!(tool->hints & TOOL_TASKS) || (!at_once && !may_take_long(in)))
        return false;
    struct task *t = task_start(in, 0, &e);
    if (t == NULL && e.code == ERR_RESOURCE_QUEUE_FULL && !(tool->hints & TOOL_TASKS_ONLY))
        return false;
    if (t == NULL)
        inbound_error(in, &e, NULL);
    else if (at_once)
        answer_at_once(request_new(in, NULL), t);
    else
        wait_a_moment(in, t);
    return true;
}

bool tasks_take_call(const struct inbound *in, const struct tool *tool)
{
    struct json_object *task = json_get(in->m.params, "task");
    bool asked = !in->modern && json_object_is_type(task, json_type_object);
    if (in->session->patient)
        return false;
    if ((tool->hints & TOOL_TASKS_ONLY) && (!has_tasks(in) || !(in->modern || asked))) {
        refuse_plain(in, tool);
        return true;
    }
    if (!has_tasks(in))
        return false;
    if (asked)
        take_legacy(in, tool, task);
    return in->modern ? take_modern(in, tool) : asked;
}

void tasks_escalate(struct request *rq)
{
    struct err e;
    const struct inbound in = {.session = rq->session,
                               .peer = rq->peer,
                               .message = rq->message,
                               .m = {.params = request_params(rq)},
                               .modern = true};
    struct task *t = task_start(&in, 0, &e);
    if (t == NULL)
        request_error(rq, &e, NULL);
    else
        answer_task(rq, t);
}
