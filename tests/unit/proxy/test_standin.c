/* proxy/standin: one address a name, none twice, the least used forgotten first. */
#include "../../helpers/unit.h"
#include "proxy/standin.h"

#include <stdio.h>

static struct host host_of(const char *format, int n)
{
    struct host h = {0};
    char text[64];
    snprintf(text, sizeof(text), "%s%d.test", format, n);
    assert_int_equal(host_parse(text, strlen(text), &h, NULL), 0);
    return h;
}

static void test_both_ways(void **state)
{
    (void)state;
    struct standins s;
    struct net_addr first;
    struct net_addr again;
    struct net_addr other;
    struct host a = host_of("a", 1);
    struct host b = host_of("b", 1);
    standins_init(&s);
    standin_of(&s, &a, &first);
    standin_of(&s, &b, &other);
    standin_of(&s, &a, &again);
    assert_memory_equal(&first, &again, sizeof(first));
    assert_memory_not_equal(&first, &other, sizeof(first));
    assert_true(standin_is(&first) && standin_is(&other));
    assert_string_equal(standin_find(&s, &other)->text, "b1.test");
    standins_fini(&s);
}

static void test_addresses_of_nobody(void **state)
{
    (void)state;
    static const struct {
        struct net_addr addr;
        bool in_range;
    } rows[] = {
        {{4, {198, 18, 0, 0}}, true},     {{4, {198, 18, 0, 9}}, true},
        {{4, {198, 19, 255, 255}}, true}, {{4, {198, 17, 255, 255}}, false},
        {{4, {198, 20, 0, 0}}, false},    {{4, {10, 0, 0, 1}}, false},
        {{6, {198, 18, 0, 1}}, false},
    };
    struct standins s;
    struct net_addr first;
    struct host a = host_of("a", 1);
    standins_init(&s);
    for (int filled = 0; filled < 2; filled++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            assert_null(standin_find(&s, &rows[i].addr));
            assert_int_equal(standin_is(&rows[i].addr), rows[i].in_range);
        }
        standin_of(&s, &a, &first);
    }
    standins_fini(&s);
}

static void test_forgetting(void **state)
{
    (void)state;
    struct standins s;
    struct net_addr first;
    struct net_addr second;
    struct net_addr addr;
    standins_init(&s);
    struct host keep = host_of("keep", 0);
    struct host lose = host_of("lose", 0);
    standin_of(&s, &keep, &first);
    standin_of(&s, &lose, &second);
    for (int i = 0; i < STANDIN_NAMES_MAX - 2; i++) {
        struct host h = host_of("n", i);
        standin_of(&s, &h, &addr);
    }
    assert_non_null(standin_find(&s, &first)); /* a use */
    struct host one_more = host_of("more", 0);
    standin_of(&s, &one_more, &addr);
    assert_int_equal(s.n, STANDIN_NAMES_MAX);
    assert_non_null(standin_find(&s, &first));
    assert_null(standin_find(&s, &second)); /* nobody's, not somebody else's */
    standin_of(&s, &lose, &addr);
    assert_memory_not_equal(&addr, &second, sizeof(addr));
    standins_fini(&s);
}

/* Round the whole range: never an address that is in use. */
static void test_coming_round(void **state)
{
    (void)state;
    struct standins s;
    struct net_addr fixed;
    struct net_addr addr;
    struct host keep = host_of("keep", 0);
    standins_init(&s);
    standin_of(&s, &keep, &fixed);
    for (unsigned i = 0; i < STANDIN_COUNT + 10; i++) {
        struct host h = host_of("n", (int)i);
        standin_of(&s, &h, &addr);
        assert_memory_not_equal(&addr, &fixed, sizeof(addr));
        assert_string_equal(standin_find(&s, &fixed)->text, "keep0.test");
    }
    standins_fini(&s);
}

UNIT_MAIN(cmocka_unit_test(test_both_ways), cmocka_unit_test(test_addresses_of_nobody),
          cmocka_unit_test(test_forgetting), cmocka_unit_test(test_coming_round))
