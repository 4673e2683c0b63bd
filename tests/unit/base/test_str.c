/* base/str: vectors end with NULL, ids are random and well formed. */
#include "../../helpers/unit.h"
#include "base/str.h"

static void test_strv(void **state)
{
    (void)state;
    autostrv v = {0};
    assert_null(strv_array(&v)[0]);
    strv_add(&v, "b");
    strv_addf(&v, "%s%d", "a", 1);
    assert_null(v.items[2]);
    assert_true(strv_has(&v, "a1"));
    assert_false(strv_has(&v, "a"));
    strv_sort(&v);
    assert_string_equal(v.items[0], "a1");
}

static void test_edges(void **state)
{
    (void)state;
    assert_true(str_starts("abc", "ab"));
    assert_false(str_starts("a", "ab"));
    assert_true(str_ends("abc", "bc"));
    assert_false(str_ends("c", "bc"));
    assert_true(str_eq(NULL, NULL));
    assert_false(str_eq(NULL, ""));
}

static void test_ids(void **state)
{
    (void)state;
    char *a = str_new_id("proc-");
    char *b = str_new_id("proc-");
    assert_int_equal(strlen(a), 5 + 36);
    assert_int_equal(a[5 + 14], '4');
    assert_non_null(strchr("89ab", a[5 + 19]));
    assert_string_not_equal(a, b);
    free(a);
    free(b);
}

UNIT_MAIN(cmocka_unit_test(test_strv), cmocka_unit_test(test_edges), cmocka_unit_test(test_ids))
