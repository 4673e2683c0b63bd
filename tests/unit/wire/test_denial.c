/* wire/denial: counting by kind, lines there and back and refused. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "wire/denial.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void test_kinds_are_counted(void **state)
{
    (void)state;
    struct denial list[DENIAL_MAX] = {0};
    denial_count(list, "filter.trace", "ptrace");
    denial_count(list, "filter.trace", "kcmp");
    denial_count(list, "filter.trace", "ptrace");
    assert_int_equal(list[0].count, 2);
    assert_int_equal(list[1].count, 1);
    assert_string_equal(list[1].what, "kcmp");
    assert_string_equal(list[2].rule, "");
}

static void test_list_is_bounded(void **state)
{
    (void)state;
    struct denial list[DENIAL_MAX] = {0};
    for (int i = 0; i < 100; i++) {
        char what[16];
        snprintf(what, sizeof(what), "call%d", i);
        denial_count(list, "filter.other", what);
    }
    assert_string_equal(list[DENIAL_MAX - 1].rule, "filter.more");
    assert_int_equal(list[DENIAL_MAX - 1].count, 100 - (DENIAL_MAX - 1));
    assert_non_null(denial_rule_find(list[DENIAL_MAX - 1].rule));
}

/* Who fills the list does not keep out of it that something is not known. */
static void test_unknown(void **state)
{
    (void)state;
    struct denial list[DENIAL_MAX] = {0};
    denial_unknown(list, DENIAL_UNSEARCHED);
    denial_unknown(list, DENIAL_UNSEARCHED);
    assert_string_equal(list[0].rule, DENIAL_UNSEARCHED);
    assert_int_equal(list[0].count, 0);
    assert_string_equal(list[1].rule, "");
    assert_non_null(denial_rule_find(DENIAL_UNSEARCHED));
    memset(list, 0, sizeof(list));
    for (int i = 0; i < 100; i++) {
        char what[DENIAL_WHAT_MAX];
        snprintf(what, sizeof(what), "call %d", i);
        denial_count(list, "filter.other", what);
    }
    denial_unknown(list, DENIAL_UNSEARCHED);
    denial_unknown(list, DENIAL_UNSEARCHED);
    assert_string_equal(list[DENIAL_MAX - 2].rule, DENIAL_UNSEARCHED);
    assert_int_equal(list[DENIAL_MAX - 2].count, 0);
    assert_int_equal(list[DENIAL_MAX - 1].count, 100 - (DENIAL_MAX - 1) + 1);
}

static void test_count_ends(void **state)
{
    (void)state;
    struct denial list[DENIAL_MAX] = {{"filter.trace", "ptrace", DENIAL_COUNT_MAX}};
    denial_count(list, "filter.trace", "ptrace");
    assert_int_equal(list[0].count, DENIAL_COUNT_MAX);
}

static void test_lines(void **state)
{
    (void)state;
    autostrv lines = {0};
    struct denial back;
    const struct denial all[] = {
        {"filter.socket", "socket(AF_VSOCK)", 3},
        {"filter.unobserved", "", 0},
        {"protect.name", "a b/.git", DENIAL_COUNT_MAX},
        {"protect.name", "@1 a b", 1}, /* a name, whatever it looks like */
        {"network.udp", "UDP 203.0.113.5:123", 2, 12, "python3.11", false},
        {"network.denied", "name evil.test", 1, 2147483, "node", true},
        {"network.ipv6", "", 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        denial_add_line(&all[i], &lines);
        assert_int_equal(denial_read_line(lines.items[i], &back), 0);
        assert_memory_equal(&back, &all[i], offsetof(struct denial, others));
        assert_int_equal(back.others, all[i].others);
    }
}

static void test_who(void **state)
{
    (void)state;
    struct denial d = {"network.denied", "GET a.test:80", 1};
    struct denial back;
    denial_by(&d, 12, "a b\"\x1b@+-_.Z9 and what is more than there is room for");
    assert_int_equal(d.pid, 12);
    assert_string_equal(d.process, "a?b???+-_.Z9?and?what?i");
    denial_by(&d, 12, "other");
    assert_false(d.others);
    denial_by(&d, 13, "other");
    assert_true(d.others && d.pid == 12);
    static const char *const words[] = {
        "@12", "@12 ", "@x curl GET", "@12+", "@12 curl", "@", "@12  x", "@999999999999 curl GET"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        autofree char *line = mem_printf("network.denied 1 %s", words[i]);
        assert_int_equal(denial_read_line(line, &back), 0);
        assert_true(strlen(back.process) < DENIAL_PROCESS_MAX);
        if (back.pid == 0)
            assert_string_equal(back.what, words[i]);
    }
}

static void test_bad_lines(void **state)
{
    (void)state;
    struct denial d;
    static const char *const bad[] = {
        "",
        "filter.trace",
        "filter.trace 1",
        "filter.trace x ptrace",
        "filter.trace -1 x",
        "Filter 1 x",
        "filter.trace 1000000001 x",
        "filter.trace 99999999999999999999 x",
        "a.rule.whose.name.is.longer.than.the.table.takes 1 x",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(denial_read_line(bad[i], &d), -EINVAL);
    char line[400] = "filter.trace 1 ";
    memset(line + strlen(line), 'x', sizeof(line) - strlen(line) - 1);
    line[sizeof(line) - 1] = '\0';
    assert_int_equal(denial_read_line(line, &d), 0);
    assert_int_equal(strlen(d.what), DENIAL_WHAT_MAX - 1);
}

static void test_table(void **state)
{
    (void)state;
    assert_null(denial_rule_find("filter.none"));
    assert_null(denial_rule_find(NULL));
    assert_non_null(strstr(denial_rule_find("filter.trace")->grant, "debug"));
    assert_non_null(
        strstr(denial_rule_find("filter.namespace")->grant, "\"user_namespaces\": true"));
    assert_int_equal(denial_layer_len("filter.trace"), strlen("filter"));
    assert_int_equal(denial_layer_len("proxy"), strlen("proxy"));
}

UNIT_MAIN(cmocka_unit_test(test_kinds_are_counted), cmocka_unit_test(test_list_is_bounded),
          cmocka_unit_test(test_unknown), cmocka_unit_test(test_count_ends),
          cmocka_unit_test(test_lines), cmocka_unit_test(test_who),
          cmocka_unit_test(test_bad_lines), cmocka_unit_test(test_table))
