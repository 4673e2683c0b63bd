/* run/remote: what is lost is said to be lost; what was not sent is said to be not done. The worker
 * is the one of this build, or a stream on which the test itself answers.
 */
#define RIG_REMOTE
#include "rig.h"

#include "wire/frame.h"
#include "wire/runmsg.h"

#include <sys/socket.h>

/* ---- a real worker ---- */

/* Its number: the only child of ours. */
static pid_t worker_of(void)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    return (pid_t)strtol(text, NULL, 10);
}

static void expect_lost(struct rig *rig, const char *id)
{
    autoanswer s = {0}, r = {0};
    runner_status(rig->runner, id, rig_on_status, &s);
    rig_until(rig, &s.arrived);
    assert_false(s.failed);
    assert_int_equal(s.status.state, RUN_EXITED);
    assert_int_equal(s.status.termination, RUN_END_LOST);
    assert_non_null(strstr(s.reason, "not known"));
    rig_read(rig, id, &(struct run_read){.cursor = 5}, &r);
    assert_false(r.failed);
    assert_true(r.lost);
    assert_int_equal(r.cursor, 5);
    assert_int_equal(r.status.termination, RUN_END_LOST);
}

/* Killed: who waits is told, what had ended keeps its end, the next command has a new worker. */
static void test_worker_is_killed(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig);
    char ended[64], live[64], next[64];
    autoanswer end = {0}, waits = {0}, again = {0};
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("exit 3")}, ended);
    rig_finish(&rig, ended, &end);
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("exec cat")}, live);
    struct run_read ask = {.process_id = live, .wait_ms = 60000};
    runner_read(rig.runner, &ask, rig_on_page, &waits);
    assert_int_equal(kill(worker_of(), SIGKILL), 0);
    rig_until(&rig, &waits.arrived);
    assert_false(waits.failed);
    assert_int_equal(waits.status.termination, RUN_END_LOST);
    expect_lost(&rig, live);
    autoanswer s = {0};
    runner_status(rig.runner, ended, rig_on_status, &s);
    rig_until(&rig, &s.arrived);
    assert_int_equal(s.status.termination, RUN_END_EXITED);
    assert_int_equal(s.status.exit_code, 3);
    autoanswer w = {0};
    rig_write(&rig, live, "x", 1, false, &w);
    assert_int_equal(w.err.code, ERR_RUNNER_UNAVAILABLE);
    rig_exec(&rig, &(struct run_exec){.argv = RIG_SH("exit 4")}, next);
    rig_finish(&rig, next, &again);
    assert_int_equal(again.status.exit_code, 4);
    expect_lost(&rig, live);
    rig_stop(&rig);
}

static void test_no_worker(void **state)
{
    (void)state;
    struct rig rig;
    struct err e = {0};
    rig_open(&rig);
    struct remote_options o = {.worker_bin = "/no/such/worker", .dir = rig.dir};
    assert_null(remote_runner_new(&rig.loop, &o, &e));
    assert_int_equal(e.code, ERR_RUNNER_UNAVAILABLE);
    o.worker_bin = NULL;
    assert_null(remote_runner_new(&rig.loop, &o, &e));
    assert_non_null(strstr(e.message, "--runner-socket"));
    o.socket = "/no/such/socket";
    assert_null(remote_runner_new(&rig.loop, &o, &e));
    o = (struct remote_options){.worker_bin = getenv("CODESPACE_RUNTIME_BIN"), .dir = "/tmp"};
    assert_null(remote_runner_new(&rig.loop, &o, &e));
    assert_non_null(strstr(e.message, "refused"));
    /* a program that is no worker */
    o = (struct remote_options){.worker_bin = "/bin/false", .dir = rig.dir};
    rig.runner = remote_runner_new(&rig.loop, &o, &e);
    assert_non_null(rig.runner);
    autoanswer a = {0};
    rig_exec_with(&rig, &(struct run_exec){.argv = RIG_SH("true")}, &a);
    assert_int_equal(a.err.code, ERR_RUNNER_UNAVAILABLE);
    assert_non_null(strstr(a.err.message, "nothing was done"));
    assert_string_equal(a.id, "");
    rig_stop(&rig);
}

/* ---- a stream on which the test answers ---- */

struct fake {
    struct rig rig;
    int fd; /* the worker's end, blocking */
    struct buf received;
};

static void fake_start(struct fake *f)
{
    int pair[2], none = -1;
    struct err e;
    *f = (struct fake){0};
    rig_open(&f->rig);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    const struct remote_options o = {0};
    f->rig.runner = remote_runner_over(&f->rig.loop, &pair[0], &none, &o, &e);
    assert_non_null(f->rig.runner);
    f->fd = pair[1];
}

static void fake_stop(struct fake *f)
{
    if (f->fd >= 0)
        close(f->fd);
    buf_fini(&f->received);
    rig_stop(&f->rig);
}

static void turn(struct fake *f)
{
    for (int i = 0; i < 3; i++)
        uv_run(&f->rig.loop, UV_RUN_NOWAIT);
}

/* The next request of ours. */
static void fake_next(struct fake *f, struct runmsg *ret)
{
    size_t len = 0;
    struct err e;
    turn(f);
    while (frame_look(&f->received, &len) != 1) {
        ssize_t n = recv(f->fd, buf_reserve(&f->received, 65536), 65536, MSG_DONTWAIT);
        if (n <= 0)
            fail_msg("no request came");
        buf_commit(&f->received, (size_t)n);
    }
    assert_int_equal(runmsg_read(buf_bytes(&f->received) + FRAME_HEAD, len, ret, &e), 0);
    frame_consume(&f->received, len);
}

static void fake_say_bytes(struct fake *f, const char *text, size_t n)
{
    autobuf out = BUF_INIT;
    size_t begun = frame_begin(&out);
    buf_put(&out, text, n);
    assert_int_equal(frame_end(&out, begun), 0);
    assert_int_equal(write(f->fd, buf_bytes(&out), out.len), (ssize_t)out.len);
    turn(f);
}

static void fake_say(struct fake *f, const char *text)
{
    fake_say_bytes(f, text, strlen(text));
}

#define RESULT(id, type, data)                                                                     \
    "{\"protocol\":5,\"kind\":\"response\",\"request_id\":\"" id "\",\"ok\":true,\"result\":{"     \
    "\"type\":\"" type "\",\"data\":" data "}}"

static void fake_welcome(struct fake *f)
{
    struct runmsg m;
    fake_next(f, &m);
    assert_int_equal(m.op, RUNMSG_HELLO);
    runmsg_fini(&m);
    fake_say(f, RESULT("hello", "hello", "{\"protocol\":5,\"worker_id\":\"w\"}"));
}

static void fake_exec(struct fake *f, struct rig_answer *a)
{
    struct run_exec x = {.ws = &f->rig.ws, .argv = RIG_SH("true"), .process_id = "proc-x"};
    runner_exec(f->rig.runner, &x, rig_on_exec, a);
}

/* Sent and not answered: not known. The id is told, and stays lost. */
static void test_lost_answer_is_unknown(void **state)
{
    (void)state;
    struct fake f;
    struct runmsg m;
    autoanswer a = {0}, w = {0};
    fake_start(&f);
    fake_welcome(&f);
    fake_exec(&f, &a);
    runner_write(f.rig.runner, "proc-x", "y", 1, false, rig_on_done, &w);
    fake_next(&f, &m);
    assert_int_equal(m.op, RUNMSG_EXEC);
    runmsg_fini(&m);
    close(f.fd);
    f.fd = -1;
    rig_until(&f.rig, &a.arrived);
    assert_true(a.failed);
    assert_int_equal(a.err.code, ERR_RUNNER_LOST);
    assert_int_equal(w.err.code, ERR_RUNNER_LOST);
    expect_lost(&f.rig, "proc-x");
    fake_stop(&f);
}

/* Not sent, because there was no welcome yet: nothing was done. */
static void test_never_sent_is_not_done(void **state)
{
    (void)state;
    struct fake f;
    autoanswer a = {0}, s = {0};
    fake_start(&f);
    fake_exec(&f, &a);
    turn(&f);
    close(f.fd);
    f.fd = -1;
    rig_until(&f.rig, &a.arrived);
    assert_int_equal(a.err.code, ERR_RUNNER_UNAVAILABLE);
    assert_string_equal(a.id, "");
    runner_status(f.rig.runner, "proc-x", rig_on_status, &s);
    rig_until(&f.rig, &s.arrived);
    assert_true(s.failed); /* there never was one */
    fake_stop(&f);
}

static void test_answers_in_any_order(void **state)
{
    (void)state;
    struct fake f;
    struct runmsg m;
    autoanswer one = {0}, two = {0}, three = {0};
    fake_start(&f);
    fake_welcome(&f);
    runner_write(f.rig.runner, "a", "1", 1, false, rig_on_done, &one);
    runner_write(f.rig.runner, "b", "2", 1, false, rig_on_done, &two);
    runner_write(f.rig.runner, "c", "3", 1, false, rig_on_done, &three);
    for (int i = 0; i < 3; i++) {
        fake_next(&f, &m);
        runmsg_fini(&m);
    }
    fake_say(&f, RESULT("r-3", "write", "{}"));
    assert_true(three.arrived && !one.arrived && !two.arrived);
    fake_say(&f, RESULT("r-3", "write", "{}")); /* twice: nobody waits for it any more */
    fake_say(&f, RESULT("r-99", "write", "{}"));
    fake_say(&f, "{\"protocol\":5,\"kind\":\"response\",\"request_id\":\"r-1\",\"ok\":false,"
                 "\"error\":{\"code\":\"STDIN_FULL\",\"sys\":0,\"message\":\"full\"}}");
    assert_int_equal(one.err.code, ERR_STDIN_FULL);
    fake_say(&f, RESULT("r-2", "write", "{}"));
    assert_true(two.arrived && !two.failed);
    fake_stop(&f);
}

/* An exec that was cancelled and started all the same is ended. */
static void test_cancelled_too_late(void **state)
{
    (void)state;
    struct fake f;
    struct runmsg m;
    autoanswer a = {0};
    fake_start(&f);
    fake_welcome(&f);
    struct run_exec x = {.ws = &f.rig.ws, .argv = RIG_SH("true"), .process_id = "proc-x"};
    run_ticket t = runner_exec(f.rig.runner, &x, rig_on_exec, &a);
    fake_next(&f, &m);
    runmsg_fini(&m);
    runner_cancel(f.rig.runner, t);
    fake_next(&f, &m);
    assert_int_equal(m.op, RUNMSG_CANCEL);
    assert_string_equal(((struct runmsg_replay *)m.data)->request_id, "r-1");
    runmsg_fini(&m);
    fake_say(&f, RESULT("r-1", "exec", "{\"process_id\":\"proc-x\"}"));
    fake_next(&f, &m);
    assert_int_equal(m.op, RUNMSG_TERMINATE);
    runmsg_fini(&m);
    assert_false(a.arrived);
    fake_stop(&f);
}

/* What is no answer ends the stream, and nothing is believed. */
static void test_bad_answers(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "nonsense",
        "{\"protocol\":6}",
        RESULT("r-1", "status", "{\"process_id\":\"a\"}"), /* to a write */
        RESULT("r-1", "write", "{\"x\":1}"),
        ("{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"r-1\",\"op\":{\"op\":\"ping\","
         "\"data\":{}}}"),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake f;
        struct runmsg m;
        autoanswer a = {0};
        fake_start(&f);
        fake_welcome(&f);
        runner_write(f.rig.runner, "a", "1", 1, false, rig_on_done, &a);
        fake_next(&f, &m);
        runmsg_fini(&m);
        fake_say(&f, rows[i]);
        rig_until(&f.rig, &a.arrived);
        assert_int_equal(a.err.code, ERR_RUNNER_LOST);
        fake_stop(&f);
    }
}

static void test_refused_welcome(void **state)
{
    (void)state;
    static const char *const rows[] = {
        RESULT("hello", "hello", "{\"protocol\":4,\"worker_id\":\"w\"}"),
        RESULT("hello", "ping", "{}"),
        ("{\"protocol\":5,\"kind\":\"response\",\"request_id\":\"hello\",\"ok\":false,\"error\":{"
         "\"code\":\"INVALID_REQUEST\",\"sys\":0,\"message\":\"no\"}}"),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake f;
        autoanswer a = {0};
        fake_start(&f);
        fake_exec(&f, &a);
        fake_say(&f, rows[i]);
        if (!a.arrived) /* it may be that it does not know our hello, and is greeted again */
            fake_say(&f, rows[i]);
        rig_until(&f.rig, &a.arrived);
        assert_int_equal(a.err.code, ERR_RUNNER_UNAVAILABLE);
        fake_stop(&f);
    }
}

/* An event that is told twice, or about nobody, changes nothing; the first end counts. */
static void test_exit_events(void **state)
{
    (void)state;
    struct fake f;
    struct runmsg m;
    autoanswer a = {0}, s = {0};
    fake_start(&f);
    fake_welcome(&f);
    fake_exec(&f, &a);
    fake_next(&f, &m);
    runmsg_fini(&m);
    fake_say(&f, RESULT("r-1", "exec", "{\"process_id\":\"proc-x\"}"));
    static const char event[] = "{\"protocol\":5,\"kind\":\"event\",\"event\":{\"type\":"
                                "\"process_exited\",\"data\":{\"process_id\":\"%s\",\"state\":1,"
                                "\"termination\":1,\"exit_code\":%d}}}";
    static const struct {
        const char *id;
        int code;
    } rows[] = {{"proc-other", 1}, {"proc-x", 7}, {"proc-x", 9}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[256];
        snprintf(text, sizeof(text), event, rows[i].id, rows[i].code);
        fake_say(&f, text);
    }
    close(f.fd);
    f.fd = -1;
    turn(&f);
    runner_status(f.rig.runner, "proc-x", rig_on_status, &s);
    rig_until(&f.rig, &s.arrived);
    assert_int_equal(s.status.termination, RUN_END_EXITED);
    assert_int_equal(s.status.exit_code, 7);
    fake_stop(&f);
}

/* ---- an exec with its first read ---- */

struct starter {
    struct fake *f;
    struct run_read first, then;
    struct rig_answer started, page;
};

static void on_starter(void *user, const char *id, const struct err *failure)
{
    struct starter *s = user;
    rig_on_exec(&s->started, id, failure);
    s->then.process_id = id;
    if (failure == NULL)
        runner_read(s->f->rig.runner, &s->then, rig_on_page, &s->page);
}

/* Start it with that read, and read it again from inside its answer. */
static run_ticket starter_exec(struct starter *s, struct fake *f, struct runmsg *ret)
{
    *s = (struct starter){.f = f, .first = {.wait_ms = 60000, .until_exit = true}};
    s->then = s->first;
    struct run_exec x = {
        .ws = &f->rig.ws, .argv = RIG_SH("true"), .process_id = "proc-x", .first = &s->first};
    run_ticket ticket = runner_exec(f->rig.runner, &x, on_starter, s);
    fake_next(f, ret);
    assert_int_equal(ret->op, RUNMSG_EXEC);
    return ticket;
}

static void fake_welcome_level(struct fake *f)
{
    struct runmsg m;
    fake_next(f, &m);
    assert_int_equal(m.op, RUNMSG_HELLO);
    assert_int_equal(((struct runmsg_hello *)m.data)->level, RUNMSG_LEVEL);
    runmsg_fini(&m);
    fake_say(f, RESULT("hello", "hello", "{\"protocol\":5,\"worker_id\":\"w\",\"level\":1}"));
}

static void expect_nothing_asked(struct fake *f)
{
    char byte;
    turn(f);
    assert_int_equal(f->received.len, 0);
    assert_int_equal(recv(f->fd, &byte, 1, MSG_DONTWAIT), -1);
}

static const char ended_with_its_start[] =
    RESULT("r-1", "exec",
           "{\"process_id\":\"proc-x\",\"page\":{\"n_bytes\":2,\"cursor\":2,\"status\":{"
           "\"process_id\":\"proc-x\",\"state\":1,\"termination\":1,\"exit_code\":7}}}") "\0hi";

/* One answer is the start, the output and the end; no event is needed for that to last. */
static void test_start_and_end_in_one(void **state)
{
    (void)state;
    struct fake f;
    struct runmsg m;
    struct starter s;
    autoanswer status = {0};
    fake_start(&f);
    fake_welcome_level(&f);
    starter_exec(&s, &f, &m);
    const struct runmsg_exec *x = m.data;
    assert_true(x->has_first && x->first.until_exit);
    assert_int_equal(x->first.wait_ms, 60000);
    assert_int_equal(x->hold_ms, REMOTE_HOLD_MS);
    runmsg_fini(&m);
    fake_say_bytes(&f, ended_with_its_start, sizeof(ended_with_its_start) - 1);
    assert_true(s.started.arrived && s.page.arrived && !s.page.failed);
    assert_int_equal(s.page.bytes.len, 2);
    assert_memory_equal(buf_bytes(&s.page.bytes), "hi", 2);
    assert_int_equal(s.page.status.exit_code, 7);
    expect_nothing_asked(&f);
    close(f.fd);
    f.fd = -1;
    turn(&f);
    runner_status(f.rig.runner, "proc-x", rig_on_status, &status);
    rig_until(&f.rig, &status.arrived);
    assert_int_equal(status.status.termination, RUN_END_EXITED);
    assert_int_equal(status.status.exit_code, 7);
    rig_answer_fini(&s.page);
    fake_stop(&f);
}

/* The data limit of a search is not for a worker that knows only level 1; an operator's is not
 * taken off. */
static void test_limits_by_level(void **state)
{
    (void)state;
    static const char *const ids[] = {"own-x", "proc-x"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct fake f;
        struct runmsg m;
        struct starter s = {0};
        fake_start(&f);
        fake_welcome_level(&f);
        f.rig.ws.limits.data = 5;
        const struct run_exec x = {.ws = &f.rig.ws, .argv = RIG_SH("true"), .process_id = ids[i]};
        runner_exec(f.rig.runner, &x, on_starter, &s);
        fake_next(&f, &m);
        assert_int_equal(m.op, RUNMSG_EXEC);
        assert_int_equal(((const struct runmsg_exec *)m.data)->workspace.limits.data, i * 5);
        runmsg_fini(&m);
        fake_stop(&f);
    }
}

/* What came along is for the read that was named, and for that one only. */
static void test_first_is_not_another_read(void **state)
{
    (void)state;
    struct fake f;
    struct runmsg m;
    struct starter s;
    fake_start(&f);
    fake_welcome_level(&f);
    starter_exec(&s, &f, &m);
    runmsg_fini(&m);
    s.then.cursor = 1;
    fake_say_bytes(&f, ended_with_its_start, sizeof(ended_with_its_start) - 1);
    assert_true(s.started.arrived && !s.page.arrived);
    fake_next(&f, &m);
    assert_int_equal(m.op, RUNMSG_READ);
    assert_int_equal(((struct runmsg_read *)m.data)->wait_ms, 60000);
    runmsg_fini(&m);
    fake_stop(&f);
    rig_answer_fini(&s.page);
}

/* It takes longer: the read follows, with what is left of its wait. */
static void test_first_follows(void **state)
{
    (void)state;
    struct fake f;
    struct runmsg m;
    struct starter s;
    fake_start(&f);
    fake_welcome_level(&f);
    starter_exec(&s, &f, &m);
    runmsg_fini(&m);
    fake_say(&f, RESULT("r-1", "exec", "{\"process_id\":\"proc-x\"}"));
    assert_true(s.started.arrived && !s.page.arrived);
    fake_next(&f, &m);
    assert_int_equal(m.op, RUNMSG_READ);
    assert_int_equal(((struct runmsg_read *)m.data)->wait_ms, 60000 - REMOTE_HOLD_MS);
    runmsg_fini(&m);
    fake_stop(&f);
    rig_answer_fini(&s.page);
}

/* Cancelled, and its answer was under way: ended, and its end is known. */
static void test_first_comes_too_late(void **state)
{
    (void)state;
    struct fake f;
    struct runmsg m;
    struct starter s;
    autoanswer status = {0};
    fake_start(&f);
    fake_welcome_level(&f);
    run_ticket ticket = starter_exec(&s, &f, &m);
    runmsg_fini(&m);
    runner_cancel(f.rig.runner, ticket);
    fake_next(&f, &m);
    assert_int_equal(m.op, RUNMSG_CANCEL);
    runmsg_fini(&m);
    fake_say_bytes(&f, ended_with_its_start, sizeof(ended_with_its_start) - 1);
    assert_false(s.started.arrived);
    fake_next(&f, &m);
    assert_int_equal(m.op, RUNMSG_TERMINATE);
    runmsg_fini(&m);
    close(f.fd);
    f.fd = -1;
    turn(&f);
    runner_status(f.rig.runner, "proc-x", rig_on_status, &status);
    rig_until(&f.rig, &status.arrived);
    assert_int_equal(status.status.exit_code, 7);
    fake_stop(&f);
}

/* The worker goes while it holds the answer: whether the command ran is not known. */
static void test_lost_while_held(void **state)
{
    (void)state;
    struct fake f;
    struct runmsg m;
    struct starter s;
    fake_start(&f);
    fake_welcome_level(&f);
    starter_exec(&s, &f, &m);
    runmsg_fini(&m);
    close(f.fd);
    f.fd = -1;
    rig_until(&f.rig, &s.started.arrived);
    assert_int_equal(s.started.err.code, ERR_RUNNER_LOST);
    assert_false(s.page.arrived);
    expect_lost(&f.rig, "proc-x");
    fake_stop(&f);
}

/* One that refuses our hello is greeted as its time did it, and never sent what it cannot know. */
static void test_older_worker(void **state)
{
    (void)state;
    struct fake f;
    struct runmsg m;
    struct starter s;
    fake_start(&f);
    fake_next(&f, &m);
    assert_int_equal(((struct runmsg_hello *)m.data)->level, RUNMSG_LEVEL);
    runmsg_fini(&m);
    fake_say(&f, "{\"protocol\":5,\"kind\":\"response\",\"request_id\":\"hello\",\"ok\":false,"
                 "\"error\":{\"code\":\"INVALID_REQUEST\",\"sys\":0,\"message\":\"unknown\"}}");
    fake_next(&f, &m);
    assert_int_equal(m.op, RUNMSG_HELLO);
    assert_int_equal(((struct runmsg_hello *)m.data)->level, 0);
    runmsg_fini(&m);
    fake_say(&f, RESULT("hello", "hello", "{\"protocol\":5,\"worker_id\":\"w\"}"));
    starter_exec(&s, &f, &m);
    assert_false(((struct runmsg_exec *)m.data)->has_first);
    assert_int_equal(((struct runmsg_exec *)m.data)->hold_ms, 0);
    runmsg_fini(&m);
    fake_say(&f, RESULT("r-1", "exec", "{\"process_id\":\"proc-x\"}"));
    fake_next(&f, &m);
    assert_int_equal(m.op, RUNMSG_READ);
    assert_int_equal(((struct runmsg_read *)m.data)->wait_ms, 60000);
    runmsg_fini(&m);
    fake_stop(&f);
    rig_answer_fini(&s.page);
}

/* One of another version says so and hangs up: that is the reason, not the hanging up. */
static void test_refused_and_hung_up(void **state)
{
    (void)state;
    struct fake f;
    autoanswer a = {0};
    fake_start(&f);
    fake_exec(&f, &a);
    fake_say(&f, "{\"protocol\":5,\"kind\":\"response\",\"request_id\":\"hello\",\"ok\":false,"
                 "\"error\":{\"code\":\"INVALID_REQUEST\",\"sys\":0,\"message\":\"too new\"}}");
    close(f.fd);
    f.fd = -1;
    rig_until(&f.rig, &a.arrived);
    assert_int_equal(a.err.code, ERR_RUNNER_UNAVAILABLE);
    assert_non_null(strstr(a.err.message, "too new"));
    fake_stop(&f);
}

/* The real one: what ends at once, and what does not. */
static void test_first_with_a_worker(void **state)
{
    (void)state;
    struct fake f = {0};
    rig_start(&f.rig);
    static const struct {
        const char *line;
        const char *output;
    } rows[] = {{"echo hi; exit 3", "hi\n"}, {"sleep 0.1; echo late; exit 3", "late\n"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct starter s = {.f = &f, .first = {.wait_ms = 60000, .until_exit = true}};
        s.then = s.first;
        struct run_exec x = {.ws = &f.rig.ws, .argv = RIG_SH(rows[i].line), .first = &s.first};
        runner_exec(f.rig.runner, &x, on_starter, &s);
        rig_until(&f.rig, &s.started.arrived);
        rig_until(&f.rig, &s.page.arrived);
        assert_false(s.page.failed);
        assert_int_equal(s.page.status.exit_code, 3);
        assert_string_equal(buf_cstr(&s.page.bytes), rows[i].output);
        rig_answer_fini(&s.page);
    }
    rig_stop(&f.rig);
}

UNIT_MAIN(cmocka_unit_test(test_worker_is_killed), cmocka_unit_test(test_no_worker),
          cmocka_unit_test(test_lost_answer_is_unknown),
          cmocka_unit_test(test_never_sent_is_not_done),
          cmocka_unit_test(test_answers_in_any_order), cmocka_unit_test(test_cancelled_too_late),
          cmocka_unit_test(test_bad_answers), cmocka_unit_test(test_refused_welcome),
          cmocka_unit_test(test_exit_events), cmocka_unit_test(test_start_and_end_in_one),
          cmocka_unit_test(test_limits_by_level), cmocka_unit_test(test_first_is_not_another_read),
          cmocka_unit_test(test_first_follows), cmocka_unit_test(test_first_comes_too_late),
          cmocka_unit_test(test_lost_while_held), cmocka_unit_test(test_older_worker),
          cmocka_unit_test(test_refused_and_hung_up), cmocka_unit_test(test_first_with_a_worker))
