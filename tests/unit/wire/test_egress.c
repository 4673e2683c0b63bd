/* wire/egress: what a policy may say, how it is refused, and the two verdicts. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "wire/egress.h"

#include <stdio.h>

static void read_policy(const char *text, struct egress_policy *ret)
{
    struct err e = {0};
    if (egress_policy_parse(text, strlen(text), ret, &e) < 0)
        fail_msg("%s: %s", text, e.message);
}

static struct egress_target target_of(const char *authority, const char *method)
{
    struct egress_target t = {.method = method, .method_len = strlen(method)};
    assert_int_equal(host_parse_authority(authority, strlen(authority), 80, &t.host, &t.port, NULL),
                     0);
    return t;
}

static void judge(const struct egress_policy *p, const char *authority, const char *method,
                  struct egress_verdict *ret)
{
    struct egress_target t = target_of(authority, method);
    egress_judge(p, &t, ret);
}

static void test_refused_documents(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"{\"allow\":[\"a b\"]}", "allow[0]: \"a b\": byte 0x20 is not possible in a host name "
                                  "(letters, digits, '-', '_' and '.'; other alphabets in their "
                                  "xn-- form)"},
        {"{\"allow\":[\"ok.test\",\"*.10.0.0.1\"]}",
         "allow[1]: \"*.10.0.0.1\": an address has no names below it"},
        {"{\"deny\":[\"a.test:0\"]}",
         "deny[0]: \"a.test:0\": the port is not a number from 1 to 65535"},
        {"{\"deny\":[\"*:x\"]}", "deny[0]: \"*:x\": the port is not a number from 1 to 65535"},
        {"{\"methods\":[\"get\"]}", "methods[0]: \"get\" is not a method in capital letters"},
        {"{\"local_ports\":[0]}", "local_ports[0]: must be a port number from 1 to 65535"},
        {"{\"local_ports\":[\"80\"]}", "local_ports[0]: must be a port number from 1 to 65535"},
        {"{\"private\":[\"10.0.0.0/40\"]}",
         "private[0]: \"10.0.0.0/40\": the prefix length must be 0 to 32"},
        {"{\"unix_sockets\":[\"x\"]}", "unix_sockets[0]: \"x\" is not an absolute path"},
        {"{\"upstream\":\"proxy.test\"}", "upstream: a port is required"},
        {"{\"fronting\":\"off\"}", "fronting: \"off\" is not one of \"log\", \"refuse\""},
        {"{\"alow\":[]}", "alow: no such name here; did you mean \"allow\"?"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct egress_policy p = {0};
        struct err e = {0};
        assert_int_equal(egress_policy_parse(rows[i].text, strlen(rows[i].text), &p, &e), -1);
        assert_string_equal(e.message, rows[i].message);
        assert_int_equal(e.code, ERR_CONFIG_INVALID);
    }
}

static void test_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        const char *target;
        bool allowed;
    } rows[] = {
        {"a.test", "a.test:80", true},
        {"A.Test.", "a.test:99", true},
        {"a.test", "b.a.test", false},
        {"a.test", "aa.test", false},
        {"a.test:443", "a.test:443", true},
        {"a.test:443", "a.test:80", false},
        {"*.a.test", "b.a.test", true},
        {"*.a.test", "c.b.a.test", true},
        {"*.a.test", "a.test", false},
        {"*.allowed.test", "notallowed.test", false},
        {"**.a.test", "a.test", true},
        {"**.a.test", "b.a.test", true},
        {"**.a.test", "ba.test", false},
        {"**.a.test:1", "b.a.test:2", false},
        {"*", "anything.test", true},
        {"*", "1.1.1.1", true},
        {"*:443", "anything.test:443", true},
        {"*:443", "anything.test:80", false},
        {"1.1.1.1", "1.1.1.1", true},
        {"*.1.test", "1.1.1.1", false},
        {"[2606:4700::1]:443", "[2606:4700:0::1]:443", true},
        {"2606:4700::1", "[2606:4700::1]:1", true},
        {"[2606:4700::1]", "[2606:4700::1]:1", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        autoegress p = {0};
        struct egress_verdict v;
        char text[128];
        snprintf(text, sizeof(text), "{\"allow\":[\"%s\"]}", rows[i].pattern);
        read_policy(text, &p);
        judge(&p, rows[i].target, "GET", &v);
        if ((v.reason == EGRESS_ALLOWED) != rows[i].allowed)
            fail_msg("%s and %s", rows[i].pattern, rows[i].target);
        assert_int_equal(v.reason, rows[i].allowed ? EGRESS_ALLOWED : EGRESS_NOT_ALLOWED);
    }
}

static void test_deny_wins_and_rules_are_named(void **state)
{
    (void)state;
    autoegress p = {0};
    struct egress_verdict v;
    char name[EGRESS_RULE_NAME_MAX];
    read_policy("{\"allow\":[\"x.test\",\"**.a.test\"],\"deny\":[\"y.test\",\"*.bad.a.test\"]}",
                &p);
    judge(&p, "b.a.test", "GET", &v);
    assert_int_equal(v.reason, EGRESS_ALLOWED);
    assert_string_equal(egress_rule_name(&v, name), "allow[1]");
    judge(&p, "c.bad.a.test", "GET", &v);
    assert_int_equal(v.reason, EGRESS_DENIED);
    assert_string_equal(egress_rule_name(&v, name), "deny[1]");
    judge(&p, "z.test", "GET", &v);
    assert_string_equal(egress_reason_name(v.reason), "not_allowed");
    assert_string_equal(egress_rule_name(&v, name), "");
}

static void test_empty_allows_nothing(void **state)
{
    (void)state;
    autoegress p = {0};
    struct egress_verdict v;
    read_policy("{}", &p);
    judge(&p, "a.test", "GET", &v);
    assert_int_equal(v.reason, EGRESS_NOT_ALLOWED);
    judge(&p, "localhost", "GET", &v);
    assert_int_equal(v.reason, EGRESS_NOT_ALLOWED);
}

static void test_methods(void **state)
{
    (void)state;
    autoegress p = {0};
    struct egress_verdict v;
    read_policy("{\"allow\":[\"*\"],\"methods\":[\"GET\",\"HEAD\"]}", &p);
    judge(&p, "a.test", "GET", &v);
    assert_int_equal(v.reason, EGRESS_ALLOWED);
    judge(&p, "a.test", "get", &v);
    assert_int_equal(v.reason, EGRESS_METHOD);
    judge(&p, "a.test", "GETS", &v);
    assert_int_equal(v.reason, EGRESS_METHOD);
    judge(&p, "a.test", "CONNECT", &v);
    assert_int_equal(v.reason, EGRESS_METHOD);
}

/* The second verdict (C13): policy, target, address; the reason that is expected. */
static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        const char *target;
        const char *addr;
        enum egress_reason reason;
    } rows[] = {
        {"{\"allow\":[\"a.test\"]}", "a.test", "1.1.1.1", EGRESS_ALLOWED},
        {"{\"allow\":[\"a.test\"]}", "a.test", "127.0.0.1", EGRESS_ADDRESS},
        {"{\"allow\":[\"a.test\"]}", "a.test", "10.1.2.3", EGRESS_ADDRESS},
        {"{\"allow\":[\"a.test\"]}", "a.test", "169.254.169.254", EGRESS_ADDRESS},
        {"{\"allow\":[\"a.test\"]}", "a.test", "100.64.1.1", EGRESS_ADDRESS},
        {"{\"allow\":[\"a.test\"]}", "a.test", "fe80::1", EGRESS_ADDRESS},
        {"{\"allow\":[\"a.test\"]}", "a.test", "::ffff:10.0.0.1", EGRESS_ADDRESS},
        {"{\"allow\":[\"a.test\"],\"private\":[\"10.1.0.0/16\"]}", "a.test", "10.1.2.3",
         EGRESS_ALLOWED},
        {"{\"allow\":[\"a.test\"],\"private\":[\"10.1.0.0/16\"]}", "a.test", "10.2.2.3",
         EGRESS_ADDRESS},
        {"{\"allow\":[\"*\"],\"private\":[\"169.254.0.0/16\"]}", "a.test", "169.254.1.1",
         EGRESS_ALLOWED},
        {"{\"allow\":[\"*\"],\"private\":[\"169.254.0.0/16\",\"0.0.0.0/0\"]}", "a.test",
         "169.254.169.254", EGRESS_ADDRESS},
        {"{\"allow\":[\"*\"],\"private\":[\"169.254.169.254\"]}", "a.test", "169.254.169.254",
         EGRESS_ALLOWED},
        {"{\"allow\":[\"*\"]}", "10.0.0.1", "10.0.0.1", EGRESS_ADDRESS},
        {"{\"allow\":[\"10.0.0.1\"]}", "10.0.0.1", "10.0.0.1", EGRESS_ALLOWED},
        {"{\"allow\":[\"*\",\"10.0.0.1\"]}", "10.0.0.1", "10.0.0.1", EGRESS_ALLOWED},
        {"{\"allow\":[\"10.0.0.1\",\"a.test\"]}", "a.test", "10.0.0.1", EGRESS_ADDRESS},
        {"{\"allow\":[\"*\"]}", "localhost", "127.0.0.1", EGRESS_ADDRESS},
        {"{\"allow\":[\"localhost:80\"]}", "localhost", "127.0.0.1", EGRESS_ALLOWED},
        {"{\"allow\":[\"localhost:80\"]}", "localhost", "10.0.0.1", EGRESS_ADDRESS},
        {"{\"local_ports\":[80]}", "localhost", "::1", EGRESS_ALLOWED},
        {"{\"local_ports\":[80]}", "127.0.0.1", "127.0.0.1", EGRESS_ALLOWED},
        {"{\"local_ports\":[80],\"allow\":[\"a.test\"]}", "a.test", "127.0.0.1", EGRESS_ADDRESS},
        {"{\"allow\":[\"*\"],\"deny\":[\"1.1.1.1\"]}", "a.test", "1.1.1.1", EGRESS_DENIED},
        {"{\"allow\":[\"*\"],\"private\":[\"127.0.0.0/8\"],\"deny\":[\"127.0.0.1:80\"]}", "a.test",
         "127.0.0.1", EGRESS_DENIED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        autoegress p = {0};
        struct egress_verdict first;
        struct egress_verdict v;
        struct host addr = {0};
        struct egress_target t = target_of(rows[i].target, "GET");
        read_policy(rows[i].policy, &p);
        assert_int_equal(host_parse(rows[i].addr, strlen(rows[i].addr), &addr, NULL), 0);
        egress_judge(&p, &t, &first);
        assert_int_equal(first.reason, EGRESS_ALLOWED);
        egress_judge_addr(&p, &t, &first, &addr.addr, &v);
        if (v.reason != rows[i].reason)
            fail_msg("%s %s %s: %s", rows[i].policy, rows[i].target, rows[i].addr,
                     egress_reason_name(v.reason));
    }
}

static void test_local_ports_by_port(void **state)
{
    (void)state;
    autoegress p = {0};
    struct egress_verdict v;
    read_policy("{\"local_ports\":[5432],\"deny\":[\"localhost:5433\"]}", &p);
    judge(&p, "localhost:5432", "CONNECT", &v);
    assert_int_equal(v.reason, EGRESS_ALLOWED);
    judge(&p, "[::1]:5432", "CONNECT", &v);
    assert_int_equal(v.reason, EGRESS_ALLOWED);
    judge(&p, "localhost:5433", "CONNECT", &v);
    assert_int_equal(v.reason, EGRESS_DENIED);
    judge(&p, "127.0.0.1:22", "CONNECT", &v);
    assert_int_equal(v.reason, EGRESS_NOT_ALLOWED);
}

static void test_names_without_port(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum egress_reason reason;
    } rows[] = {{"a.test", EGRESS_ALLOWED},
                {"b.test", EGRESS_DENIED},
                {"c.test", EGRESS_ALLOWED},
                {"d.test", EGRESS_NOT_ALLOWED}};
    autoegress p = {0};
    read_policy("{\"allow\":[\"a.test:443\",\"b.test\",\"c.test\"],"
                "\"deny\":[\"b.test\",\"c.test:80\"]}",
                &p);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct egress_verdict v;
        struct host h = {0};
        assert_int_equal(host_parse(rows[i].name, strlen(rows[i].name), &h, NULL), 0);
        egress_judge_name(&p, &h, &v);
        assert_int_equal(v.reason, rows[i].reason);
    }
}

static void test_schema_names_every_member(void **state)
{
    (void)state;
    autobuf out = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &out);
    egress_policy_schema(&w);
    for (const char *const *name =
             (const char *const[]){"allow", "deny", "methods", "local_ports", "unix_sockets",
                                   "private", "fronting", "upstream", NULL};
         *name != NULL; name++)
        assert_non_null(strstr(buf_cstr(&out), *name));
}

static void test_written_as_read(void **state)
{
    (void)state;
    static const char text[] =
        "{\"allow\":[\"a.test\",\"*.b.test:443\",\"**.c.test\",\"*\",\"*:1\",\"[::2]:5\"],"
        "\"deny\":[\"10.0.0.1\"],\"methods\":[\"GET\"],\"unix_sockets\":[\"/run/x\"],"
        "\"local_ports\":[80],\"private\":[\"10.0.0.0/8\",\"::1/128\"],\"fronting\":\"refuse\","
        "\"upstream\":\"proxy.test:3128\"}";
    autoegress p = {0};
    autobuf out = BUF_INIT;
    struct jsonw w;
    read_policy(text, &p);
    jsonw_init(&w, &out);
    egress_policy_write(&p, &w);
    assert_string_equal(buf_cstr(&out), text);
}

#define RULE_HEAD "{\"host\":\"api.test:8080\",\"header\":\"X-Api-Key\""
#define SECRET "not for anybody"

static void test_credentials_without_their_files(void **state)
{
    (void)state;
    autoegress p = {0}, copy = {0};
    autobuf whole = BUF_INIT, shown = BUF_INIT;
    struct jsonw w;
    read_policy(
        "{\"inject\":[{\"host\":\"API.test.:8080\",\"header\":\"X-Api-Key\",\"file\":\"/k\"}]}",
        &p);
    egress_policy_dup(&p, &copy);
    jsonw_init(&w, &whole);
    egress_policy_write(&copy, &w);
    assert_non_null(strstr(buf_cstr(&whole), "\"inject\":[" RULE_HEAD ",\"file\":\"/k\"}]"));
    jsonw_init(&w, &shown);
    egress_policy_show(&copy, &w);
    assert_non_null(strstr(buf_cstr(&shown), "\"inject\":[" RULE_HEAD "}]"));
    assert_null(strstr(buf_cstr(&shown), "/k"));
}

static void test_credentials_and_their_values(void **state)
{
    (void)state;
    autoegress p = {0};
    autobuf out = BUF_INIT;
    struct inject_rules values = {0};
    struct jsonw w;
    read_policy("{\"inject\":[" RULE_HEAD ",\"file\":\"/k\"}]}", &p);
    jsonw_init(&w, &out);
    jsonw_array(&w);
    inject_write_value(&p.inject.items[0], SECRET, &w);
    jsonw_array_end(&w);
    assert_int_equal(inject_read_values(buf_bytes(&out), out.len, &values, NULL), 0);
    assert_int_equal(values.len, 1);
    assert_int_equal(values.items[0].port, 8080);
    assert_string_equal(values.items[0].header, "X-Api-Key");
    assert_string_equal(values.items[0].value, SECRET);
    assert_null(values.items[0].file);
    inject_fini(&values);
}

/* No part of a value gets into a message. */
static void test_values_that_are_none(void **state)
{
    (void)state;
    static const char *const bad[] = {"", SECRET "\n", SECRET "\r\nX: 1", SECRET "\x7f",
                                      "\xc3\xa9"};
    struct err e = {0};
    char longest[INJECT_VALUE_MAX + 2];
    memset(longest, 'x', sizeof(longest));
    assert_int_equal(inject_check_value(longest, INJECT_VALUE_MAX, &e), 0);
    assert_int_equal(inject_check_value(longest, INJECT_VALUE_MAX + 1, &e), -1);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(inject_check_value(bad[i], strlen(bad[i]), &e), -1);
        assert_int_equal(e.code, ERR_CONFIG_INVALID);
        assert_null(strstr(e.message, SECRET));
    }
}

UNIT_MAIN(cmocka_unit_test(test_refused_documents), cmocka_unit_test(test_patterns),
          cmocka_unit_test(test_deny_wins_and_rules_are_named),
          cmocka_unit_test(test_empty_allows_nothing), cmocka_unit_test(test_methods),
          cmocka_unit_test(test_addresses), cmocka_unit_test(test_local_ports_by_port),
          cmocka_unit_test(test_names_without_port),
          cmocka_unit_test(test_schema_names_every_member), cmocka_unit_test(test_written_as_read),
          cmocka_unit_test(test_credentials_without_their_files),
          cmocka_unit_test(test_credentials_and_their_values),
          cmocka_unit_test(test_values_that_are_none))
