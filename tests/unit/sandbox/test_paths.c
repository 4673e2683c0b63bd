/* sandbox/paths: what lies below what, and the order of a tree. */
#include "../../helpers/unit.h"
#include "sandbox/paths.h"

static void test_within(void **state)
{
    (void)state;
    assert_true(paths_within("/a", "/a"));
    assert_true(paths_within("/a/b", "/a"));
    assert_true(paths_within("/a", "/"));
    assert_true(paths_within("/", "/"));
    assert_false(paths_within("/ab", "/a"));
    assert_false(paths_within("/a", "/a/b"));
    assert_false(paths_within("/", "/a"));
}

static void test_order(void **state)
{
    (void)state;
    static const char *const sorted[] = {"/",    "/a",  "/a/b", "/a/b/c",  "/a/c",   "/a-b",
                                         "/a.b", "/ab", "/b",   "/b/\x01", "/b/\xff"};
    for (size_t i = 0; i < sizeof(sorted) / sizeof(sorted[0]); i++) {
        for (size_t j = 0; j < sizeof(sorted) / sizeof(sorted[0]); j++) {
            int order = paths_compare(sorted[i], sorted[j]);
            assert_true(i < j ? order < 0 : i > j ? order > 0 : order == 0);
        }
    }
}

UNIT_MAIN(cmocka_unit_test(test_within), cmocka_unit_test(test_order))
