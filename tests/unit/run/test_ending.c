/* run on the host: signals, grace, silence, stop and continue; each end by its own name. */
#include "rig.h"

static void start_sh(struct rig *rig, const char *line, const struct run_exec *more, char id[64])
{
    struct run_exec x = *more;
    x.argv = RIG_SH(line);
    rig_exec(rig, &x, id);
    rig_expect(rig, id, "ready\n");
}

static void terminate_by(struct rig *rig, const char *id, const struct run_terminate *how)
{
    autoanswer a = {0};
    runner_terminate_by(rig->runner, id, how, rig_on_done, &a);
    rig_until(rig, &a.arrived);
    assert_false(a.failed);
}

static enum err_code send_signal(struct rig *rig, const char *id, int signal)
{
    autoanswer a = {0};
    runner_signal(rig->runner, id, signal, rig_on_done, &a);
    rig_until(rig, &a.arrived);
    return a.failed ? a.err.code : ERR_NONE;
}

/* The signal that was asked for comes first, and the grace is as long as asked. */
static void test_signal_and_grace(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    autoanswer a = {0};
    start_sh(&rig, "trap 'echo int; exit 3' INT; echo ready; while :; do sleep 0.05; done",
             &(struct run_exec){0}, id);
    terminate_by(&rig, id, &(struct run_terminate){SIGINT, true, RUN_GRACE_MAX_MS});
    rig_finish(&rig, id, &a);
    assert_string_equal(buf_bytes(&a.bytes), "ready\nint\n");
    assert_int_equal(a.status.termination, RUN_END_TERMINATED);

    autoanswer b = {0};
    start_sh(&rig, "trap '' TERM; echo ready; while :; do sleep 0.05; done", &(struct run_exec){0},
             id);
    terminate_by(&rig, id, &(struct run_terminate){SIGTERM, true, RUN_GRACE_MAX_MS});
    terminate_by(&rig, id, &(struct run_terminate){SIGKILL, false, 0}); /* does not wait for it */
    rig_finish(&rig, id, &b);
    assert_int_equal(b.status.termination, RUN_END_TERMINATED);
    rig_stop(&rig);
}

/* No grace asked: KILL follows at once. */
static void test_no_grace(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    autoanswer a = {0};
    start_sh(&rig, "trap '' TERM; echo ready; exec sleep 600", &(struct run_exec){0}, id);
    terminate_by(&rig, id, &(struct run_terminate){0, true, 0});
    rig_finish(&rig, id, &a);
    assert_int_equal(a.status.termination, RUN_END_TERMINATED);
    rig_stop(&rig);
}

/* Speaks six times, each well within the time that is allowed, then never again; true when this
 * machine let it speak in time. */
static bool falls_silent(struct rig *rig, uint64_t idle_ms)
{
    char id[64];
    autoanswer a = {0};
    autofree char *line = mem_printf("for i in 1 2 3 4 5 6; do sleep %.3f; echo $i; done; echo "
                                     "ready; exec sleep 600",
                                     (double)idle_ms / 4000);
    rig_exec(rig, &(struct run_exec){.argv = RIG_SH(line), .idle_timeout_ms = idle_ms}, id);
    rig_finish(rig, id, &a);
    assert_int_equal(a.status.termination, RUN_END_LIMIT);
    assert_non_null(strstr(a.reason, "idle_timeout_ms"));
    if (strstr(buf_bytes(&a.bytes), "ready\n") == NULL)
        return false;
    assert_true(a.status.ended_ms - a.status.started_ms >= idle_ms * 2);
    return true;
}

static void test_silence(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    uint64_t idle_ms = 400;
    while (!falls_silent(&rig, idle_ms)) {
        idle_ms *= 2;
        assert_true(idle_ms < RIG_LIMIT_MS);
    }
    autoanswer b = {0};
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("echo x"), .idle_timeout_ms = RIG_LIMIT_MS},
             id);
    rig_finish(&rig, id, &b);
    assert_int_equal(b.status.termination, RUN_END_EXITED);
    rig_stop(&rig);
}

/* What is stopped can still be ended by asking. */
static void test_stop_and_continue(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    start_sh(&rig, "trap 'echo bye; exit' TERM; echo ready; while :; do sleep 0.05; done",
             &(struct run_exec){0}, id);
    assert_int_equal(send_signal(&rig, id, SIGSTOP), ERR_NONE);
    autoanswer s = {0};
    runner_status(rig.runner, id, rig_on_status, &s);
    rig_until(&rig, &s.arrived);
    assert_true(s.status.stopped);
    uint64_t sequence = s.status.sequence;
    assert_int_equal(send_signal(&rig, id, SIGCONT), ERR_NONE);
    autoanswer t = {0};
    runner_status(rig.runner, id, rig_on_status, &t);
    rig_until(&rig, &t.arrived);
    assert_false(t.status.stopped);
    assert_true(t.status.sequence > sequence);
    assert_int_equal(send_signal(&rig, id, SIGSTOP), ERR_NONE);
    terminate_by(&rig, id, &(struct run_terminate){0, true, RUN_GRACE_MAX_MS});
    autoanswer a = {0};
    rig_finish(&rig, id, &a);
    assert_non_null(strstr(buf_bytes(&a.bytes), "bye\n"));
    rig_stop(&rig);
}

static void test_signals_are_checked(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char id[64];
    autoanswer a = {0};
    start_sh(&rig, "echo ready; exec sleep 600", &(struct run_exec){0}, id);
    assert_int_equal(send_signal(&rig, id, 0), ERR_INVALID_ARGUMENT);
    assert_int_equal(send_signal(&rig, id, 65), ERR_INVALID_ARGUMENT);
    assert_int_equal(send_signal(&rig, "proc-none", 1), ERR_PROCESS_NOT_FOUND);
    assert_int_equal(send_signal(&rig, id, SIGUSR1), ERR_NONE);
    rig_finish(&rig, id, &a);
    assert_int_equal(a.status.termination, RUN_END_SIGNALED); /* the command's own end */
    assert_int_equal(a.status.signal, SIGUSR1);
    assert_int_equal(send_signal(&rig, id, SIGTERM), ERR_PROCESS_NOT_RUNNING);
    rig_stop(&rig);
}

static void test_keep_is_refused(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    if (rig.helper != NULL) { /* in the sandbox it is honoured: test_keep.c */
        rig_stop(&rig);
        return;
    }
    autoanswer a = {0};
    rig_exec_with(
        &rig, &(struct run_exec){.argv = RIG_SH("touch ran"), .background = RUN_BACKGROUND_KEEP},
        &a);
    assert_true(a.failed);
    assert_int_equal(a.err.code, ERR_INVALID_COMMAND);
    assert_non_null(strstr(a.err.message, "nothing was run"));
    autofree char *ran = mem_printf("%s/ran", rig.ws.root);
    assert_int_equal(access(ran, F_OK), -1);
    rig_stop(&rig);
}

UNIT_MAIN(cmocka_unit_test(test_signal_and_grace), cmocka_unit_test(test_no_grace),
          cmocka_unit_test(test_silence), cmocka_unit_test(test_stop_and_continue),
          cmocka_unit_test(test_signals_are_checked), cmocka_unit_test(test_keep_is_refused))
