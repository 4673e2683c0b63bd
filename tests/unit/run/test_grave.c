/* run/grave: what is handed over is reaped, with patience, without, and in haste. */
#include "rig.h"
#include "run/grave.h"
#include "sys/spawn.h"

static int start_child(const char *line)
{
    struct spawned child = {-1, -1};
    const int fds[] = {-1, -1, -1};
    char *const env[] = {NULL};
    const struct spawn_options o = {
        .path = "/bin/sh", .argv = RIG_SH(line), .env = env, .fds = fds, .n_fds = 3, .cwd_fd = -1};
    assert_int_equal(spawn_start(&o, &child), 0);
    return child.pidfd;
}

/* Runs the loop until the yard's handles are gone; how long it took. */
static uint64_t bury(const char *line, uint64_t patience_ms, bool hasten)
{
    uv_loop_t loop;
    struct list yard;
    list_init(&yard);
    assert_int_equal(uv_loop_init(&loop), 0);
    uint64_t began = rig_now_ms();
    grave_take(&yard, &loop, start_child(line), patience_ms);
    if (hasten)
        grave_hasten(&yard);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_true(list_empty(&yard));
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* reaped */
    return rig_now_ms() - began;
}

static void test_all_ways(void **state)
{
    (void)state;
    assert_true(bury("exec sleep 600", 0, false) < RIG_LIMIT_MS);
    assert_true(bury("exec sleep 600", 60, false) >= 60);
    assert_true(bury("exec sleep 600", 600000, true) < RIG_LIMIT_MS);
    assert_true(bury("exit 0", 600000, false) < RIG_LIMIT_MS); /* ends by itself: no waiting */
}

UNIT_MAIN(cmocka_unit_test(test_all_ways))
