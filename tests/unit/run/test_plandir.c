/* run/plandir: in memory or not at all, ours alone, held while it is used, gone afterwards. */
#include "run/plandir.h"

#include "base/mem.h"
#include "sys/leaf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A parent of the test's own: sweeping it does no other test harm. */
static char parent[] = PLANDIR_MEMORY "/codespace-test-XXXXXX";

static int make_parent(void **state)
{
    (void)state;
    struct statfs fs;
    assert_int_equal(statfs(PLANDIR_MEMORY, &fs), 0);
    assert_int_equal(fs.f_type, TMPFS_MAGIC);
    assert_non_null(mkdtemp(parent));
    return 0;
}

static int remove_parent(void **state)
{
    (void)state;
    return rmdir(parent);
}

static void test_ours_and_gone_at_the_end(void **state)
{
    (void)state;
    struct plandir d;
    struct stat st;
    plandir_open(&d, parent);
    assert_non_null(d.path);
    assert_int_equal(strncmp(d.path, parent, strlen(parent)), 0);
    assert_int_equal(stat(d.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    /* what a helper that was killed left */
    autofree char *left = mem_printf("%s/codespace-sandbox-x", d.path);
    autofree char *plan = mem_printf("%s/plan", left);
    assert_int_equal(mkdir(left, 0700), 0);
    close(open(plan, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    autofree char *path = mem_strdup(d.path);
    plandir_close(&d);
    assert_null(d.path);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(errno, ENOENT);
    plandir_close(&d);
}

static void test_the_next_one_sweeps_what_nobody_holds(void **state)
{
    (void)state;
    struct plandir d;
    plandir_open(&d, parent);
    leaf_sweep(parent, 0);
    assert_int_equal(access(d.path, F_OK), 0);
    close(d.hold); /* as a kill does */
    leaf_sweep(parent, 0);
    assert_int_equal(access(d.path, F_OK), -1);
    d.hold = -1;
    plandir_close(&d);
}

static void test_not_wanted_or_not_in_memory(void **state)
{
    (void)state;
    static const char *const others[] = {NULL, "/proc", "/nowhere/at/all", PLANDIR_MEMORY "/none"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct plandir d;
        plandir_open(&d, others[i]);
        assert_null(d.path);
        assert_int_equal(d.hold, -1);
        plandir_close(&d);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ours_and_gone_at_the_end),
        cmocka_unit_test(test_the_next_one_sweeps_what_nobody_holds),
        cmocka_unit_test(test_not_wanted_or_not_in_memory),
    };
    return cmocka_run_group_tests(tests, make_parent, remove_parent);
}
