/* wire/rpc: which messages are what, which ids survive, and how refusals are told. */
#include "../../helpers/unit.h"
#include "wire/json.h"
#include "wire/rpc.h"

#include <stdio.h>

static int read_text(const char *text, struct rpc_message *ret, struct err *e)
{
    static struct json_object *obj;
    json_object_put(obj); /* what ret borrows lives until the next call */
    obj = NULL;
    assert_int_equal(json_parse(text, strlen(text), &obj, e), 0);
    return rpc_read(obj, ret, e);
}

static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum rpc_kind kind;
        const char *id;
    } rows[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", RPC_REQUEST, "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"ping\",\"params\":null}", RPC_REQUEST,
         "\"1\""},
        {"{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775808,\"method\":\"a\",\"params\":{}}",
         RPC_REQUEST, "-9223372036854775808"},
        {"{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"method\":\"a\"}", RPC_REQUEST,
         "18446744073709551615"},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"a\"}", RPC_REQUEST, "\"\""},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0000\\\"\",\"method\":\"a\"}", RPC_REQUEST,
         "\"a\\u0000\\\"\""},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", RPC_NOTIFICATION, ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", RPC_RESPONSE, "7"},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":null}", RPC_RESPONSE, "7"},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}", RPC_RESPONSE, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rpc_message m;
        struct err e = {0};
        if (read_text(rows[i].text, &m, &e) < 0)
            fail_msg("%s: %s", rows[i].text, e.message);
        assert_int_equal(m.kind, rows[i].kind);
        assert_int_equal(m.id.len, strlen(rows[i].id));
        if (m.id.len > 0)
            assert_string_equal(m.id.text, rows[i].id);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *id; /* what the error must still echo */
        enum err_code code;
        const char *says;
    } rows[] = {
        {"[]", "", ERR_INVALID_REQUEST, "object"},
        {"null", "", ERR_INVALID_REQUEST, "object"},
        {"\"x\"", "", ERR_INVALID_REQUEST, "object"},
        {"{}", "", ERR_INVALID_REQUEST, "jsonrpc"},
        {"{\"id\":1,\"method\":\"ping\"}", "1", ERR_INVALID_REQUEST, "jsonrpc"},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"a\"}", "1", ERR_INVALID_REQUEST, "jsonrpc"},
        {"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"a\"}", "1", ERR_INVALID_REQUEST, "jsonrpc"},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}", "", ERR_INVALID_REQUEST, "id"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}", "", ERR_INVALID_REQUEST, "id"},
        {"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"a\"}", "", ERR_INVALID_REQUEST, "id"},
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"a\"}", "", ERR_INVALID_REQUEST, "id"},
        {"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"a\"}", "", ERR_INVALID_REQUEST, "id"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", "1", ERR_INVALID_REQUEST, "method"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000\"}", "1", ERR_INVALID_REQUEST,
         "method"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", "1", ERR_INVALID_REQUEST, "neither"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":[1]}", "1", ERR_INVALID_PARAMS,
         "params"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":\"x\"}", "1",
         ERR_INVALID_PARAMS, "params"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rpc_message m;
        struct err e = {0};
        if (read_text(rows[i].text, &m, &e) == 0)
            fail_msg("accepted: %s", rows[i].text);
        assert_int_equal(e.code, rows[i].code);
        if (strstr(e.message, rows[i].says) == NULL)
            fail_msg("%s: \"%s\" does not name %s", rows[i].text, e.message, rows[i].says);
        assert_int_equal(m.id.len, strlen(rows[i].id));
        assert_memory_equal(m.id.text, rows[i].id, m.id.len);
    }
}

static void test_id_limit(void **state)
{
    (void)state;
    char text[2000];
    char id[600];
    struct rpc_message m;
    struct err e = {0};
    memset(id, 'x', sizeof(id));
    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"%.*s\",\"method\":\"a\"}",
             RPC_ID_MAX - 2, id);
    assert_int_equal(read_text(text, &m, &e), 0);
    assert_int_equal(m.id.len, RPC_ID_MAX);
    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"%.*s\",\"method\":\"a\"}",
             RPC_ID_MAX - 1, id);
    assert_int_equal(read_text(text, &m, &e), -1);
    assert_non_null(strstr(e.message, "RPC_ID_MAX (255)"));
    /* Short as bytes, long once escaped. */
    size_t n = 0;
    for (int i = 0; i < 60; i++)
        n += (size_t)snprintf(id + n, sizeof(id) - n, "\\u0001");
    snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"a\"}", id);
    assert_int_equal(read_text(text, &m, &e), -1);
    assert_int_equal(e.code, ERR_INVALID_REQUEST);
}

static void test_equal(void **state)
{
    (void)state;
    struct rpc_message one;
    struct rpc_message other;
    struct err e = {0};
    assert_int_equal(read_text("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}", &one, &e), 0);
    assert_int_equal(read_text("{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"a\"}", &other, &e),
                     0);
    assert_false(rpc_id_equal(&one.id, &other.id));
    assert_true(rpc_id_equal(&one.id, &one.id));
}

static void test_writes(void **state)
{
    (void)state;
    autobuf out = BUF_INIT;
    struct rpc_id id = {.len = 3, .text = "\"a\""};
    struct err e = {0};
    rpc_write_result_head(&out, &id);
    assert_string_equal(buf_cstr(&out), "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":");
    buf_reset(&out, 0);
    err_set(&e, ERR_PARSE_ERROR, "bad \"x\"");
    rpc_write_error(&out, &(struct rpc_id){0}, &e);
    assert_string_equal(buf_cstr(&out),
                        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
                        "\"message\":\"bad \\\"x\\\"\"}}");
}

UNIT_MAIN(cmocka_unit_test(test_kinds), cmocka_unit_test(test_refusals),
          cmocka_unit_test(test_id_limit), cmocka_unit_test(test_equal),
          cmocka_unit_test(test_writes))
