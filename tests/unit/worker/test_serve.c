/* worker: what it answers, in which order, and what it does with what is none of its protocol. */
#include "peer.h"

#include "core/registry.h"
#include "run/runner.h"

#if defined(__SANITIZE_ADDRESS__)
#define INSTRUMENTED_BYTES (1ul << 30)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define INSTRUMENTED_BYTES (1ul << 30)
#endif
#endif
#ifndef INSTRUMENTED_BYTES
#define INSTRUMENTED_BYTES 0ul
#endif

#define EXEC(id, line)                                                                             \
    "{\"workspace\":{\"id\":\"w\",\"root\":\"/tmp\"},\"process_id\":\"" id                         \
    "\",\"argv\":[\"/bin/sh\","                                                                    \
    "\"-c\",\"" line "\"]}"

static void start(struct peer *p)
{
    peer_listen(p, NULL);
    peer_connect(p);
    peer_hello(p);
}

static void expect(struct peer *p, const char *id, enum runmsg_op op, struct runmsg *ret)
{
    assert_true(peer_next(p, ret));
    if (ret->failed)
        fail_msg("%s: %s", id, ret->failure.message);
    assert_int_equal(ret->op, op);
    if (id != NULL)
        assert_string_equal(ret->request_id, id);
}

static void test_run_and_exit_event(void **state)
{
    (void)state;
    struct peer p;
    struct runmsg m;
    start(&p);
    peer_ask(&p, "1", "exec", EXEC("proc-a", "echo hi; exit 3"));
    expect(&p, "1", RUNMSG_EXEC, &m);
    assert_string_equal(((struct runmsg_id *)m.data)->process_id, "proc-a");
    runmsg_fini(&m);
    assert_true(peer_next(&p, &m));
    assert_int_equal(m.kind, RUNMSG_EVENT);
    struct runmsg_status *s = m.data;
    assert_string_equal(s->process_id, "proc-a");
    assert_int_equal(s->exit_code, 3);
    assert_true(s->sequence >= 2);
    runmsg_fini(&m);
    peer_ask(&p, "2", "read", "{\"process_id\":\"proc-a\"}");
    expect(&p, "2", RUNMSG_READ, &m);
    assert_memory_equal(buf_bytes(&((struct runmsg_page *)m.data)->bytes), "hi\n", 3);
    runmsg_fini(&m);
    assert_int_equal(peer_end(&p), 0);
}

/* ---- an exec with its first read ---- */

#define HELD(id, line, first, hold)                                                                \
    "{\"workspace\":{\"id\":\"w\",\"root\":\"/tmp\"},\"process_id\":\"" id                         \
    "\",\"argv\":[\"/bin/sh\",\"-c\",\"" line "\"],\"first\":{" first "},\"hold_ms\":" hold "}"
#define TO_THE_END "\"until_exit\":true,\"wait_ms\":600000"

static const struct runmsg_started *expect_started(struct peer *p, const char *id,
                                                   struct runmsg *ret, bool has_page)
{
    expect(p, id, RUNMSG_EXEC, ret);
    const struct runmsg_started *s = ret->data;
    assert_int_equal(s->has_page, has_page);
    return s;
}

static void expect_pong(struct peer *p)
{
    struct runmsg m;
    peer_ask(p, "pong", "ping", "{}");
    expect(p, "pong", RUNMSG_PING, &m);
    runmsg_fini(&m);
}

/* One message each way, and it stands for the event; asked for again it is the same. */
static void test_first_comes_with_the_start(void **state)
{
    (void)state;
    struct peer p;
    struct runmsg m;
    start(&p);
    peer_ask(&p, "1", "exec", HELD("a", "echo hi; exit 3", TO_THE_END, "600000"));
    for (int i = 0; i < 2; i++) {
        const struct runmsg_started *s = expect_started(&p, i == 0 ? "1" : "2", &m, true);
        assert_string_equal(s->process_id, "a");
        assert_int_equal(s->page.status.state, 1);
        assert_int_equal(s->page.status.exit_code, 3);
        assert_int_equal(s->page.bytes.len, 3);
        assert_memory_equal(buf_bytes(&s->page.bytes), "hi\n", 3);
        runmsg_fini(&m);
        if (i == 0)
            peer_ask(&p, "2", "replay", "{\"request_id\":\"1\"}");
    }
    expect_pong(&p);
    assert_int_equal(peer_end(&p), 0);
}

/* A process without a name in its request gets one, and its first read is of it. */
static void test_first_of_a_nameless_process(void **state)
{
    (void)state;
    struct peer p;
    struct runmsg m;
    start(&p);
    peer_ask(&p, "1", "exec",
             "{\"workspace\":{\"id\":\"w\",\"root\":\"/tmp\"},\"argv\":[\"/bin/true\"],\"first\":{"
             "\"until_exit\":true,\"wait_ms\":600000},\"hold_ms\":600000}");
    const struct runmsg_started *s = expect_started(&p, "1", &m, true);
    assert_string_equal(s->process_id, s->page.status.process_id);
    runmsg_fini(&m);
    peer_ask(&p, "2", "exec",
             "{\"workspace\":{\"id\":\"w\",\"root\":\"/no/such\"},\"argv\":"
             "[\"/bin/true\"],\"first\":{},\"hold_ms\":600000}");
    peer_expect_failure(&p, "2", ERR_PROCESS_SPAWN_FAILED);
    assert_int_equal(peer_end(&p), 0);
}

/* The read is not answered in time: the start is told alone, and the end as an event. */
static void test_first_is_not_ready(void **state)
{
    (void)state;
    struct peer p;
    struct runmsg m;
    start(&p);
    peer_ask(&p, "1", "exec", HELD("a", "exec cat", TO_THE_END, "1"));
    expect_started(&p, "1", &m, false);
    runmsg_fini(&m);
    peer_ask(&p, "2", "write", "{\"process_id\":\"a\",\"eof\":true}");
    expect(&p, "2", RUNMSG_WRITE, &m);
    runmsg_fini(&m);
    assert_true(peer_next(&p, &m));
    assert_int_equal(m.kind, RUNMSG_EVENT);
    assert_string_equal(((struct runmsg_status *)m.data)->process_id, "a");
    runmsg_fini(&m);
    assert_int_equal(peer_end(&p), 0);
}

/* Its own wait was over, or it asked for output: answered while the command runs. */
static void test_first_while_it_runs(void **state)
{
    (void)state;
    struct peer p;
    struct runmsg m;
    start(&p);
    peer_ask(&p, "1", "exec", HELD("a", "exec cat", "\"until_exit\":true,\"wait_ms\":1", "600000"));
    const struct runmsg_started *s = expect_started(&p, "1", &m, true);
    assert_int_equal(s->page.status.state, 0);
    runmsg_fini(&m);
    peer_ask(&p, "2", "exec", HELD("b", "echo hi; exec cat", "\"wait_ms\":600000", "600000"));
    s = expect_started(&p, "2", &m, true);
    assert_int_equal(s->page.status.state, 0);
    assert_int_equal(s->page.bytes.len, 3);
    runmsg_fini(&m);
    assert_int_equal(peer_end(&p), 0);
}

/* It was started and nobody was told: it goes with the request. */
static void test_first_is_cancelled(void **state)
{
    (void)state;
    struct peer p;
    struct runmsg m;
    start(&p);
    peer_ask(&p, "1", "exec", HELD("a", "echo up; exec cat", TO_THE_END, "600000"));
    peer_ask(&p, "2", "read", "{\"process_id\":\"a\",\"wait_ms\":600000}");
    expect(&p, "2", RUNMSG_READ, &m); /* so it runs */
    runmsg_fini(&m);
    peer_ask(&p, "3", "cancel", "{\"request_id\":\"1\"}");
    peer_expect_failure(&p, "1", ERR_CANCELLED);
    expect(&p, "3", RUNMSG_CANCEL, &m);
    runmsg_fini(&m);
    assert_true(peer_next(&p, &m));
    assert_int_equal(m.kind, RUNMSG_EVENT);
    assert_int_equal(((struct runmsg_status *)m.data)->termination, RUN_END_TERMINATED);
    runmsg_fini(&m);
    assert_int_equal(peer_end(&p), 0);
}

/* A welcome says what both know, and nothing to one that does not ask. */
static void test_levels(void **state)
{
    (void)state;
    static const struct {
        const char *hello;
        uint64_t level;
    } rows[] = {{"{}", 0}, {"{\"level\":1}", 1}, {"{\"level\":99}", RUNMSG_LEVEL}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct peer p;
        struct runmsg m;
        peer_listen(&p, NULL);
        peer_connect(&p);
        peer_ask(&p, "h", "hello", rows[i].hello);
        expect(&p, "h", RUNMSG_HELLO, &m);
        assert_int_equal(((struct runmsg_welcome *)m.data)->level, rows[i].level);
        runmsg_fini(&m);
        assert_int_equal(peer_end(&p), 0);
    }
}

/* New rules for a workspace of which nothing runs with a network: nobody is left out. Rules that
 * are none change nothing, and a workspace whose rules change stays one. */
static void test_rules(void **state)
{
    (void)state;
    struct peer p;
    struct runmsg m;
    start(&p);
    peer_ask(&p, "1", "rules",
             "{\"workspace_id\":\"w\",\"egress\":\"{\\\"allow\\\":[\\\"a.test\\\"]}\"}");
    expect(&p, "1", RUNMSG_RULES, &m);
    struct runmsg_ruled *r = m.data;
    assert_int_equal(r->changed.len + r->others.len, 0);
    runmsg_fini(&m);
    peer_ask(&p, "2", "rules", "{\"workspace_id\":\"w\",\"egress\":\"{\\\"alow\\\":[]}\"}");
    peer_expect_failure(&p, "2", ERR_CONFIG_INVALID);
    peer_ask(&p, "3", "rules", "{\"workspace_id\":\"w\"}");
    peer_expect_failure(&p, "3", ERR_INVALID_REQUEST);
    for (int i = 0; i < REGISTRY_WORKSPACES_MAX + 8; i++) {
        autofree char *data =
            mem_printf("{\"workspace\":{\"id\":\"w\",\"root\":\"/tmp\",\"network\":1,"
                       "\"egress\":\"{\\\"allow\\\":[\\\"h%d.test\\\"]}\"},\"argv\":"
                       "[\"/bin/true\"]}",
                       i);
        peer_ask(&p, "x", "exec", data);
        peer_expect_failure(&p, "x", ERR_PROCESS_SPAWN_FAILED); /* there is no sandbox here */
    }
    assert_int_equal(peer_end(&p), 0);
}

/* A slow request delays no other (L29, E31), and a cancelled one is answered, too. */
static void test_requests_side_by_side(void **state)
{
    (void)state;
    struct peer p;
    struct runmsg m;
    start(&p);
    peer_ask(&p, "1", "exec", EXEC("a", "exec cat"));
    expect(&p, "1", RUNMSG_EXEC, &m);
    runmsg_fini(&m);
    peer_ask(&p, "slow", "read", "{\"process_id\":\"a\",\"wait_ms\":600000}");
    peer_ask(&p, "slow", "ping", "{}");
    peer_expect_failure(&p, "slow", ERR_INVALID_REQUEST); /* that id is in use */
    peer_ask(&p, "quick", "ping", "{}");
    expect(&p, "quick", RUNMSG_PING, &m);
    runmsg_fini(&m);
    peer_ask(&p, "c", "cancel", "{\"request_id\":\"slow\"}");
    peer_expect_failure(&p, "slow", ERR_CANCELLED);
    expect(&p, "c", RUNMSG_CANCEL, &m);
    runmsg_fini(&m);
    assert_int_equal(peer_end(&p), 0);
}

static void test_replay(void **state)
{
    (void)state;
    struct peer p;
    struct runmsg m;
    start(&p);
    peer_ask(&p, "1", "exec", EXEC("a", "exec cat"));
    expect(&p, "1", RUNMSG_EXEC, &m);
    runmsg_fini(&m);
    peer_ask(&p, "2", "replay", "{\"request_id\":\"1\"}");
    expect(&p, "2", RUNMSG_EXEC, &m); /* the answer again, not the command */
    runmsg_fini(&m);
    peer_ask(&p, "3", "list", "{}");
    expect(&p, "3", RUNMSG_LIST, &m);
    assert_int_equal(((struct runmsg_listing *)m.data)->items.n, 1);
    runmsg_fini(&m);
    for (unsigned i = 0; i < RUNMSG_KEPT; i++) {
        char id[16];
        snprintf(id, sizeof(id), "p%u", i);
        peer_ask(&p, id, "ping", "{}");
        expect(&p, id, RUNMSG_PING, &m);
        runmsg_fini(&m);
    }
    peer_ask(&p, "4", "replay", "{\"request_id\":\"1\"}");
    peer_expect_failure(&p, "4", ERR_INVALID_ARGUMENT);
    assert_int_equal(peer_end(&p), 0);
}

static void test_another_version_is_answered_then_closed(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"protocol\":4,\"kind\":\"request\",\"request_id\":\"x\",\"op\":{\"op\":\"hello\","
        "\"data\":{}}}",
        "{\"protocol\":6,\"kind\":\"request\",\"request_id\":\"x\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct peer p;
        peer_listen(&p, NULL);
        peer_connect(&p);
        peer_text(&p, texts[i]);
        peer_expect_failure(&p, "x", ERR_INVALID_REQUEST);
        peer_expect_end(&p);
        assert_int_equal(peer_end(&p), 0);
    }
}

/* Answered and gone on, or answered and closed, or closed: never acted on. */
static void test_what_is_no_request(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum err_code code;
        bool closes;
    } rows[] = {
        {"not json", ERR_PARSE_ERROR, true},
        {"{\"protocol\":5,\"kind\":\"event\",\"event\":{\"type\":\"process_exited\",\"data\":{"
         "\"process_id\":\"a\"}}}",
         ERR_INVALID_REQUEST, true},
        {"{\"protocol\":5,\"kind\":\"request\",\"op\":{\"op\":\"ping\",\"data\":{}}}",
         ERR_INVALID_REQUEST, true},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"hello\","
         "\"data\":{}}}",
         ERR_INVALID_REQUEST, true},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\"}", ERR_INVALID_REQUEST, false},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"fly\","
         "\"data\":{}}}",
         ERR_METHOD_NOT_FOUND, false},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"status\","
         "\"data\":{\"process_id\":\"none\"}}}",
         ERR_PROCESS_NOT_FOUND, false},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"exec\","
         "\"data\":{\"workspace\":{\"id\":\"w\",\"root\":\"/no/such\"},\"argv\":[\"true\"]}}}",
         ERR_PROCESS_SPAWN_FAILED, false},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"exec\","
         "\"data\":{\"workspace\":{\"id\":\"w\",\"root\":\"/"
         "tmp\",\"ino\":1},\"argv\":[\"true\"]}}}",
         ERR_PROCESS_SPAWN_FAILED, false},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"exec\","
         "\"data\":{\"workspace\":{\"id\":\"w\",\"root\":\"/tmp\"},\"argv\":[]}}}",
         ERR_INVALID_COMMAND, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct peer p;
        struct runmsg m;
        start(&p);
        peer_text(&p, rows[i].text);
        peer_expect_failure(&p, NULL, rows[i].code);
        if (rows[i].closes) {
            peer_expect_end(&p);
        } else {
            peer_ask(&p, "still", "ping", "{}");
            expect(&p, "still", RUNMSG_PING, &m);
            runmsg_fini(&m);
        }
        assert_int_equal(peer_end(&p), 0);
    }
}

static void test_bad_frames_close(void **state)
{
    (void)state;
    static const char *const bytes[] = {"\0\0\0\0", "\xff\xff\xff\xff", "\x01\0\0\x01"};
    for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
        struct peer p;
        start(&p);
        peer_bytes(&p, bytes[i], 4);
        peer_expect_end(&p);
        assert_int_equal(peer_end(&p), 0);
    }
    struct peer p; /* half a frame, then the end */
    start(&p);
    peer_bytes(&p, "\0\0\x01\0{\"proto", 11);
    assert_int_equal(peer_end(&p), 0);
}

static void test_hello_comes_first(void **state)
{
    (void)state;
    struct peer p;
    peer_listen(&p, NULL);
    peer_connect(&p);
    peer_ask(&p, "1", "exec", EXEC("a", "touch /tmp/codespace-must-not-be"));
    peer_expect_failure(&p, "1", ERR_INVALID_REQUEST);
    peer_expect_end(&p);
    assert_int_equal(peer_end(&p), 0);
    assert_int_equal(access("/tmp/codespace-must-not-be", F_OK), -1);
}

/* One that asks and never reads: its answers pile up to a limit, then its questions wait. */
static void test_a_peer_that_does_not_read(void **state)
{
    (void)state;
    struct peer p;
    struct runmsg m;
    start(&p);
    peer_ask(&p, "1", "exec", EXEC("a", "head -c 300000 /dev/zero; exec cat"));
    expect(&p, "1", RUNMSG_EXEC, &m);
    runmsg_fini(&m);
    peer_ask(&p, "2", "read", "{\"process_id\":\"a\",\"cursor\":299000,\"wait_ms\":60000}");
    expect(&p, "2", RUNMSG_READ, &m);
    runmsg_fini(&m);
    assert_int_equal(fcntl(p.out, F_SETFL, O_NONBLOCK), 0);
    size_t asked = 0;
    for (int idle = 0; idle < 50;) { /* until it takes no more for half a second */
        char text[200];
        int n = snprintf(text + 4, sizeof(text) - 4,
                         "{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"r%06zu\",\"op\":{"
                         "\"op\":\"read\",\"data\":{\"process_id\":\"a\",\"max_bytes\":262144}}}",
                         asked);
        memcpy(text, (const char[]){0, 0, 0, (char)n}, 4);
        ssize_t done = write(p.out, text, (size_t)n + 4);
        if (done == n + 4) {
            asked++;
            idle = 0;
            continue;
        }
        assert_true(done < 0); /* small enough to go whole or not at all */
        usleep(10000);
        idle++;
    }
    char path[64], text[4096] = "";
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)p.pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    unsigned long pages = strtoul(strchr(text, ' '), NULL, 10);
    assert_true(asked > 100);
    /* resident: far less than that many answers; an instrumented worker keeps what it has freed */
    assert_true(pages * 4096 < (64ul << 20) + INSTRUMENTED_BYTES);
    assert_int_equal(peer_end(&p), 0);
}

static void test_stdio(void **state)
{
    (void)state;
    struct peer p;
    struct runmsg m;
    peer_stdio(&p);
    peer_hello(&p);
    /* the command gets neither of the protocol's descriptors */
    peer_ask(&p, "1", "exec", EXEC("a", "cat; ls /proc/self/fd | wc -l"));
    expect(&p, "1", RUNMSG_EXEC, &m);
    runmsg_fini(&m);
    peer_ask(&p, "2", "write", "{\"process_id\":\"a\",\"data\":\"YWJj\",\"eof\":true}");
    expect(&p, "2", RUNMSG_WRITE, &m);
    runmsg_fini(&m);
    assert_true(peer_next(&p, &m));
    assert_int_equal(m.kind, RUNMSG_EVENT);
    runmsg_fini(&m);
    peer_ask(&p, "3", "read", "{\"process_id\":\"a\"}");
    expect(&p, "3", RUNMSG_READ, &m);
    assert_string_equal(buf_cstr(&((struct runmsg_page *)m.data)->bytes), "abc4\n");
    runmsg_fini(&m);
    assert_int_equal(peer_end(&p), 0);
}

UNIT_MAIN(cmocka_unit_test(test_run_and_exit_event), cmocka_unit_test(test_requests_side_by_side),
          cmocka_unit_test(test_first_comes_with_the_start),
          cmocka_unit_test(test_first_of_a_nameless_process),
          cmocka_unit_test(test_first_is_not_ready), cmocka_unit_test(test_first_while_it_runs),
          cmocka_unit_test(test_first_is_cancelled), cmocka_unit_test(test_levels),
          cmocka_unit_test(test_rules), cmocka_unit_test(test_replay),
          cmocka_unit_test(test_another_version_is_answered_then_closed),
          cmocka_unit_test(test_what_is_no_request), cmocka_unit_test(test_bad_frames_close),
          cmocka_unit_test(test_hello_comes_first),
          cmocka_unit_test(test_a_peer_that_does_not_read), cmocka_unit_test(test_stdio))
