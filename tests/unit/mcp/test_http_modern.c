/* mcp/http_modern: headers against bodies. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "mcp/http_modern.h"
#include "mcp/http_param.h"
#include "wire/json.h"

#include <string.h>

static void test_decode(void **state)
{
    (void)state;
    static const struct {
        const char *text, *plain; /* NULL: malformed */
    } rows[] = {
        {"read", "read"},
        {"", ""},
        {"=?base64?cmVhZA==?=", "read"},
        {"=?base64?w6Q=?=", "\xc3\xa4"},
        {"=?base64?"
         "?=",
         ""},
        {"=?base64?cmVhZA=?=", NULL},
        {"=?base64?cmVhZA?=", NULL},
        {"=?base64?cmVhZB==?=", NULL},
        {"=?base64?cm VhZA==?=", NULL},
        {"=?base64?cmVhZA==cmVh?=", NULL},
        {"=?base64?====?=", NULL},
        {"=?base64?AAAA?=", NULL}, /* NULs are in no name */
        {"=?base64?cmVhZA==", "=?base64?cmVhZA=="},
        {"=?BASE64?cmVhZA==?=", "=?BASE64?cmVhZA==?="},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char *got = http_modern_decode(rows[i].text, strlen(rows[i].text));
        if ((got == NULL) != (rows[i].plain == NULL) ||
            (got != NULL && strcmp(got, rows[i].plain) != 0))
            fail_msg("%s: %s", rows[i].text, got != NULL ? got : "refused");
    }
}

#define META(version) "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" version "\"}"
#define BODY(method, params)                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"
#define V "MCP-Protocol-Version: 2026-07-28\r\n"

static void test_check(void **state)
{
    (void)state;
    static const struct {
        const char *headers, *body;
        bool modern;
        enum err_code code;
    } rows[] = {
        {"", BODY("tools/list", ""), false, ERR_NONE},
        {"MCP-Protocol-Version: 2025-11-25\r\n", BODY("tools/list", ""), false, ERR_NONE},
        {V "Mcp-Method: tools/list\r\n", BODY("tools/list", META("2026-07-28")), true, ERR_NONE},
        {V "mcp-method:   tools/list  \r\n", BODY("tools/list", ""), true, ERR_NONE},
        {V, BODY("tools/list", META("2026-07-28")), true, ERR_HEADER_MISMATCH},
        {"Mcp-Method: tools/list\r\n", BODY("tools/list", META("2026-07-28")), true,
         ERR_HEADER_MISMATCH},
        {V "Mcp-Method: tools/list\r\n", BODY("tools/list", META("2999-01-01")), true,
         ERR_HEADER_MISMATCH},
        {"MCP-Protocol-Version: 2999-01-01\r\n", BODY("tools/list", META("2999-01-01")), true,
         ERR_VERSION_UNSUPPORTED},
        {V "Mcp-Method: tools/list\r\nMcp-Method: tools/list\r\n", BODY("tools/list", ""), true,
         ERR_HEADER_MISMATCH},
        {V "Mcp-Method: tools/call\r\nMcp-Name: a\r\n", BODY("tools/call", "\"name\":\"a\""), true,
         ERR_NONE},
        {V "Mcp-Method: tools/call\r\nMcp-Name: A\r\n", BODY("tools/call", "\"name\":\"a\""), true,
         ERR_HEADER_MISMATCH},
        {V "Mcp-Method: resources/read\r\nMcp-Name: x:y\r\n",
         BODY("resources/read", "\"uri\":\"x:y\""), true, ERR_NONE},
        {V "Mcp-Method: resources/read\r\n", BODY("resources/read", "\"uri\":\"x:y\""), true,
         ERR_HEADER_MISMATCH},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http1_head head;
        struct rpc_message m;
        struct err e = {.code = ERR_NONE};
        autobuf data = BUF_INIT;
        autojson *body = NULL;
        autofree char *text =
            mem_printf("POST /mcp HTTP/1.1\r\nHost: x\r\n%s\r\n", rows[i].headers);
        http1_head_init(&head, HTTP1_REQUEST);
        assert_int_equal(http1_head_parse(&head, text, strlen(text), &e), 1);
        assert_int_equal(json_parse(rows[i].body, strlen(rows[i].body), &body, &e), 0);
        assert_int_equal(rpc_read(body, &m, &e), 0);
        assert_int_equal(http_modern_is(&head, body), rows[i].modern);
        if (!rows[i].modern)
            continue;
        int r = http_modern_check(&head, &m, &data, &e);
        if ((r < 0 ? e.code : ERR_NONE) != rows[i].code)
            fail_msg("row %zu: %s", i, e.message);
        assert_int_equal(data.len > 0, rows[i].code == ERR_VERSION_UNSUPPORTED);
    }
}

static void test_params(void **state)
{
    (void)state;
    static const struct tool tool = {
        .name = "t",
        .schema = "{\"type\":\"object\",\"properties\":{"
                  "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
                  "\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"},"
                  "\"dry\":{\"type\":\"boolean\",\"x-mcp-header\":\"Dry\"},"
                  "\"plain\":{\"type\":\"string\"},"
                  "\"in\":{\"type\":\"object\",\"properties\":{"
                  "\"side\":{\"type\":\"string\",\"x-mcp-header\":\"Side\"}}}}}"};
    static const struct {
        const char *headers, *arguments;
        bool fine;
    } rows[] = {
        {"", "{}", true},
        {"", "{\"plain\":\"x\"}", true},
        {"Mcp-Param-Region: eu\r\n", "{\"region\":\"eu\"}", true},
        {"mcp-param-region:  eu \r\n", "{\"region\":\"eu\"}", true},
        {"Mcp-Param-Region: =?base64?ZXU=?=\r\n", "{\"region\":\"eu\"}", true},
        {"Mcp-Param-Region: =?base64?ZXU?=\r\n", "{\"region\":\"eu\"}", false},
        {"Mcp-Param-Region: EU\r\n", "{\"region\":\"eu\"}", false},
        {"", "{\"region\":\"eu\"}", false},
        {"Mcp-Param-Region: eu\r\n", "{}", false},
        {"Mcp-Param-Region: eu\r\n", "{\"region\":null}", false},
        {"Mcp-Param-Region: eu\r\nMcp-Param-Region: eu\r\n", "{\"region\":\"eu\"}", false},
        {"Mcp-Param-N: 7\r\n", "{\"n\":7}", true},
        {"Mcp-Param-N: 07\r\n", "{\"n\":7}", false},
        {"Mcp-Param-Dry: true\r\n", "{\"dry\":true}", true},
        {"Mcp-Param-Dry: false\r\n", "{\"dry\":true}", false},
        {"Mcp-Param-Side: l\r\n", "{\"in\":{\"side\":\"l\"}}", true},
        {"", "{\"in\":{\"side\":\"l\"}}", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http1_head head;
        struct err e = {0};
        autojson *arguments = NULL;
        autofree char *text =
            mem_printf("POST /mcp HTTP/1.1\r\nHost: x\r\n%s\r\n", rows[i].headers);
        http1_head_init(&head, HTTP1_REQUEST);
        assert_int_equal(http1_head_parse(&head, text, strlen(text), &e), 1);
        assert_int_equal(json_parse(rows[i].arguments, strlen(rows[i].arguments), &arguments, &e),
                         0);
        int r = http_param_check(&head, &tool, arguments, &e);
        if ((r == 0) != rows[i].fine || (r < 0 && e.code != ERR_HEADER_MISMATCH))
            fail_msg("row %zu: %s", i, e.message);
        assert_int_equal(http_param_check(&head, NULL, arguments, &e), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
