/* mcp/http_check: who may ask. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "mcp/http_check.h"

#include <string.h>

static void test_hosts(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool ours;
    } rows[] = {
        {"localhost", true},
        {"localhost:8787", true},
        {"LocalHost:1", true},
        {"127.0.0.1:65535", true},
        {"127.9.9.9", true},
        {"[::1]:8787", true},
        {"box.example.com", true},
        {"box.example.com:443", true},
        {"b.example.com:90", true},
        {"b.example.com:91", false},
        {"b.example.com", false},
        {"evil.example.com", false},
        {"localhost.evil.example.com", false},
        {"x.localhost", false},
        {"user@localhost", false},
        {"localhost:0", false},
        {"localhost:", false},
        {"localhost:80:80", false},
        {"0x7f.0.0.1", false},
        {"2130706433", false},
        {"", false},
        {" ", false},
    };
    struct http_policy p = {0};
    struct err e;
    assert_int_equal(http_policy_add_host(&p, "Box.Example.com", &e), 0);
    assert_int_equal(http_policy_add_host(&p, "b.example.com:90", &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (http_policy_host(&p, rows[i].value, strlen(rows[i].value)) != rows[i].ours)
            fail_msg("\"%s\"", rows[i].value);
    }
    http_policy_fini(&p);
}

static void test_origins(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool ours;
    } rows[] = {
        {"http://localhost", true},
        {"https://localhost:5173", true},
        {"HTTP://127.0.0.1:1", true},
        {"https://app.example.com", true},
        {"https://app.example.com:444", false},
        {"http://app.example.com", false},
        {"https://app.example.com.evil.example", false},
        {"http://localhost/path", false},
        {"http://", false},
        {"ftp://localhost", false},
        {"localhost", false},
        {"null", false},
        {"", false},
    };
    struct http_policy p = {0};
    struct err e;
    assert_int_equal(http_policy_add_origin(&p, "https://app.example.com", &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (http_policy_origin(&p, rows[i].value, strlen(rows[i].value)) != rows[i].ours)
            fail_msg("\"%s\"", rows[i].value);
    }
    http_policy_fini(&p);
}

static void test_refuses_policies(void **state)
{
    (void)state;
    struct http_policy p = {0};
    struct err e;
    static const char *const hosts[] = {"a b", "", "x:0", "x:99999", "http://x"};
    static const char *const origins[] = {"", "example.com", "https://x/path", "https://x,y"};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
        assert_int_equal(http_policy_add_host(&p, hosts[i], &e), -1);
    for (size_t i = 0; i < ARRAY_LEN(origins); i++)
        assert_int_equal(http_policy_add_origin(&p, origins[i], &e), -1);
    assert_int_equal(http_policy_set_token(&p, "too short", &e), -1);
    assert_non_null(strstr(e.message, "HTTP_TOKEN_MIN"));
    assert_int_equal(http_policy_set_token(&p, "a token with blanks in it", &e), -1);
    assert_null(strstr(e.message, "blanks in it"));
    assert_null(p.token);
    http_policy_fini(&p);
}

static void test_the_operators_token_is_another_one(void **state)
{
    (void)state;
    static const char caller[] = "0123456789abcdef";
    static const char own[] = "fedcba9876543210";
    struct http_policy p = {0};
    struct err e;
    assert_int_equal(http_policy_set_token(&p, caller, &e), 0);
    assert_int_equal(http_policy_set_operator_token(&p, "short", &e), -1);
    assert_int_equal(http_policy_set_operator_token(&p, caller, &e), -1);
    assert_null(strstr(e.message, caller));
    assert_null(p.operator_token);
    assert_int_equal(http_policy_set_operator_token(&p, own, &e), 0);
    assert_true(http_policy_operator(&p, "Bearer fedcba9876543210", 23));
    assert_false(http_policy_operator(&p, "Bearer 0123456789abcdef", 23));
    assert_false(http_policy_bearer(&p, "Bearer fedcba9876543210", 23));
    http_policy_fini(&p);
}

static void test_bearer(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool ours;
    } rows[] = {
        {"Bearer 0123456789abcdef", true},
        {"bearer 0123456789abcdef", true},
        {"Bearer   0123456789abcdef", true},
        {"Bearer 0123456789abcdeF", false},
        {"Bearer 0123456789abcde", false},
        {"Bearer 0123456789abcdef0", false},
        {"Bearer0123456789abcdef", false},
        {"Bearer ", false},
        {"Bearer", false},
        {"Basic 0123456789abcdef", false},
        {"0123456789abcdef", false},
        {"", false},
    };
    struct http_policy p = {0};
    struct err e;
    assert_int_equal(http_policy_set_token(&p, "0123456789abcdef", &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (http_policy_bearer(&p, rows[i].value, strlen(rows[i].value)) != rows[i].ours)
            fail_msg("\"%s\"", rows[i].value);
    }
    http_policy_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_refuses_policies),
        cmocka_unit_test(test_bearer),
        cmocka_unit_test(test_the_operators_token_is_another_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
