/* sandbox/check, sandbox/exits, sandbox/report, sandbox/filter: tables and small forms. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sandbox/check.h"
#include "sandbox/exits.h"
#include "sandbox/filter.h"
#include "sandbox/report.h"

#include <errno.h>
#include <unistd.h>

static void test_causes(void **state)
{
    (void)state;
    assert_int_equal(check_cause("bwrap: loopback: Failed RTM_NEWADDR: EPERM"), PROBE_APPARMOR);
    assert_int_equal(check_cause("x; bwrap: Can't mount proc on /newroot/proc: y"), PROBE_NO_PROC);
    assert_int_equal(check_cause("bwrap: Unknown option --bind-fd"), PROBE_OLD_BWRAP);
    assert_int_equal(check_cause("bwrap: setting up uid map: Permission denied"), PROBE_APPARMOR);
    assert_int_equal(check_cause("bwrap: setting up uid map: Read-only"), PROBE_NO_USERNS);
    assert_int_equal(check_cause("bwrap: Creating new namespace failed: nesting depth or "
                                 "/proc/sys/user/max_*_namespaces exceeded (ENOSPC)"),
                     PROBE_MAX_NAMESPACES);
    assert_int_equal(check_cause("something else"), PROBE_OTHER);
    assert_int_equal(check_cause(""), PROBE_OTHER);
}

/* H13: the range is ours, and every row has words. */
static void test_exits(void **state)
{
    (void)state;
    int rows = 0;
    for (int code = 0; code < 256; code++) {
        bool ours = *sandbox_exit_text(code) != '\0';
        assert_true(!ours || (code >= 180 && code <= 199));
        rows += ours;
    }
    assert_int_equal(rows, 20);
    assert_string_equal(sandbox_exit_text(SANDBOX_EXIT_BWRAP),
                        "bubblewrap could not build the view");
}

static void test_report(void **state)
{
    (void)state;
    int pipe_fds[2];
    char line[1024] = "";
    struct report taken, parsed;
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(report_write(pipe_fds[1]), 0);
    assert_true(read(pipe_fds[0], line, sizeof(line) - 1) > 0);
    report_take(&taken);
    assert_int_equal(report_parse(line, &parsed), 0);
    assert_memory_equal(&taken, &parsed, sizeof(taken));
    assert_true(taken.namespaces[REPORT_MNT] != 0);
    assert_int_equal(taken.parent, getppid());
    assert_int_equal(report_parse("1 2 3", &parsed), -EINVAL);
    assert_int_equal(report_parse("", &parsed), -EINVAL);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

/* Loading costs by length: a filter that grows past this wants another look. */
static void test_filter_is_short(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    autobuf debug = BUF_INIT;
    filter_add(0, &b);
    filter_add(FILTER_DEBUG, &debug);
    assert_int_equal(b.len % 8, 0);
    assert_int_equal(debug.len % 8, 0);
    assert_in_range(b.len / 8, 50, 250);
    assert_true(debug.len < b.len);
}

UNIT_MAIN(cmocka_unit_test(test_causes), cmocka_unit_test(test_exits),
          cmocka_unit_test(test_report), cmocka_unit_test(test_filter_is_short))
