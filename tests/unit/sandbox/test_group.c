/* sandbox/group: which file of which group gets which text, for both versions, and that a limit
 * which cannot be held is refused by its name. Groups that are really made are in tests/sandbox. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sandbox/group.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[64];

static void put(const char *name, const char *text)
{
    autofree char *path = mem_printf("%s/%s", base, name);
    autofd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static int make_base(void **state)
{
    (void)state;
    snprintf(base, sizeof(base), "/tmp/cs-test-group-XXXXXX");
    return mkdtemp(base) == NULL || chdir(base) < 0 ? -1 : 0;
}

static int remove_base(void **state)
{
    (void)state;
    unlink("cgroup.controllers");
    unlink("cgroup.subtree_control");
    return chdir("/") < 0 ? -1 : rmdir(base);
}

/* Version 2 with these controllers for its groups. */
static void give(const char *controllers)
{
    put("cgroup.controllers", "cpu memory pids\n");
    put("cgroup.subtree_control", controllers);
}

static int plan(const struct helper_limits *limits, struct plan *p, struct err *e)
{
    const struct helper_request r = {.limits = *limits, .cgroup_parent = base};
    *p = (struct plan){0};
    return group_plan(&r, p, e);
}

static void expect_row(const struct plan *p, size_t row, const char *file, const char *text)
{
    assert_string_equal(p->groups.items[3 * row], base);
    assert_string_equal(p->groups.items[3 * row + 1], file);
    assert_string_equal(p->groups.items[3 * row + 2], text);
}

static void test_files_of_version_2(void **state)
{
    (void)state;
    struct err e = {0};
    struct plan p;
    give("cpu memory pids\n");
    const struct helper_limits all = {.memory = 1 << 30, .pids = 10, .cpu_percent = 150};
    assert_int_equal(plan(&all, &p, &e), 0);
    assert_int_equal(p.groups.len, 4 * 3);
    expect_row(&p, 0, "memory.max", "1073741824");
    expect_row(&p, 1, "memory.swap.max", "0");
    expect_row(&p, 2, "pids.max", "12"); /* bubblewrap and process 1 count */
    expect_row(&p, 3, "cpu.max", "150000 100000");
    assert_true(group_has_events(&p.groups, GROUP_MEMORY));
    assert_true(group_has_events(&p.groups, GROUP_PIDS));
    plan_fini(&p);
}

static void test_nothing_asked_nothing_made(void **state)
{
    (void)state;
    struct err e = {0};
    struct plan p;
    assert_int_equal(plan(&(struct helper_limits){0}, &p, &e), 0);
    assert_int_equal(p.groups.len, 0);
    assert_false(group_has_events(&p.groups, GROUP_MEMORY));
    assert_false(group_has_events(&p.groups, GROUP_PIDS));
    plan_fini(&p);
}

static void expect_refused(const struct helper_limits *limits, const char *name, const char *why)
{
    struct err e = {0};
    struct plan p;
    assert_int_equal(plan(limits, &p, &e), -1);
    assert_int_equal(e.code, ERR_INVALID_COMMAND);
    assert_non_null(strstr(e.message, name));
    assert_non_null(strstr(e.message, why));
    plan_fini(&p);
}

static void test_each_missing_controller(void **state)
{
    (void)state;
    const struct helper_limits memory = {.memory = 1 << 20}, pids = {.pids = 9},
                               cpu = {.cpu_percent = 5};
    give("pids cpuset\n");
    expect_refused(&memory, "memory", "cgroup.subtree_control");
    expect_refused(&cpu, "cpu_percent", "cgroup.subtree_control");
    give("cpu memory");
    expect_refused(&pids, "pids", "cgroup.subtree_control");
    give("");
    expect_refused(&pids, "pids", "cgroup.subtree_control");
    unlink("cgroup.subtree_control");
    expect_refused(&memory, "memory", "cgroup.subtree_control");
}

static void test_neither_version(void **state)
{
    (void)state;
    const struct helper_limits pids = {.pids = 9};
    expect_refused(&pids, "pids", "not a directory below a control group's root");
}

static void test_too_large(void **state)
{
    (void)state;
    const struct helper_limits cpu = {.cpu_percent = UINT64_MAX};
    give("cpu\n");
    expect_refused(&cpu, "cpu_percent", "too large");
}

/* The words of memory.events (version 2) and memory.oom_control (1). */
static void test_kills_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t kills;
    } rows[] = {
        {"low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n", 2},
        {"oom_kill_disable 0\nunder_oom 1\noom_kill 7\n", 7},
        {"oom_kill 1\n", 1},
        {"low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\noom_group_kill 0\n", 0}, /* not by our limit */
        {"oom 5\noom_group_kill 5\n", 0},
        {"oom_kill 99999999999\n", UINT32_MAX},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        put("cgroup.controllers", rows[i].text);
        autofd int fd = open("cgroup.controllers", O_RDONLY | O_CLOEXEC);
        assert_int_equal(group_oom_kills(fd), rows[i].kills);
    }
    assert_int_equal(group_oom_kills(-1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files_of_version_2, make_base, remove_base),
        cmocka_unit_test_setup_teardown(test_nothing_asked_nothing_made, make_base, remove_base),
        cmocka_unit_test_setup_teardown(test_each_missing_controller, make_base, remove_base),
        cmocka_unit_test_setup_teardown(test_neither_version, make_base, remove_base),
        cmocka_unit_test_setup_teardown(test_too_large, make_base, remove_base),
        cmocka_unit_test_setup_teardown(test_kills_are_read, make_base, remove_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
