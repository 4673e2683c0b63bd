/* sandbox/guard: absent stays absent, a link stays that link, and a change before the start is not
 * taken for the command's. What a command does against it is in tests/sandbox. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sandbox/guard.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[64];

static int make_base(void **state)
{
    (void)state;
    snprintf(base, sizeof(base), "/tmp/cs-test-guard-XXXXXX");
    return mkdtemp(base) == NULL || chdir(base) < 0 ? -1 : 0;
}

static int remove_base(void **state)
{
    (void)state;
    return chdir("/") < 0 ? -1 : rmdir(base);
}

static void fill(struct strv *names, const char *git_link)
{
    strv_addf(names, "%s/.git", base);
    strv_add(names, git_link);
    strv_addf(names, "%s/.codex", base);
    strv_add(names, "");
}

static void test_created_is_removed(void **state)
{
    (void)state;
    struct guard g;
    struct err e = {0};
    autostrv names = {0};
    fill(&names, "");
    assert_int_equal(guard_init(&g, &names, &e), 0);
    assert_int_equal(guard_sweep(&g, &e), 0);
    assert_false(g.touched[0] || g.touched[1]);
    assert_int_equal(mkdir(".git", 0700), 0);
    assert_int_equal(mkdir(".git/hooks", 0), 0);
    guard_on_event(&g);
    assert_int_equal(access(".git", F_OK), -1);
    assert_true(g.touched[0] && !g.touched[1]);
    assert_int_equal(mkdir(".codex", 0), 0);
    assert_int_equal(mkdir(".other", 0), 0);
    assert_int_equal(guard_sweep(&g, &e), 0);
    assert_int_equal(access(".codex", F_OK), -1);
    assert_int_equal(rmdir(".other"), 0);
    assert_true(g.touched[1]);
    guard_fini(&g);
}

static void test_link_is_put_back(void **state)
{
    (void)state;
    struct guard g;
    struct err e = {0};
    char target[64] = "";
    autostrv names = {0};
    fill(&names, "/somewhere");
    assert_int_equal(symlink("/somewhere", ".git"), 0);
    assert_int_equal(guard_init(&g, &names, &e), 0);
    assert_int_equal(unlink(".git"), 0);
    assert_int_equal(symlink("/elsewhere", ".git"), 0);
    assert_int_equal(guard_sweep(&g, &e), 0);
    assert_true(g.touched[0]);
    assert_true(readlink(".git", target, sizeof(target) - 1) > 0);
    assert_string_equal(target, "/somewhere");
    guard_fini(&g);
    unlink(".git");
}

static void test_changed_before(void **state)
{
    (void)state;
    struct guard g;
    struct err e = {0};
    autostrv names = {0};
    fill(&names, "");
    assert_int_equal(mkdir(".git", 0700), 0);
    assert_int_equal(guard_init(&g, &names, &e), -1);
    assert_int_equal(e.code, ERR_PATH_PROTECTED);
    assert_non_null(strstr(e.message, ".git"));
    guard_fini(&g);
    assert_int_equal(rmdir(".git"), 0);
}

static void test_nothing_to_guard(void **state)
{
    (void)state;
    struct guard g;
    struct err e = {0};
    struct strv none = {0};
    assert_int_equal(guard_init(&g, &none, &e), 0);
    assert_int_equal(guard_sweep(&g, &e), 0);
    guard_fini(&g);
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(test_created_is_removed, make_base, remove_base),
          cmocka_unit_test_setup_teardown(test_link_is_put_back, make_base, remove_base),
          cmocka_unit_test_setup_teardown(test_changed_before, make_base, remove_base),
          cmocka_unit_test(test_nothing_to_guard))
