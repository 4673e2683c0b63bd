/* tests/conformance/fixtures: the tools that may be, or must be, tasks. See fixtures.h.
 *
 * Inside a task a tool's session is patient, and questions are asked in the older way whatever the
 * client speaks (mcp/task); outside of one a modern client is answered with input_required.
 */
#include "fixtures.h"

#include "mcp/ask.h"
#include "mcp/inputs.h"
#include "mcp/session.h"
#include "mcp/task_methods.h"
#include "wire/json.h"

#include <string.h>

/* How long a job works that fails. */
#define JOB_MS 300

/* ---- work that takes time ---- */

struct job {
    uv_timer_t *timer; /* NULL: over */
    request_fn done;
};

static void free_timer(uv_handle_t *handle)
{
    free(handle);
}

static void stop_job(struct request *rq)
{
    struct job *job = rq->state;
    uv_timer_t *timer = steal(job->timer);
    if (timer != NULL)
        uv_close((uv_handle_t *)timer, free_timer);
}

static void on_job(uv_timer_t *timer)
{
    struct request *rq = timer->data;
    struct job *job = rq->state;
    stop_job(rq);
    job->done(rq);
}

static void work_for(struct request *rq, uint64_t ms, request_fn done)
{
    struct job *job = rq->state;
    job->done = done;
    job->timer = mem_new(uv_timer_t);
    job->timer->data = rq;
    ensure(uv_timer_init(rq->server->loop, job->timer) == 0);
    ensure(uv_timer_start(job->timer, on_job, ms, 0) == 0);
}

static void fail_tool(struct request *rq)
{
    static const char content[] = "[{\"type\":\"text\",\"text\":\"the job failed\"}]";
    struct jsonw *w = request_answer(rq);
    jsonw_key(w, "content");
    jsonw_raw(w, content, sizeof(content) - 1);
    jsonw_kbool(w, "isError", true);
    request_finish(rq);
}

static void fail_protocol(struct request *rq)
{
    struct err e;
    err_set(&e, ERR_INTERNAL, "the job broke");
    request_error(rq, &e, NULL);
}

static void computed(struct request *rq)
{
    fixture_finish_text(rq, "computed");
}

static void slow_compute(struct request *rq)
{
    int64_t seconds = json_object_get_int64(json_get(rq->args, "seconds"));
    if (seconds <= 0)
        computed(rq);
    else
        work_for(rq, (uint64_t)seconds * 1000, computed);
}

static void failing_job(struct request *rq)
{
    work_for(rq, JOB_MS, fail_tool);
}

static void protocol_error_job(struct request *rq)
{
    work_for(rq, JOB_MS, fail_protocol);
}

static void greet(struct request *rq)
{
    const char *name = json_str(json_get(rq->args, "name"));
    autofree char *text = mem_printf("Hello, %s!", name != NULL ? name : "World");
    fixture_finish_text(rq, text);
}

/* ---- questions ---- */

#define CONFIRM                                                                                    \
    "{\"message\":\"Really?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"           \
    "\"confirm\":{\"type\":\"boolean\"}},\"required\":[\"confirm\"]}}"
#define NAME                                                                                       \
    "{\"message\":\"What is your name?\",\"requestedSchema\":{\"type\":\"object\","                \
    "\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}}"
#define FORM(key, params) "\"" key "\":{\"method\":\"elicitation/create\",\"params\":" params "}"

static void ask(struct request *rq, const char *params, ask_fn done)
{
    if (!ask_client(rq, "elicitation/create", params, done))
        fail_tool(rq);
}

static void confirmed(struct request *rq, struct json_object *result)
{
    bool yes = json_object_get_boolean(json_get(json_get(result, "content"), "confirm"));
    fixture_finish_text(rq, yes ? "deleted" : "kept");
}

static void confirm_delete(struct request *rq)
{
    if (!rq->modern)
        ask(rq, CONFIRM, confirmed);
    else if (inputs_get(rq, "confirm") == NULL)
        inputs_require(rq, "{" FORM("confirm", CONFIRM) "}", NULL);
    else
        confirmed(rq, inputs_get(rq, "confirm"));
}

struct many {
    unsigned open;
};

static void one_of_many(struct request *rq, struct json_object *result)
{
    struct many *x = rq->state;
    if (--x->open == 0)
        fixture_finish_text(rq, "thank you for both");
}

static void multi_input(struct request *rq)
{
    struct many *x = rq->state;
    if (!rq->modern) {
        x->open = 2;
        bool asked = ask_client(rq, "elicitation/create", CONFIRM, one_of_many) &&
                     ask_client(rq, "elicitation/create", NAME, one_of_many);
        if (!asked)
            fail_tool(rq);
    } else if (inputs_get(rq, "confirm") == NULL || inputs_get(rq, "name") == NULL) {
        inputs_require(rq, "{" FORM("confirm", CONFIRM) "," FORM("name", NAME) "}", NULL);
    } else {
        fixture_finish_text(rq, "thank you for both");
    }
}

static void named(struct request *rq, struct json_object *result)
{
    const char *name = json_str(json_get(json_get(result, "content"), "name"));
    autofree char *text = mem_printf("Hello, %s!", name != NULL ? name : "whoever you are");
    fixture_finish_text(rq, text);
}

/* Asks first, and is a task from there on. */
static void with_task(struct request *rq)
{
    struct json_object *answer = inputs_get(rq, "user_name");
    if (rq->session->patient && answer != NULL)
        named(rq, answer);
    else if (!rq->modern)
        ask(rq, NAME, named);
    else if (answer == NULL)
        inputs_require(rq, "{" FORM("user_name", NAME) "}", NULL);
    else
        tasks_escalate(rq);
}

/* ---- rows ---- */

#define TOOL(var, tool_name, about, flags, input, state, function, stop)                           \
    const struct tool var = {.name = tool_name,                                                    \
                             .title = about,                                                       \
                             .description = about,                                                 \
                             .hints = TOOL_READS | TOOL_CONTENT | TOOL_WAITS | (flags),            \
                             .schema = input,                                                      \
                             .state_size = sizeof(state),                                          \
                             .run = function,                                                      \
                             .cancel = stop}
#define PROPERTY(name, type)                                                                       \
    "{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"" type "\"}}}"

TOOL(fixture_greet, "greet", "Greets", 0, PROPERTY("name", "string"), struct job, greet, NULL);
TOOL(fixture_slow_compute, "slow_compute", "Computes for so many seconds",
     TOOL_TASKS | TOOL_TASKS_AT_ONCE, PROPERTY("seconds", "integer"), struct job, slow_compute,
     stop_job);
TOOL(fixture_failing_job, "failing_job", "Fails after a while",
     TOOL_TASKS | TOOL_TASKS_AT_ONCE | TOOL_TASKS_ONLY, "{\"type\":\"object\"}", struct job,
     failing_job, stop_job);
TOOL(fixture_protocol_error_job, "protocol_error_job", "Breaks after a while",
     TOOL_TASKS | TOOL_TASKS_AT_ONCE | TOOL_TASKS_ONLY, "{\"type\":\"object\"}", struct job,
     protocol_error_job, stop_job);
TOOL(fixture_confirm_delete, "confirm_delete", "Asks once", TOOL_TASKS | TOOL_TASKS_AT_ONCE,
     PROPERTY("filename", "string"), struct job, confirm_delete, NULL);
TOOL(fixture_multi_input, "multi_input", "Asks two things at once", TOOL_TASKS | TOOL_TASKS_AT_ONCE,
     "{\"type\":\"object\"}", struct many, multi_input, NULL);
TOOL(fixture_with_task, "test_tool_with_task", "Asks, then goes on as a task",
     TOOL_TASKS | TOOL_TASKS_ONLY, "{\"type\":\"object\"}", struct job, with_task, NULL);
