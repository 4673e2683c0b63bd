/* mcp/session and mcp/methods: transcripts of the protocol, good and bad. */
#include "fixture.h"

#include "mcp/methods.h"
#include "mcp/tool.h"
#include "wire/json.h"

#include <stdio.h>

#define RPC "{\"jsonrpc\":\"2.0\","
#define PING(id) RPC "\"id\":" id ",\"method\":\"ping\"}"

static void test_lifecycle(void **state)
{
    struct fixture *f = *state;
    const char *out = fixture_say(
        f, RPC "\"id\":\"i\",\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
               "\"2025-06-18\",\"capabilities\":{\"x\":1},\"clientInfo\":{\"name\":\"t\"}}}");
    assert_has(out, "\"id\":\"i\"", "\"protocolVersion\":\"2025-06-18\"",
               "\"capabilities\":{\"tools\":{},\"prompts\":{},\"resources\":{\"subscribe\":true},"
               "\"completions\":{},\"logging\":{}}",
               "\"name\":\"codespace\"", "\"version\":\"" CODESPACE_VERSION "\"",
               "\"instructions\":\"", NULL);
    assert_string_equal(fixture_say(f, RPC "\"method\":\"notifications/initialized\"}"), "");
    assert_string_equal(fixture_say(f, PING("2")), RPC "\"id\":2,\"result\":{}}\n");
}

static void test_versions(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *asked, *agreed;
    } rows[] = {{"2025-11-25", "2025-11-25"},
                {"2025-06-18", "2025-06-18"},
                {"2025-03-26", "2025-03-26"},
                {"2024-11-05", "2024-11-05"},
                {"2026-07-28", "2025-11-25"},
                {"1999-01-01", "2025-11-25"},
                {"", "2025-11-25"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *message = mem_printf(RPC "\"id\":1,\"method\":\"initialize\",\"params\":"
                                                "{\"protocolVersion\":\"%s\"}}",
                                            rows[i].asked);
        autofree char *want = mem_printf("\"protocolVersion\":\"%s\"", rows[i].agreed);
        assert_has(fixture_say(f, message), want, NULL);
    }
}

/* Every message that is wrong gets its error, and the next ping is answered. */
static void test_malformed(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *message, *id, *code, *says;
    } rows[] = {
        {"", "null", "-32700", "JSON"},
        {"{", "null", "-32700", "JSON"},
        {"nonsense", "null", "-32700", "JSON"},
        {RPC "\"id\":1,\"method\":\"ping\"}}", "null", "-32700", "JSON"},
        {RPC "\"id\":1,\"id\":2,\"method\":\"ping\"}", "null", "-32700", "same name"},
        {RPC "\"id\":1,\"method\":\"\xff\"}", "null", "-32700", "JSON"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "null", "-32700", "JSON_DEPTH_MAX"},
        {RPC "\"id\":1e400,\"method\":\"ping\"}", "null", "-32600", "id"},
        {"1", "null", "-32600", "object"},
        {"null", "null", "-32600", "object"},
        {"[]", "null", "-32600", "array"},
        {"[" PING("1") "]", "null", "-32600", "array"},
        {"{}", "null", "-32600", "jsonrpc"},
        {"{\"jsonrpc\":\"1.0\",\"id\":3,\"method\":\"ping\"}", "3", "-32600", "jsonrpc"},
        {PING("null"), "null", "-32600", "id"},
        {PING("1.5"), "null", "-32600", "id"},
        {PING("true"), "null", "-32600", "id"},
        {PING("{}"), "null", "-32600", "id"},
        {RPC "\"id\":4,\"method\":7}", "4", "-32600", "method"},
        {RPC "\"id\":4,\"method\":\"ping\",\"params\":[]}", "4", "-32602", "params"},
        {RPC "\"id\":4,\"method\":\"tools/nothing\"}", "4", "-32601", "tools/nothing"},
        {RPC "\"id\":4,\"method\":\"server/discover\"}", "4", "-32601", "server/discover"},
        {RPC "\"id\":4,\"method\":\"notifications/initialized\"}", "4", "-32601", "notifications"},
        {RPC "\"id\":4,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}", "4", "-32602",
         "cursor"},
        {RPC "\"id\":4,\"method\":\"tools/call\"}", "4", "-32602", "name"},
        {RPC "\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":5}}", "4", "-32602", "name"},
        {RPC "\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}", "4", "-32602",
         "workspace_info"},
        {RPC "\"id\":4,\"method\":\"initialize\"}", "4", "-32602", "protocolVersion"},
        {RPC "\"id\":4,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}", "4",
         "-32602", "protocolVersion"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *id = mem_printf("\"id\":%s,\"error\"", rows[i].id);
        autofree char *code = mem_printf("\"code\":%s,", rows[i].code);
        assert_has(fixture_say(f, rows[i].message), id, code, rows[i].says, NULL);
        assert_int_equal(f->n_sent, 1);
        assert_has(fixture_say(f, PING("9")), "\"id\":9,\"result\":{}", NULL);
    }
}

static void test_silent(void **state)
{
    struct fixture *f = *state;
    static const char *const messages[] = {
        RPC "\"method\":\"notifications/unknown\"}",
        RPC "\"method\":\"tools/call\",\"params\":{\"name\":\"read\"}}",
        RPC "\"method\":\"notifications/cancelled\"}",
        RPC "\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":77}}",
        RPC "\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":null}}",
        RPC "\"id\":5,\"result\":{}}",
        RPC "\"id\":5,\"error\":{\"code\":1,\"message\":\"x\"}}",
        RPC "\"id\":null,\"error\":{\"code\":1,\"message\":\"x\"}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(messages); i++)
        assert_string_equal(fixture_say(f, messages[i]), "");
}

static void test_before_initialize(void **state)
{
    struct fixture *f = *state;
    fixture_probe(f, true);
    assert_has(fixture_say(f, RPC "\"id\":1,\"method\":\"tools/list\"}"), "-32600",
               "initialize first", NULL);
    assert_has(fixture_call(f, "read", "{}"), "-32600", "initialize first", NULL);
    assert_has(fixture_say(f, RPC "\"id\":1,\"method\":\"server/discover\"}"), "-32601", NULL);
    assert_has(fixture_say(f, PING("2")), "\"result\":{}", NULL);
}

static void test_batches(void **state)
{
    struct fixture *f = *state;
    static const char batch[] = "[" PING("1") "," RPC "\"method\":\"notifications/initialized\"},"
                                              "5," PING("2") "]";
    fixture_say(f, RPC "\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
                       "\"2025-03-26\"}}");
    const char *out = fixture_say(f, batch);
    assert_has(out, "\"id\":1,\"result\":{}", "-32600", "\"id\":2,\"result\":{}", NULL);
    assert_int_equal(f->n_sent, 3);
    assert_has(fixture_say(f, "[]"), "-32600", NULL);
}

static void test_ids_are_echoed(void **state)
{
    struct fixture *f = *state;
    static const char *const ids[] = {"0",
                                      "-1",
                                      "9007199254740993",
                                      "9223372036854775807",
                                      "18446744073709551615",
                                      "\"\"",
                                      "\"1\"",
                                      "\"server-discover-probe-1\"",
                                      "\"a\\\"b\\u0000\""};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        autofree char *message = mem_printf(RPC "\"id\":%s,\"method\":\"ping\"}", ids[i]);
        autofree char *want = mem_printf(RPC "\"id\":%s,\"result\":{}}\n", ids[i]);
        assert_string_equal(fixture_say(f, message), want);
    }
}

static void test_tools_list(void **state)
{
    struct fixture *f = *state;
    struct err e;
    autofree char *out =
        mem_strdup(fixture_say(f, RPC "\"id\":1,\"method\":\"tools/list\",\"params\":{}}"));
    autojson *obj = NULL;
    assert_int_equal(json_parse(out, strlen(out), &obj, &e), 0);
    struct json_object *list = json_get(json_get(obj, "result"), "tools");
    size_t n = 0;
    while (tools[n] != NULL)
        n++;
    assert_int_equal(json_object_array_length(list), n);
    for (size_t i = 0; i < n; i++) {
        struct json_object *t = json_object_array_get_idx(list, i);
        assert_string_equal(json_str(json_get(t, "name")), tools[i]->name);
        assert_true(strlen(json_str(json_get(t, "description"))) > 20);
        assert_non_null(json_str(json_get(t, "title")));
        assert_non_null(json_get(json_get(t, "annotations"), "readOnlyHint"));
        assert_string_equal(json_str(json_get(json_get(t, "inputSchema"), "type")), "object");
        assert_string_equal(json_str(json_get(json_get(t, "outputSchema"), "type")), "object");
        assert_null(json_get(json_get(json_get(t, "inputSchema"), "properties"), "approved"));
    }
    /* The same bytes every time. */
    assert_string_equal(out, fixture_say(f, RPC "\"id\":1,\"method\":\"tools/list\"}"));
}

/* tools/list speaks about the sandbox, so it waits for the probe; ping does not. */
static void test_waits_for_probe(void **state)
{
    struct fixture *f = *state;
    assert_has(fixture_say(f, RPC "\"id\":0,\"method\":\"initialize\",\"params\":"
                                  "{\"protocolVersion\":\"2025-11-25\"}}"),
               "\"result\"", NULL);
    assert_string_equal(fixture_say(f, RPC "\"id\":1,\"method\":\"tools/list\"}"), "");
    assert_has(fixture_say(f, RPC "\"id\":1,\"method\":\"ping\"}"), "-32600", "in flight", NULL);
    assert_has(fixture_say(f, PING("2")), "\"result\":{}", NULL);
    assert_string_equal(fixture_call(f, "workspace_info", "{\"workspace_id\":\"ws\"}"), "");
    assert_string_equal(
        fixture_say(f, RPC "\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":7}}"),
        "");
    fixture_probe(f, true);
    assert_int_equal(f->n_sent, 1);
    assert_has(fixture_run(f), "\"id\":1,\"result\":{\"tools\":[", NULL);
}

/* A request whose id is in flight is refused, and the first one is answered all the same. */
static void test_duplicate_id(void **state)
{
    struct fixture *f = *state;
    assert_string_equal(fixture_call(f, "read_process", "{\"process_id\":\"proc-1\"}"), "");
    assert_has(fixture_say(f, PING("7")), "\"id\":7,\"error\"", "-32600", "in flight", NULL);
    assert_has(fixture_say(f, PING("\"7\"")), "\"id\":\"7\",\"result\"", NULL);
    struct run_page page = {.bytes = "x", .len = 1, .cursor = 1};
    page.status.process_id = "proc-1";
    fixture_page(f, &page);
    assert_has(fixture_run(f), "\"id\":7,\"result\"", "\"chunk\":\"x\"", NULL);
    assert_has(fixture_say(f, PING("7")), "\"id\":7,\"result\":{}", NULL);
}

static void test_too_many(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < SESSION_CALLS_MAX; i++) {
        autofree char *m = mem_printf(RPC "\"id\":%u,\"method\":\"tools/call\",\"params\":{\"name\""
                                          ":\"read_process\",\"arguments\":{\"process_id\":"
                                          "\"proc-1\"}}}",
                                      i);
        assert_string_equal(fixture_say(f, m), "");
    }
    assert_has(fixture_say(f, PING("\"more\"")), "-32003", "SESSION_CALLS_MAX (1024)", NULL);
    assert_string_equal(
        fixture_say(f, RPC "\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":3}}"),
        "");
    assert_int_equal(f->fake.cancels, 1);
    assert_has(fixture_say(f, PING("\"more\"")), "\"result\":{}", NULL);
    session_hang_up(&f->session);
    assert_has(buf_cstr(&f->sent), "\"id\":1023,\"error\":{\"code\":-32800", NULL);
    assert_int_equal(f->n_sent, SESSION_CALLS_MAX);
    assert_int_equal(f->session.n_calls, 0);
    assert_int_equal(f->n_ended, SESSION_CALLS_MAX);
    assert_int_equal(f->session.coming, 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
#define RAW(test) cmocka_unit_test_setup_teardown(test, fixture_setup_raw, fixture_teardown)
UNIT_MAIN(WITH(test_lifecycle), WITH(test_versions), WITH(test_malformed), WITH(test_silent),
          RAW(test_before_initialize), WITH(test_batches), WITH(test_ids_are_echoed),
          WITH(test_tools_list), RAW(test_waits_for_probe), WITH(test_duplicate_id),
          WITH(test_too_many))
