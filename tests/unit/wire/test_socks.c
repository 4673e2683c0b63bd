/* wire/socks: the two messages of a client, whole and in parts, and what is refused with which
 * code. */
#include "../../helpers/unit.h"
#include "wire/socks.h"

static void test_greetings(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        size_t n;
        int result;
        bool no_auth;
    } rows[] = {
        {"", 0, 0, false},      {"\5", 1, 0, false},          {"\5\1", 2, 0, false},
        {"\5\1\0", 3, 1, true}, {"\5\2\2\0", 4, 1, true},     {"\5\1\2", 3, 1, false},
        {"\5\0", 2, 1, false},  {"\4\1\0\120", 4, -1, false}, {"GET", 3, -1, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t size = 0;
        bool no_auth = false;
        assert_int_equal(socks_greeting_parse(rows[i].data, rows[i].n, &size, &no_auth),
                         rows[i].result);
        assert_int_equal(no_auth, rows[i].no_auth);
    }
}

#define MESSAGE(text) text, sizeof(text) - 1

static void test_requests(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        size_t n;
        const char *authority; /* NULL: refused */
        enum socks_reply reply;
    } rows[] = {
        {MESSAGE("\5\1\0\1\1\2\3\4\0\120"), "1.2.3.4:80", SOCKS_OK},
        {MESSAGE("\5\1\0\3\6A.test\1\273"), "a.test:443", SOCKS_OK},
        {MESSAGE("\5\1\0\3\0071.2.3.4\0\120"), "1.2.3.4:80", SOCKS_OK},
        {MESSAGE("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\120"), "[::1]:80", SOCKS_OK},
        {MESSAGE("\5\2\0\1\1\2\3\4\0\120"), NULL, SOCKS_NO_COMMAND},
        {MESSAGE("\5\3\0\1\1\2\3\4\0\120"), NULL, SOCKS_NO_COMMAND},
        {MESSAGE("\5\1\1\1\1\2\3\4\0\120"), NULL, SOCKS_FAILED},
        {MESSAGE("\5\1\0\2\1\2\3\4\0\120"), NULL, SOCKS_NO_ADDRESS_TYPE},
        {MESSAGE("\5\1\0\3\0\0\120"), NULL, SOCKS_FAILED},
        {MESSAGE("\5\1\0\1\1\2\3\4\0\0"), NULL, SOCKS_FAILED},
        {MESSAGE("\4\1\0\1\1\2\3\4\0\120"), NULL, SOCKS_FAILED},
        {MESSAGE("\5\1\0\3\26evil.test\0allowed.test\0\120"), NULL, SOCKS_NOT_ALLOWED},
        {MESSAGE("\5\1\0\3\0120x7f000001\0\120"), NULL, SOCKS_NOT_ALLOWED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct socks_request request = {0};
        struct err e = {0};
        int r = socks_request_parse(rows[i].data, rows[i].n, &request, &e);
        assert_int_equal(r, rows[i].authority != NULL ? 1 : -1);
        assert_int_equal(request.reply, rows[i].reply);
        if (r < 0)
            continue;
        char text[HOST_AUTHORITY_MAX];
        host_format_authority(&request.host, request.port, text);
        assert_string_equal(text, rows[i].authority);
        assert_int_equal(request.size, rows[i].n);
        for (size_t n = 0; n < rows[i].n; n++)
            assert_int_equal(socks_request_parse(rows[i].data, n, &request, NULL), 0);
    }
}

static void test_answers(void **state)
{
    (void)state;
    autobuf out = BUF_INIT;
    socks_greeting_answer(true, &out);
    socks_greeting_answer(false, &out);
    socks_reply_write(SOCKS_NOT_ALLOWED, &out);
    assert_int_equal(out.len, 14);
    assert_memory_equal(buf_bytes(&out), "\5\0\5\xff\5\2\0\1\0\0\0\0\0\0", 14);
}

UNIT_MAIN(cmocka_unit_test(test_greetings), cmocka_unit_test(test_requests),
          cmocka_unit_test(test_answers))
