/* mcp/task and mcp/task_methods with a provider of the test's own, whose calls end when the test
 * says so. What tasks do to processes is in tests/e2e/test_tasks.py. */
#include "fixture.h"
#include "mcp/ask.h"
#include "mcp/listen.h"
#include "mcp/provider.h"
#include "mcp/task.h"
#include "mcp/task_methods.h"
#include "messages.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>

#define KNOWS "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}"
#define MODERN META(KNOWS ",\"elicitation\":{}")
#define CANCEL(id)                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}"

/* ---- a provider ---- */

/* The calls that are at work, and what became of others. */
static struct request *held[TASKS_MAX + 8];
static size_t n_held;
static unsigned n_cancelled;

static void hold(struct request *rq)
{
    held[n_held++] = rq;
}

static void hold_cancelled(struct request *rq)
{
    for (size_t i = 0; i < n_held; i++) {
        if (held[i] == rq)
            held[i] = NULL;
    }
    n_cancelled++;
}

/* End the held call number i. */
static void end_held(size_t i, const char *text)
{
    struct request *rq = steal(held[i]);
    struct err e;
    err_set(&e, ERR_PATH_ESCAPE, "it broke");
    if (text != NULL)
        fixture_finish_text(rq, text);
    else
        request_error(rq, &e, NULL);
}

static void answered(struct request *rq, struct json_object *result)
{
    const char *action = json_str(json_get(result, "action"));
    fixture_finish_text(rq, action != NULL ? action : "no answer");
}

static void ask(struct request *rq)
{
    if (!ask_client_has(rq, "elicitation") ||
        !ask_client(rq, "elicitation/create", "{\"message\":\"Well?\"}", answered))
        fixture_finish_text(rq, "cannot ask");
}

static void refuse(struct request *rq)
{
    struct err e;
    err_set(&e, ERR_INVALID_PARAMS, "not so");
    request_error(rq, &e, NULL);
}

#define TOOL(var, tool_name, flags, function, stop)                                                \
    static const struct tool var = {.name = tool_name,                                             \
                                    .title = tool_name,                                            \
                                    .description = tool_name,                                      \
                                    .hints = TOOL_CONTENT | (flags),                               \
                                    .schema = "{\"type\":\"object\"}",                             \
                                    .run = function,                                               \
                                    .cancel = stop}
TOOL(t_hold, "hold", TOOL_TASKS | TOOL_TASKS_AT_ONCE, hold, hold_cancelled);
TOOL(t_slow, "slow", TOOL_TASKS, hold, hold_cancelled);
TOOL(t_only, "only", TOOL_TASKS | TOOL_TASKS_AT_ONCE | TOOL_TASKS_ONLY, hold, hold_cancelled);
TOOL(t_ask, "ask", TOOL_TASKS | TOOL_TASKS_AT_ONCE, ask, NULL);
TOOL(t_ask_slow, "ask_slow", TOOL_TASKS, ask, NULL);
TOOL(t_refuse, "refuse", TOOL_TASKS | TOOL_TASKS_AT_ONCE, refuse, NULL);
static const struct tool *const own_tools[] = {&t_hold,     &t_slow,   &t_only, &t_ask,
                                               &t_ask_slow, &t_refuse, NULL};
static const struct provider own = {.provides = PROVIDES_TOOLS | PROVIDES_TASKS,
                                    .tools = own_tools};

static int setup(void **state)
{
    fixture_setup(state);
    struct fixture *f = *state;
    fixture_take_notices(f);
    f->server.provider = &own;
    n_held = 0;
    n_cancelled = 0;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    task_free_all(&f->server);
    return fixture_teardown(state);
}

/* As fixture_say(), but the loop is not run: timers stay. */
static const char *say(struct fixture *f, const char *message)
{
    buf_truncate(&f->sent, 0);
    f->n_sent = 0;
    session_message(&f->session, message, strlen(message));
    return buf_cstr(&f->sent);
}

/* The same with %s in it. */
static const char *say_of(struct fixture *f, const char *format, const char *text)
{
    const char *mark = strstr(format, "%s");
    autofree char *head = mem_dup(format, (size_t)(mark - format));
    autofree char *message = mem_printf("%s%s%s", head, text, mark + 2);
    return say(f, message);
}

static struct task *newest(struct fixture *f)
{
    assert_false(list_empty(&f->server.tasks));
    return container_of(f->server.tasks.prev, struct task, node);
}

static struct task *begin(struct fixture *f, const char *tool)
{
    autofree char *id = mem_printf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                                   "\"params\":{\"name\":\"%s\",\"task\":{\"ttl\":60000}}}",
                                   tool);
    assert_has(say(f, id), "\"task\":{\"taskId\":\"task-", NULL);
    return newest(f);
}

static struct task *begin_modern(struct fixture *f, const char *tool)
{
    assert_has(say_of(f, SAY("1", "tools/call", MODERN ",\"name\":\"%s\""), tool),
               "\"resultType\":\"task\"", NULL);
    return newest(f);
}

/* ---- tests ---- */

static void test_full_table(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < TASKS_MAX; i++)
        begin(f, "hold");
    assert_has(say(f, SAY("2", "tools/call", "\"name\":\"hold\",\"task\":{}")), "TASKS_MAX (256)",
               "\"error\"", NULL);
    assert_has(say(f, SAY("2", "tools/call", MODERN ",\"name\":\"only\"")), "TASKS_MAX", NULL);
    /* One that need not be a task goes on as a call. */
    assert_string_equal(say(f, SAY("2", "tools/call", MODERN ",\"name\":\"hold\"")), "");
    buf_truncate(&f->sent, 0);
    end_held(TASKS_MAX, "plain");
    assert_has(buf_cstr(&f->sent), "\"id\":2,", "\"resultType\":\"complete\"", "plain", NULL);
    /* What has ended makes room, and is forgotten then. */
    autofree char *first = mem_strdup(container_of(f->server.tasks.next, struct task, node)->id);
    end_held(0, "done");
    assert_non_null(task_find(&f->server, first));
    begin(f, "hold");
    assert_null(task_find(&f->server, first));
}

static void test_time_to_live(void **state)
{
    struct fixture *f = *state;
    struct task *t = begin(f, "hold");
    autofree char *id = mem_strdup(t->id);
    assert_int_equal(t->ttl_ms, 60000);
    t->until_ms -= 120000;
    assert_ptr_equal(task_find(&f->server, id), t); /* it works longer than it would be kept */
    end_held(0, "done");
    assert_null(task_find(&f->server, id));
    assert_has(say_of(f, SAY("3", "tasks/get", "\"taskId\":\"%s\""), id), "-32602", NULL);
    assert_has(say(f, SAY("3", "tasks/list", "")), "\"tasks\":[]", NULL);
    begin(f, "hold");
    assert_int_equal(newest(f)->node.prev == &f->server.tasks, true); /* the old one is gone */
    assert_has(say(f, SAY("3", "tools/call", "\"name\":\"hold\",\"task\":{\"ttl\":99999999999}")),
               "\"ttl\":86400000", NULL);
}

static void test_cancel_while_somebody_waits(void **state)
{
    struct fixture *f = *state;
    autofree char *id = mem_strdup(begin(f, "hold")->id);
    assert_string_equal(say_of(f, SAY("8", "tasks/result", "\"taskId\":\"%s\""), id), "");
    assert_string_equal(say_of(f, SAY("9", "tasks/result", "\"taskId\":\"%s\""), id), "");
    const char *out = say_of(f, SAY("10", "tasks/cancel", "\"taskId\":\"%s\""), id);
    assert_has(out, "\"id\":8,\"error\"", "\"id\":9,\"error\"", "\"id\":10,\"result\"",
               "notifications/tasks/status", "\"status\":\"cancelled\"", NULL);
    assert_int_equal(n_cancelled, 1);
    assert_int_equal(f->session.n_calls, 0);
    assert_has(say_of(f, SAY("11", "tasks/cancel", "\"taskId\":\"%s\""), id), "-32602", NULL);
    assert_has(say_of(f, SAY("12", "tasks/cancel", MODERN ",\"taskId\":\"%s\""), id),
               "\"resultType\":\"complete\"", NULL);
}

static void test_a_waiter_that_is_cancelled(void **state)
{
    struct fixture *f = *state;
    struct task *t = begin(f, "hold");
    say_of(f, SAY("8", "tasks/result", "\"taskId\":\"%s\""), t->id);
    say_of(f, SAY("9", "tasks/result", "\"taskId\":\"%s\""), t->id);
    assert_string_equal(say(f, CANCEL("8")), "");
    end_held(0, "done");
    assert_has(buf_cstr(&f->sent), "\"id\":9,\"result\"",
               "related-task\":{\"taskId\":", "\"text\":\"done\"", NULL);
    assert_null(strstr(buf_cstr(&f->sent), "\"id\":8"));
    assert_true(list_empty(&t->waiting));
    assert_int_equal(f->session.n_calls, 0);
}

/* As the gateway ends: sessions first, with their waiters, then tasks, whatever they do. */
static void test_the_server_ends(void **state)
{
    struct fixture *f = *state;
    struct peer *peer = f->session.peer;
    struct task *t = begin(f, "hold");
    say_of(f, SAY("8", "tasks/result", "\"taskId\":\"%s\""), t->id);
    begin(f, "ask");
    say(f, SAY("9", "tools/call", MODERN ",\"name\":\"slow\",\"arguments\":{\"wait_ms\":20000}"));
    assert_int_equal(n_held, 2);
    buf_truncate(&f->sent, 0);
    session_fini(&f->session);
    assert_int_equal(n_cancelled, 1); /* the one that nobody was told of */
    task_free_all(&f->server);
    assert_int_equal(n_cancelled, 2);
    assert_true(list_empty(&f->server.tasks) && list_empty(&f->server.sessions));
    assert_string_equal(fixture_run(f), "");
    session_init(&f->session, &f->server, peer);
}

static void test_cancelled_before_it_was_told(void **state)
{
    struct fixture *f = *state;
    say(f, SAY("9", "tools/call", MODERN ",\"name\":\"slow\",\"arguments\":{\"wait_ms\":20000}"));
    assert_int_equal(n_held, 1);
    assert_string_equal(say(f, CANCEL("9")), "");
    assert_int_equal(n_cancelled, 1);
    assert_true(list_empty(&f->server.tasks));
    assert_string_equal(fixture_run(f), "");
}

/* Nobody else may hold on to what goes away with its call. */
static void test_not_found_before_it_was_told(void **state)
{
    struct fixture *f = *state;
    say(f, SAY("9", "tools/call", MODERN ",\"name\":\"slow\",\"arguments\":{\"wait_ms\":20000}"));
    autofree char *id = mem_strdup(newest(f)->id);
    assert_has(say(f, SAY("8", "tasks/list", "")), "\"tasks\":[]", NULL);
    assert_has(say_of(f, SAY("8", "tasks/result", "\"taskId\":\"%s\""), id), "-32602", NULL);
    end_held(0, "quick");
    assert_has(fixture_run(f), "\"text\":\"quick\"", NULL);
    assert_int_equal(f->session.n_calls, 0);
}

static void test_a_moment_is_waited(void **state)
{
    struct fixture *f = *state;
    static const char call[] =
        SAY("9", "tools/call", MODERN ",\"name\":\"slow\",\"arguments\":{\"wait_ms\":20000}");
    assert_string_equal(say(f, call), "");
    end_held(0, "quick");
    assert_has(fixture_run(f), "\"resultType\":\"complete\"", "\"text\":\"quick\"", NULL);
    assert_true(list_empty(&f->server.tasks));
    say(f, call);
    end_held(1, NULL); /* a failure is told by the task */
    assert_has(fixture_run(f), "\"resultType\":\"task\"", "\"status\":\"failed\"", NULL);
    assert_string_equal(say(f, call), "");
    assert_has(fixture_run(f), "\"resultType\":\"task\"", "\"status\":\"working\"", NULL);
}

static void test_failure_is_kept_whole(void **state)
{
    struct fixture *f = *state;
    struct task *t = begin(f, "hold");
    say_of(f, SAY("8", "tasks/result", "\"taskId\":\"%s\""), t->id);
    end_held(0, NULL);
    assert_has(buf_cstr(&f->sent), "\"id\":8,\"error\":{\"code\":", "it broke", NULL);
    assert_int_equal(f->session.n_calls, 0);
    const char *out = say_of(f, SAY("9", "tasks/get", MODERN ",\"taskId\":\"%s\""), t->id);
    assert_has(out, "\"status\":\"failed\"", "\"error\":{\"code\":", "it broke", NULL);
    assert_null(strstr(out, "\"result\":{\"content"));
    assert_has(say(f, SAY("1", "tools/call", "\"name\":\"refuse\",\"task\":{}")),
               "\"error\":{\"code\":-32602", "not so", NULL);
    assert_ptr_equal(newest(f), t); /* a call that was refused left no task */
}

static void test_too_large_a_result(void **state)
{
    struct fixture *f = *state;
    struct task *t = begin(f, "hold");
    autofree char *text = mem_zalloc(TASK_RESULT_MAX + 1, 1);
    memset(text, 'x', TASK_RESULT_MAX);
    end_held(0, text);
    assert_int_equal(t->status, TASK_FAILED);
    assert_true(t->result.len == 0 && t->answer.len == 0);
    assert_has(say_of(f, SAY("8", "tasks/result", "\"taskId\":\"%s\""), t->id), "TASK_RESULT_MAX",
               NULL);
}

/* Results of ended tasks are bounded as a whole, and who asks for one that went is told. */
static void test_results_make_room(void **state)
{
    struct fixture *f = *state;
    enum { EACH = 12u << 20, FIT = TASK_RESULTS_MAX / EACH };
    autofree char *text = mem_zalloc(EACH + 1, 1);
    memset(text, 'x', EACH);
    autostrv ids = {0};
    for (unsigned i = 0; i <= FIT; i++)
        strv_add(&ids, begin(f, "hold")->id);
    size_t total = 0;
    for (unsigned i = FIT + 1; i-- > 0;) { /* the last that began ends first */
        end_held(i, text);
        task_find(&f->server, ids.items[i])->updated_ms += FIT - i; /* one after the other */
    }
    list_each (it, &f->server.tasks)
        total += container_of(it, struct task, node)->result.cap;
    assert_true(total <= TASK_RESULTS_MAX && total >= EACH);
    assert_has(say_of(f, SAY("8", "tasks/result", "\"taskId\":\"%s\""), ids.items[FIT]), "-32602",
               "TASK_RESULTS_MAX", NULL);
    assert_has(say_of(f, SAY("8", "tasks/get", MODERN ",\"taskId\":\"%s\""), ids.items[FIT]),
               "-32602", "TASK_RESULTS_MAX", NULL);
    assert_null(strstr(say(f, SAY("8", "tasks/list", "")), ids.items[FIT]));
    assert_has(say_of(f, SAY("8", "tasks/result", "\"taskId\":\"%s\""), ids.items[0]), "\"xxx",
               NULL);
}

/* The token of the call is good while its task works, and what is told names the task. */
static void test_progress(void **state)
{
    struct fixture *f = *state;
    say(f, SAY("1", "tools/call", "\"name\":\"hold\",\"task\":{},\"_meta\":{\"progressToken\":7}"));
    struct task *t = newest(f);
    buf_truncate(&f->sent, 0);
    notice_progress(held[0], 5, 0, "still running");
    assert_has(buf_cstr(&f->sent), "notifications/progress", "\"progressToken\":7,",
               "\"progress\":5", "\"_meta\":{\"" TASK_RELATED "\":{\"taskId\":\"task-", NULL);
    notice_log(held[0], NOTICE_ERROR, "a word");
    assert_has(buf_cstr(&f->sent), "notifications/message", NULL);
    end_held(0, "done");
    assert_int_equal(t->status, TASK_COMPLETED);
    /* Without a token there is none, and the newer revision has none of tasks. */
    begin(f, "hold");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"hold\","
           "\"_meta\":{\"progressToken\":8,\"io.modelcontextprotocol/protocolVersion\":"
           "\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{" KNOWS "}}}}");
    assert_true(newest(f)->modern);
    buf_truncate(&f->sent, 0);
    for (size_t i = 1; i < 3; i++) {
        notice_progress(held[i], 5, 0, "still running");
        end_held(i, "done");
    }
    assert_null(strstr(buf_cstr(&f->sent), "notifications/progress"));
}

/* Of a client that is told from others, nobody else learns. */
static void test_whose_task_it_is(void **state)
{
    struct fixture *f = *state;
    f->session.principal.digest[0] = 1;
    struct task *t = begin(f, "hold");
    struct session other;
    session_init(&other, &f->server, &f->peer);
    other.version = "2025-11-25";
    f->session.principal.digest[0] = 2;
    assert_has(say_of(f, SAY("2", "tasks/get", "\"taskId\":\"%s\""), t->id), "no such task", NULL);
    other.principal.digest[0] = 1;
    autojson *list = NULL;
    static const char ask[] = SAY("3", "tasks/list", "");
    assert_int_equal(json_parse(ask, strlen(ask), &list, NULL), 0);
    buf_truncate(&f->sent, 0);
    session_take(&other, &f->peer, list, false);
    assert_has(buf_cstr(&f->sent), t->id, NULL);
    other.principal.digest[0] = 3;
    buf_truncate(&f->sent, 0);
    session_take(&other, &f->peer, list, false);
    assert_null(strstr(buf_cstr(&f->sent), t->id));
    session_fini(&other);
    end_held(0, "done");
}

static void test_who_may_call(void **state)
{
    struct fixture *f = *state;
    assert_has(say(f, SAY("1", "tools/call", META("") ",\"name\":\"only\"")), "-32021",
               "\"requiredCapabilities\":{\"extensions\":{\"" TASK_EXTENSION "\":{}}}", NULL);
    assert_has(say(f, SAY("1", "tools/call", "\"name\":\"only\"")), "-32601", NULL);
    f->session.version = "2025-06-18";
    assert_has(say(f, SAY("1", "tools/call", "\"name\":\"only\",\"task\":{}")), "-32601", NULL);
    f->session.version = "2025-11-25";
    assert_int_equal(n_held, 0);
    assert_has(say(f, SAY("1", "tools/call", "\"name\":\"only\",\"task\":{}")),
               "\"task\":{\"taskId\"", NULL);
    assert_has(say(f, SAY("1", "tools/list", "")), "\"name\":\"only\"",
               "\"taskSupport\":\"required\"", "\"taskSupport\":\"optional\"", NULL);
    end_held(0, "done");
}

static void test_a_question_in_a_task(void **state)
{
    struct fixture *f = *state;
    struct task *t = begin_modern(f, "ask");
    autofree char *id = mem_strdup(t->id);
    const char *out = say_of(f, SAY("2", "tasks/get", MODERN ",\"taskId\":\"%s\""), id);
    assert_has(out, "\"status\":\"input_required\"",
               "\"inputRequests\":{\"ask-1\":{\"method\":\"elicitation/create\",\"params\":{"
               "\"message\":\"Well?\"}}}",
               NULL);
    static const char *const bad[] = {"5", "null", "{\"ask-1\":5}", "{\"x\":{},\"ask-1\":null}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        autofree char *more = mem_printf("%s\",\"inputResponses\":%s,\"x\":\"", id, bad[i]);
        assert_has(say_of(f, SAY("2", "tasks/update", MODERN ",\"taskId\":\"%s\""), more), "-32602",
                   NULL);
    }
    assert_has(say_of(f,
                      SAY("2", "tasks/update",
                          MODERN ",\"taskId\":\"%s\",\"inputResponses\":{\"ask-2\":{}}"),
                      id),
               "\"resultType\":\"complete\"", NULL);
    assert_int_equal(t->status, TASK_INPUT_REQUIRED);
    assert_has(say_of(f,
                      SAY("2", "tasks/update",
                          MODERN ",\"taskId\":\"%s\",\"inputResponses\":{\"ask-1\":{\"action\":"
                                 "\"decline\"},\"ask-1b\":{}}"),
                      id),
               "\"resultType\":\"complete\"", NULL);
    out = say_of(f, SAY("2", "tasks/get", MODERN ",\"taskId\":\"%s\""), id);
    assert_has(out, "\"status\":\"completed\"", "\"text\":\"decline\"", NULL);
    assert_null(strstr(out, "inputRequests"));
}

/* It is told at once, whatever else would be waited for; and a client that cannot be asked is not.
 */
static void test_a_question_ends_the_moment(void **state)
{
    struct fixture *f = *state;
    assert_has(say(f, SAY("2", "tools/call",
                          MODERN ",\"name\":\"ask_slow\",\"arguments\":{\"wait_ms\":20000}")),
               "\"resultType\":\"task\"", "\"status\":\"input_required\"", NULL);
    assert_has(say(f, SAY("2", "tools/call", META(KNOWS) ",\"name\":\"ask\"")),
               "\"resultType\":\"complete\"", "cannot ask", NULL);
    task_cancel(newest(f));
    assert_true(list_empty(&newest(f)->inputs));
}

/* The older revision: whoever waits for the result is asked, one at a time. */
static void test_a_question_through_the_result(void **state)
{
    struct fixture *f = *state;
    f->session.capabilities = json_tokener_parse("{\"elicitation\":{}}");
    struct task *t = begin(f, "ask");
    assert_int_equal(t->status, TASK_INPUT_REQUIRED);
    assert_has(say_of(f, SAY("2", "tasks/get", "\"taskId\":\"%s\""), t->id),
               "\"status\":\"input_required\"", NULL);
    assert_has(say_of(f, SAY("8", "tasks/result", "\"taskId\":\"%s\""), t->id),
               "\"method\":\"elicitation/create\"", "\"message\":\"Well?\"",
               "\"_meta\":{\"" TASK_RELATED "\":{\"taskId\":\"task-", "\"id\":\"ask-1\"", NULL);
    assert_string_equal(say_of(f, SAY("9", "tasks/result", "\"taskId\":\"%s\""), t->id), "");
    struct json_object *capabilities = steal(f->session.capabilities);
    say(f, CANCEL("8")); /* another client, that cannot be asked */
    assert_string_equal(say_of(f, SAY("8", "tasks/result", "\"taskId\":\"%s\""), t->id), "");
    f->session.capabilities = capabilities;
    say(f, CANCEL("8"));
    say(f, CANCEL("9"));
    assert_has(say_of(f, SAY("10", "tasks/result", "\"taskId\":\"%s\""), t->id), "\"id\":\"ask-2\"",
               NULL);
    /* An answer to what is not asked any more does nothing. */
    assert_string_equal(say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"ask-1\",\"result\":{}}"), "");
    const char *out =
        say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"ask-2\",\"result\":{\"action\":\"accept\"}}");
    assert_has(out, "\"id\":10,\"result\"", "\"text\":\"accept\"", NULL);
    assert_int_equal(t->status, TASK_COMPLETED);
    assert_int_equal(f->session.n_calls + f->session.n_asks, 0);
}

static void test_who_listens_is_told(void **state)
{
    struct fixture *f = *state;
    struct task *t = begin_modern(f, "hold");
    assert_has(say_of(f,
                      SAY("\"l\"", "subscriptions/listen",
                          MODERN ",\"notifications\":{\"taskIds\":[\"%s\",\"task-none\"]}"),
                      t->id),
               "notifications/subscriptions/acknowledged", t->id, NULL);
    assert_null(strstr(buf_cstr(&f->sent), "task-none"));
    buf_truncate(&f->sent, 0);
    end_held(0, "done");
    assert_has(buf_cstr(&f->sent), "\"method\":\"notifications/tasks\"", "\"status\":\"completed\"",
               "\"result\":{\"content\"", "subscriptionId\":\"l\"", NULL);
    assert_null(strstr(buf_cstr(&f->sent), "tasks/status"));
    /* One that came too late is told what it missed. */
    assert_has(say_of(f,
                      SAY("\"m\"", "subscriptions/listen",
                          MODERN ",\"notifications\":{\"taskIds\":[\"%s\"]}"),
                      t->id),
               "\"method\":\"notifications/tasks\"", "subscriptionId\":\"m\"", NULL);
    assert_has(
        say(f, SAY("5", "subscriptions/listen", META("") ",\"notifications\":{\"taskIds\":[]}")),
        "-32021", NULL);
    assert_has(
        say(f, SAY("5", "subscriptions/listen", MODERN ",\"notifications\":{\"taskIds\":[5]}")),
        "-32602", NULL);
    listen_finish_all(&f->server);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_full_table),
        T(test_time_to_live),
        T(test_cancel_while_somebody_waits),
        T(test_a_waiter_that_is_cancelled),
        T(test_the_server_ends),
        T(test_cancelled_before_it_was_told),
        T(test_not_found_before_it_was_told),
        T(test_a_moment_is_waited),
        T(test_failure_is_kept_whole),
        T(test_too_large_a_result),
        T(test_results_make_room),
        T(test_progress),
        T(test_whose_task_it_is),
        T(test_who_may_call),
        T(test_a_question_in_a_task),
        T(test_a_question_ends_the_moment),
        T(test_a_question_through_the_result),
        T(test_who_listens_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
