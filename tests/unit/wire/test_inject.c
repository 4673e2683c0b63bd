/* wire/inject: where a value comes from, for which kind of request, and what is told of it. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "wire/inject.h"

#define PLACE "\"host\":\"a.test\",\"header\":\"A\""

static int read_list(const char *text, struct inject_rules *ret, struct err *e)
{
    autojson *list = NULL;
    assert_int_equal(json_parse(text, strlen(text), &list, NULL), 0);
    *ret = (struct inject_rules){0};
    return inject_read(list, "inject", ret, e);
}

static void test_sources(void **state)
{
    (void)state;
    static const char text[] =
        "[{" PLACE ",\"command\":[\"/bin/x\",\"\",\"a b\"],\"tls\":\"intercept\"},"
        "{\"host\":\"b.test\",\"header\":\"A\",\"file\":\"/f\"}]";
    struct inject_rules r, copy = {0};
    autobuf whole = BUF_INIT, shown = BUF_INIT, places = BUF_INIT;
    struct jsonw w;
    assert_int_equal(read_list(text, &r, NULL), 0);
    inject_dup(&r, &copy);
    inject_fini(&r);
    assert_int_equal(copy.items[0].port, 443);
    assert_int_equal(copy.items[0].command.len, 3);
    assert_int_equal(copy.items[1].port, 80);
    assert_string_equal(copy.items[1].file, "/f");
    jsonw_init(&w, &whole);
    inject_write(&copy, true, &w);
    assert_string_equal(buf_cstr(&whole),
                        "[{\"host\":\"a.test:443\",\"header\":\"A\",\"tls\":\"intercept\","
                        "\"command\":[\"/bin/x\",\"\",\"a b\"]},"
                        "{\"host\":\"b.test:80\",\"header\":\"A\",\"file\":\"/f\"}]");
    jsonw_init(&w, &shown);
    inject_write(&copy, false, &w);
    assert_null(strstr(buf_cstr(&shown), "/bin/x"));
    assert_non_null(strstr(buf_cstr(&shown), "intercept"));
    jsonw_init(&w, &places);
    inject_write_intercepted(&copy, &w);
    assert_string_equal(buf_cstr(&places), "[\"a.test:443\"]");
    assert_int_equal(read_list(buf_cstr(&whole), &r, NULL),
                     0); /* the next program reads the same */
    assert_true(inject_intercepts(&r, &r.items[0].host, 443));
    assert_false(inject_intercepts(&r, &r.items[0].host, 80));
    assert_false(inject_intercepts(&r, &r.items[1].host, 80));
    assert_true(inject_has_intercept(&r));
    inject_fini(&r);
    inject_fini(&copy);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"[{" PLACE "}]", "inject[0]: needs \"file\" or \"command\", and not both"},
        {"[{" PLACE ",\"file\":\"/f\",\"command\":[\"/x\"]}]", "inject[0]: needs \"file\" or"},
        {"[{" PLACE ",\"command\":[]}]", "inject[0].command"},
        {"[{" PLACE ",\"command\":[\"x\"]}]",
         "inject[0].command[0]: \"x\" is not an absolute path"},
        {"[{" PLACE ",\"command\":\"/x\"}]", "inject[0].command"},
        {"[{" PLACE ",\"command\":[7]}]", "inject[0].command"},
        {"[{" PLACE ",\"command\":[\"/x\\u0000\"]}]", "inject[0].command"},
        {"[{" PLACE ",\"file\":\"f\"}]", "inject[0].file: \"f\" is not an absolute path"},
        {"[{" PLACE ",\"file\":\"/f\",\"tls\":\"yes\"}]", "inject[0].tls"},
        {"[{\"host\":\"1.2.3.4\",\"header\":\"A\",\"file\":\"/f\",\"tls\":\"intercept\"}]",
         "inject[0].host: \"1.2.3.4\" is an address"},
        {"[{" PLACE ",\"file\":\"/f\",\"tls\":\"intercept\"},{\"host\":\"a.test:443\",\"header\":"
         "\"B\",\"file\":\"/f\"}]",
         "inject[1].tls: \"tunnel\" contradicts an earlier rule"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct inject_rules r;
        struct err e = {0};
        assert_int_equal(read_list(rows[i].text, &r, &e), -1);
        if (strncmp(e.message, rows[i].message, strlen(rows[i].message)) != 0)
            fail_msg("%s: %s", rows[i].text, e.message);
        inject_fini(&r);
    }
}

/* The proxy knows of values only. */
static void test_values(void **state)
{
    (void)state;
    static const char good[] = "[{" PLACE ",\"value\":\"v\",\"tls\":\"intercept\"}]";
    static const char bad[] = "[{" PLACE ",\"value\":\"v\",\"command\":[\"/x\"]}]";
    struct inject_rules r = {0};
    assert_int_equal(inject_read_values(good, strlen(good), &r, NULL), 0);
    assert_true(r.items[0].intercept);
    inject_fini(&r);
    assert_int_equal(inject_read_values(bad, strlen(bad), &r, NULL), -1);
}

UNIT_MAIN(cmocka_unit_test(test_sources), cmocka_unit_test(test_refused),
          cmocka_unit_test(test_values))
