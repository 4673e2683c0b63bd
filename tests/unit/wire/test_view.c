/* wire/view: the tables are well formed: absolute or relative as promised, no row twice. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "wire/view.h"

static void check_table(const char *const *table, bool absolute)
{
    assert_non_null(table[0]);
    for (size_t i = 0; table[i] != NULL; i++) {
        const char *row = table[i];
        size_t n = strlen(row);
        assert_true(n > 1 && (row[0] == '/') == absolute);
        assert_int_not_equal(row[n - 1], '/');
        assert_null(strstr(row, "//"));
        assert_null(strstr(row, "/.."));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(row, table[j]);
    }
}

static void test_tables(void **state)
{
    (void)state;
    check_table(view_platform, true);
    check_table(view_etc_secrets, true);
    check_table(view_host_secrets, true);
    check_table(view_home_secrets, false);
    check_table(view_protected, false);
    for (size_t i = 0; view_etc_secrets[i] != NULL; i++)
        assert_true(str_starts(view_etc_secrets[i], "/etc/"));
}

static void test_environment(void **state)
{
    (void)state;
    for (size_t i = 0; view_environment[i] != NULL; i++) {
        const char *equals = strchr(view_environment[i], '=');
        assert_non_null(equals);
        size_t name = (size_t)(equals - view_environment[i]) + 1;
        assert_true(name > 1);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(strncmp(view_environment[i], view_environment[j], name), 0);
    }
}

/* No home toolchain comes in by PATH (R21). */
static void test_path_is_of_the_system(void **state)
{
    (void)state;
    assert_string_equal(view_environment[0],
                        "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
}

static void test_fini(void **state)
{
    (void)state;
    struct view v = {.workspace = mem_strdup("/w")};
    view_fini(&v);
    view_fini(&v);
    v.mounts = mem_zalloc(2, sizeof(*v.mounts));
    v.n_mounts = 2;
    v.mounts[0].path = mem_strdup("/a");
    strv_add(&v.hidden, "/h");
    strv_add(&v.protect, ".git");
    view_fini(&v);
    assert_null(v.workspace);
    assert_int_equal(v.n_mounts, 0);
}

UNIT_MAIN(cmocka_unit_test(test_tables), cmocka_unit_test(test_environment),
          cmocka_unit_test(test_path_is_of_the_system), cmocka_unit_test(test_fini))
