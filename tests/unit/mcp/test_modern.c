/* The modern era on a session, beside the legacy one: mcp/meta, mcp/listen, mcp/inputs, mcp/ask,
 * mcp/prompts, mcp/resources, with a provider of the test's own. */
#include "fixture.h"
#include "mcp/ask.h"
#include "mcp/inputs.h"
#include "mcp/listen.h"
#include "mcp/provider.h"
#include "messages.h"
#include "wire/json.h"

#include <string.h>

/* ---- a provider ---- */

static void run_state(struct request *rq)
{
    struct err e;
    autofree char *s = NULL;
    if (inputs_state(rq, &s, &e) < 0)
        request_error(rq, &e, NULL);
    else if (s == NULL)
        inputs_require(rq, "{\"k\":{\"method\":\"roots/list\",\"params\":{}}}", "the state");
    else
        fixture_finish_text(rq, s);
}

static void run_ask_done(struct request *rq, struct json_object *result)
{
    fixture_finish_text(rq, result != NULL ? json_str(json_get(result, "said")) : "an error");
}

static void run_ask(struct request *rq)
{
    if (!ask_client_has(rq, "sampling"))
        ask_refuse(rq, "sampling");
    else if (!ask_client(rq, "sampling/createMessage", "{}", run_ask_done))
        fixture_finish_text(rq, "cannot ask");
}

static void run_notices(struct request *rq)
{
    notice_log(rq, NOTICE_DEBUG, "low");
    notice_log(rq, NOTICE_ERROR, "high");
    notice_progress(rq, 1, 2, "half");
    fixture_finish_text(rq, "done");
}

#define TOOL(var, tool_name, function)                                                             \
    static const struct tool var = {.name = tool_name,                                             \
                                    .title = tool_name,                                            \
                                    .description = tool_name,                                      \
                                    .hints = TOOL_CONTENT,                                         \
                                    .schema = "{\"type\":\"object\"}",                             \
                                    .run = function}
TOOL(t_state, "state", run_state);
TOOL(t_ask, "ask", run_ask);
TOOL(t_notices, "notices", run_notices);
static const struct tool *const own_tools[] = {&t_state, &t_ask, &t_notices, NULL};

static void get_prompt(struct request *rq)
{
    jsonw_kstr(request_answer(rq), "description", prompts_argument(rq, "who"));
    request_finish(rq);
}

static const struct prompt_argument who[] = {{"who", "Who", true}};
static const struct prompt greeting = {"greet", "Greet", "Greets", who, 1, get_prompt};
static const struct prompt *const own_prompts[] = {&greeting, NULL};

static void read_resource(const char *uri, struct jsonw *w)
{
    jsonw_kstr(w, "text", uri);
}

static const struct resource plain = {"t://a", "a", "A", "A", "text/plain", read_resource};
static const struct resource wild = {"t://x/{id}/y", "x", "X", "X", "text/plain", read_resource};
static const struct resource *const own_resources[] = {&plain, &wild, NULL};

static const struct provider own = {.provides = PROVIDES_TOOLS | PROVIDES_PROMPTS |
                                                PROVIDES_RESOURCES | PROVIDES_COMPLETION |
                                                PROVIDES_LOGGING | PROVIDES_CHANGES,
                                    .tools = own_tools,
                                    .prompts = own_prompts,
                                    .resources = own_resources};

static int setup(void **state)
{
    fixture_setup(state);
    struct fixture *f = *state;
    fixture_take_notices(f);
    f->server.provider = &own;
    return 0;
}

/* ---- tests ---- */

static void test_eras_do_not_pin_each_other(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        assert_has(fixture_say(f, SAY("1", "server/discover", META(""))),
                   "\"supportedVersions\":[\"2026-07-28\"]", "\"resultType\":\"complete\"",
                   "\"ttlMs\":", "\"cacheScope\":", "io.modelcontextprotocol/serverInfo", NULL);
        const char *legacy =
            fixture_say(f, SAY("2", "initialize", "\"protocolVersion\":\"2025-06-18\""));
        assert_has(legacy, "\"protocolVersion\":\"2025-06-18\"", NULL);
        assert_null(strstr(legacy, "resultType"));
        assert_has(fixture_say(f, SAY("3", "tools/list", META(""))), "\"tools\":[",
                   "\"resultType\":\"complete\"", NULL);
        assert_null(strstr(fixture_say(f, SAY("4", "tools/list", "")), "resultType"));
    }
}

static void test_each_era_has_its_methods(void **state)
{
    struct fixture *f = *state;
    static const char *const legacy[] = {
        SAY("1", "ping", META("")), SAY("1", "initialize", META("")),
        SAY("1", "logging/setLevel", META("") ",\"level\":\"info\""),
        SAY("1", "resources/subscribe", META("") ",\"uri\":\"t://a\""), SAY("1", "x", META(""))};
    for (size_t i = 0; i < ARRAY_LEN(legacy); i++)
        assert_has(fixture_say(f, legacy[i]), "-32601", "\"id\":1", NULL);
    assert_has(fixture_say(f, SAY("1", "server/discover", "")), "-32601", NULL);
    assert_has(fixture_say(f, SAY("1", "subscriptions/listen", "\"notifications\":{}")), "-32601",
               NULL);
}

static void test_meta_is_checked(void **state)
{
    struct fixture *f = *state;
    assert_has(fixture_say(f, SAY("1", "tools/list",
                                  "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
                                  "\"2999-01-01\"}")),
               "-32022", "\"supported\":[\"2026-07-28\"]", "\"requested\":\"2999-01-01\"", NULL);
    assert_has(fixture_say(f, SAY("1", "tools/list",
                                  "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
                                  "\"2026-07-28\"}")),
               "-32602", "clientCapabilities", NULL);
}

static void test_state_is_sealed(void **state)
{
    struct fixture *f = *state;
    autojson *obj = NULL;
    struct err e;
    autofree char *first =
        mem_strdup(fixture_say(f, SAY("1", "tools/call", META("") ",\"name\":\"state\"")));
    assert_has(first, "\"resultType\":\"input_required\"", "\"inputRequests\":{\"k\":", NULL);
    assert_int_equal(json_parse(first, strlen(first), &obj, &e), 0);
    const char *sealed = json_str(json_get(json_get(obj, "result"), "requestState"));
    assert_non_null(sealed);
    autofree char *again = mem_printf(
        SAY("2", "tools/call", META("") ",\"name\":\"state\",\"requestState\":\"%s\""), sealed);
    assert_has(fixture_say(f, again), "\"text\":\"the state\"", NULL);
    for (size_t i = 0; i < strlen(sealed); i++) {
        autofree char *wrong = mem_strdup(sealed);
        wrong[i] = wrong[i] == 'a' ? 'b' : 'a';
        autofree char *say = mem_printf(
            SAY("2", "tools/call", META("") ",\"name\":\"state\",\"requestState\":\"%s\""), wrong);
        assert_has(fixture_say(f, say), "-32602", "requestState", NULL);
    }
    assert_has(
        fixture_say(f, SAY("2", "tools/call", META("") ",\"name\":\"state\",\"requestState\":5")),
        "-32602", NULL);
    assert_has(fixture_say(
                   f, SAY("2", "tools/call", META("") ",\"name\":\"state\",\"requestState\":\"\"")),
               "-32602", NULL);
}

static void test_questions(void **state)
{
    struct fixture *f = *state;
    static const char call[] = SAY("1", "tools/call", "\"name\":\"ask\"");
    assert_has(fixture_say(f, call), "sampling", "error", NULL);
    assert_has(fixture_say(f, SAY("1", "tools/call", META("") ",\"name\":\"ask\"")), "-32021",
               "\"requiredCapabilities\":{\"sampling\":{}}", NULL);
    fixture_say(f, SAY("9", "initialize",
                       "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"sampling\":{}}"));
    assert_has(fixture_say(f, call), "\"id\":\"ask-1\"", "sampling/createMessage", NULL);
    assert_string_equal(
        fixture_say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"ask-2\",\"result\":{\"said\":\"x\"}}"), "");
    assert_has(
        fixture_say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"ask-1\",\"result\":{\"said\":\"yes\"}}"),
        "\"id\":1", "\"text\":\"yes\"", NULL);
    /* A question of a call that was cancelled is nobody's. */
    assert_has(fixture_say(f, call), "\"id\":\"ask-2\"", NULL);
    fixture_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                   "\"requestId\":1}}");
    assert_string_equal(
        fixture_say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"ask-2\",\"result\":{\"said\":\"x\"}}"), "");
}

static void test_notices(void **state)
{
    struct fixture *f = *state;
    const char *got = fixture_say(f, SAY("1", "tools/call", "\"name\":\"notices\""));
    assert_has(got, "\"level\":\"error\"", NULL);
    assert_null(strstr(got, "\"low\""));
    assert_null(strstr(got, "progress"));
    assert_has(fixture_say(f, SAY("1", "logging/setLevel", "\"level\":\"debug\"")), "{}", NULL);
    assert_has(fixture_say(f, SAY("1", "logging/setLevel", "\"level\":\"loud\"")), "-32602", NULL);
    assert_has(fixture_say(f, SAY("1", "tools/call",
                                  "\"name\":\"notices\",\"_meta\":{\"progressToken\":\"t\"}")),
               "\"low\"", "\"progressToken\":\"t\"", "\"total\":2", "\"half\"", NULL);
    got = fixture_say(f, SAY("1", "tools/call", META("") ",\"name\":\"notices\""));
    assert_null(strstr(got, "notifications/"));
}

static void test_listen(void **state)
{
    struct fixture *f = *state;
    assert_has(fixture_say(f, SAY("\"l\"", "subscriptions/listen",
                                  META("") ",\"notifications\":{\"toolsListChanged\":true,"
                                           "\"resourceSubscriptions\":[\"t://a\"]}")),
               "notifications/subscriptions/acknowledged", "\"toolsListChanged\":true",
               "\"resourceSubscriptions\":[\"t://a\"]",
               "\"io.modelcontextprotocol/subscriptionId\":\"l\"", NULL);
    buf_truncate(&f->sent, 0);
    f->session.version = NULL; /* no legacy client is told here */
    listen_changed(&f->server, LISTEN_PROMPTS);
    listen_updated(&f->server, "t://b");
    assert_string_equal(buf_cstr(&f->sent), "");
    listen_changed(&f->server, LISTEN_TOOLS);
    assert_has(buf_cstr(&f->sent), "notifications/tools/list_changed", "subscriptionId\":\"l\"",
               NULL);
    listen_updated(&f->server, "t://a");
    assert_has(buf_cstr(&f->sent), "notifications/resources/updated", "\"uri\":\"t://a\"", NULL);
    buf_truncate(&f->sent, 0);
    listen_finish_all(&f->server);
    assert_has(buf_cstr(&f->sent), "\"id\":\"l\",\"result\":{\"resultType\":\"complete\"", NULL);
    assert_int_equal(f->session.n_calls, 0);
}

static void test_listen_ends_with_a_cancel(void **state)
{
    struct fixture *f = *state;
    fixture_say(f, SAY("5", "subscriptions/listen",
                       META("") ",\"notifications\":{\"toolsListChanged\":true}"));
    assert_string_equal(fixture_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                                       "cancelled\",\"params\":{\"requestId\":5}}"),
                        "");
    f->session.version = NULL;
    listen_changed(&f->server, LISTEN_TOOLS);
    assert_string_equal(buf_cstr(&f->sent), "");
    assert_has(fixture_say(f, SAY("5", "subscriptions/listen", META("") ",\"notifications\":5")),
               "-32602", NULL);
    assert_int_equal(f->session.n_calls, 0);
}

static void test_legacy_subscriptions(void **state)
{
    struct fixture *f = *state;
    assert_has(fixture_say(f, SAY("1", "resources/subscribe", "\"uri\":\"t://a\"")), "{}", NULL);
    buf_truncate(&f->sent, 0);
    listen_updated(&f->server, "t://a");
    assert_has(buf_cstr(&f->sent), "notifications/resources/updated", NULL);
    assert_has(fixture_say(f, SAY("1", "resources/unsubscribe", "\"uri\":\"t://a\"")), "{}", NULL);
    buf_truncate(&f->sent, 0);
    listen_updated(&f->server, "t://a");
    assert_string_equal(buf_cstr(&f->sent), "");
    assert_has(fixture_say(f, SAY("1", "resources/subscribe", "\"uri\":\"t://none\"")), "-32002",
               NULL);
}

static void test_resources(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *template, *uri;
        bool fits;
    } rows[] = {
        {"t://a", "t://a", true},
        {"t://a", "t://ab", false},
        {"t://a", "t://", false},
        {"t://{x}", "t://1", true},
        {"t://{x}", "t://", false},
        {"t://{x}", "t://1/2", false},
        {"t://{x}/y", "t://1/y", true},
        {"t://{x}/y", "t://1/z", false},
        {"t://{x}.{y}", "t://1.2", true},
        {"t://{x}.{y}", "t://1", false},
        {"t://{x}/{y}", "t://1/2", true},
        {"t://{x", "t://1", true},
        {"t://{+x}", "t://1/2", true},
        {"t://{+x}", "t://", false},
        {"t://{x}/f/{+y}", "t://1/f/2/3", true},
        {"t://{x}/f/{+y}", "t://1/2/f/3", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (resources_match(rows[i].template, rows[i].uri) != rows[i].fits)
            fail_msg("%s %s", rows[i].template, rows[i].uri);
    }
    assert_has(fixture_say(f, SAY("1", "resources/read", "\"uri\":\"t://x/1/y\"")),
               "\"text\":\"t://x/1/y\"", NULL);
    assert_has(fixture_say(f, SAY("1", "resources/read", "\"uri\":\"t://none\"")), "-32002", NULL);
    assert_has(fixture_say(f, SAY("1", "resources/read", META("") ",\"uri\":\"t://none\"")),
               "-32602", "\"data\":{\"uri\":\"t://none\"}", NULL);
    assert_has(fixture_say(f, SAY("1", "resources/templates/list", "")), "\"uriTemplate\"", NULL);
    assert_null(strstr(fixture_say(f, SAY("1", "resources/list", "")), "uriTemplate"));
}

/* What the parts of a template stood for, between bars; "no" when it does not fit. */
static void test_parts_are_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *template, *uri, *parts;
    } rows[] = {
        {"t://{x}/f/{+y}", "t://w/f/a/b%20c", "w|a/b c|"},
        {"t://{x}", "t://%C3%a9%25", "\xc3\xa9%|"},
        {"t://{x}", "t://a%2Fb", "a/b|"},
        {"t://{x}", "t://a%00", "no"},
        {"t://{x}", "t://a%", "no"},
        {"t://{x}", "t://a%2", "no"},
        {"t://{x}", "t://a%2g", "no"},
        {"t://a", "t://a", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autostrv parts = {0};
        autobuf got = BUF_INIT;
        if (!resources_parts(rows[i].template, rows[i].uri, &parts))
            buf_puts(&got, "no");
        for (size_t k = 0; k < parts.len; k++)
            buf_printf(&got, "%s|", parts.items[k]);
        assert_string_equal(buf_cstr(&got), rows[i].parts);
    }
}

static void test_prompts(void **state)
{
    struct fixture *f = *state;
    assert_has(fixture_say(f, SAY("1", "prompts/list", "")), "\"greet\"", "\"required\":true",
               NULL);
    assert_has(fixture_say(
                   f, SAY("1", "prompts/get", "\"name\":\"greet\",\"arguments\":{\"who\":\"me\"}")),
               "\"description\":\"me\"", NULL);
    assert_has(fixture_say(f, SAY("1", "prompts/get", "\"name\":\"greet\"")), "-32602", "who",
               NULL);
    assert_has(fixture_say(f, SAY("1", "prompts/get", "\"name\":\"none\"")), "-32602", NULL);
    assert_has(fixture_say(f, SAY("1", "completion/complete",
                                  "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"greet\"},"
                                  "\"argument\":{\"name\":\"who\",\"value\":\"\"}")),
               "\"values\":[]", NULL);
    assert_has(fixture_say(f, SAY("1", "completion/complete", "\"ref\":{\"type\":\"x\"}")),
               "-32602", NULL);
}

static void test_what_is_not_provided_does_not_exist(void **state)
{
    struct fixture *f = *state;
    static const struct provider only_tools = {.provides = PROVIDES_TOOLS, .tools = own_tools};
    f->server.provider = &only_tools;
    static const char *const methods[] = {
        SAY("1", "prompts/list", ""), SAY("1", "resources/list", ""),
        SAY("1", "completion/complete", ""), SAY("1", "logging/setLevel", "\"level\":\"info\""),
        SAY("1", "prompts/list", META(""))};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        assert_has(fixture_say(f, methods[i]), "-32601", NULL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_eras_do_not_pin_each_other),
        T(test_each_era_has_its_methods),
        T(test_meta_is_checked),
        T(test_state_is_sealed),
        T(test_questions),
        T(test_notices),
        T(test_listen),
        T(test_listen_ends_with_a_cancel),
        T(test_legacy_subscriptions),
        T(test_resources),
        cmocka_unit_test(test_parts_are_decoded),
        T(test_prompts),
        T(test_what_is_not_provided_does_not_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
