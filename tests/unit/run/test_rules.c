/* run/rules: a change is answered once, when every proxy has answered, ended or taken too long. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "run/rules.h"
#include "sys/fd.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROXIES 2

struct rig {
    uv_loop_t loop;
    struct anchor anchor;
    struct rules_book book;
    struct rules to[PROXIES];
    int theirs[PROXIES];
    unsigned answers, settled;
    bool last_in_force;
    char *last_policy;
    struct strv changed, others;
    char why[200];
};

static struct rig *the_rig; /* of on_settled(), which is told of a channel only */

static void on_settled(struct rules *r, bool in_force, const char *policy)
{
    (void)r;
    the_rig->settled++;
    the_rig->last_in_force = in_force;
    free(the_rig->last_policy);
    the_rig->last_policy = mem_strdup(policy);
}

static void on_done(void *user, const struct run_rules *outcome, const struct err *failure)
{
    struct rig *rig = user;
    assert_null(failure);
    rig->answers++;
    strv_fini(&rig->changed);
    strv_fini(&rig->others);
    for (size_t i = 0; outcome->changed[i] != NULL; i++)
        strv_add(&rig->changed, outcome->changed[i]);
    for (size_t i = 0; outcome->others[i] != NULL; i++)
        strv_add(&rig->others, outcome->others[i]);
    snprintf(rig->why, sizeof(rig->why), "%s", outcome->why);
}

static void start(struct rig *rig)
{
    *rig = (struct rig){0};
    the_rig = rig;
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    rules_book_init(&rig->book, &rig->loop);
    for (int i = 0; i < PROXIES; i++) {
        rules_init(&rig->to[i]);
        rig->to[i].settled = on_settled;
        assert_int_equal(rules_open(&rig->to[i], &rig->loop, &rig->anchor, &rig->theirs[i]), 0);
    }
}

static void on_gone(struct anchor *a)
{
    (void)a;
}

static void stop(struct rig *rig)
{
    rules_book_fini(&rig->book);
    for (int i = 0; i < PROXIES; i++) {
        rules_close(&rig->to[i]);
        fd_close(&rig->theirs[i]);
    }
    anchor_leave(&rig->anchor, on_gone);
    assert_int_equal(uv_run(&rig->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    strv_fini(&rig->changed);
    strv_fini(&rig->others);
    free(rig->last_policy);
}

/* To both, for a process each. */
static uint64_t change(struct rig *rig, const char *policy)
{
    static const char *const names[PROXIES] = {"proc-a", "proc-b"};
    struct err e;
    struct rules_change *c = rules_begin(&rig->book, 7, policy, on_done, rig, &e);
    assert_non_null(c);
    for (int i = 0; i < PROXIES; i++) {
        autostrv ids = {0};
        strv_add(&ids, names[i]);
        rules_send(c, &rig->to[i], &ids);
    }
    return rules_sent(c);
}

static void expect_line(int fd, const char *line)
{
    char text[200];
    ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    text[n > 0 ? n : 0] = '\0';
    assert_string_equal(text, line);
}

static void say(int fd, const char *line)
{
    assert_int_equal(fd_write_all(fd, line, strlen(line)), 0);
}

static void turn(struct rig *rig)
{
    uv_run(&rig->loop, UV_RUN_NOWAIT);
}

static void test_all_obey(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    assert_int_equal(change(&rig, "{\"allow\":[]}"), 7);
    for (int i = 0; i < PROXIES; i++)
        expect_line(rig.theirs[i], "{\"op\":\"policy\",\"policy\":{\"allow\":[]}}\n");
    say(rig.theirs[0], "{\"event\":\"policy\",");
    turn(&rig);
    assert_true(rules_is_busy(&rig.to[0]));
    say(rig.theirs[0], "\"generation\":2}\n");
    turn(&rig);
    assert_false(rules_is_busy(&rig.to[0]));
    assert_int_equal(rig.answers, 0);
    say(rig.theirs[1], "no json\n{\"event\":\"ready\"}\n{\"event\":\"policy\",\"generation\":2}\n");
    turn(&rig);
    assert_int_equal(rig.answers, 1);
    assert_int_equal(rig.changed.len, 2);
    assert_int_equal(rig.others.len, 0);
    assert_string_equal(rig.why, "");
    assert_int_equal(rig.settled, 2);
    assert_true(rig.last_in_force);
    assert_string_equal(rig.last_policy, "{\"allow\":[]}");
    stop(&rig);
}

static void test_one_refuses_and_one_ends(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    change(&rig, "{}");
    say(rig.theirs[0], "{\"event\":\"policy_refused\",\"message\":\"no filter\"}\n");
    turn(&rig);
    assert_false(rig.last_in_force);
    fd_close(&rig.theirs[1]);
    turn(&rig);
    assert_int_equal(rig.answers, 1);
    assert_int_equal(rig.changed.len, 0);
    assert_int_equal(rig.others.len, 2);
    assert_string_equal(rig.why, "no filter");
    assert_false(rules_is_open(&rig.to[1]));
    stop(&rig);
}

/* Two on one channel are answered in their order. */
static void test_two_changes(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    change(&rig, "{}");
    change(&rig, "{\"deny\":[]}");
    for (int i = 0; i < PROXIES; i++)
        say(rig.theirs[i], "{\"event\":\"policy_refused\"}\n");
    turn(&rig);
    assert_int_equal(rig.answers, 1);
    assert_int_equal(rig.others.len, 2);
    for (int i = 0; i < PROXIES; i++)
        say(rig.theirs[i], "{\"event\":\"policy\"}\n");
    turn(&rig);
    assert_int_equal(rig.answers, 2);
    assert_int_equal(rig.changed.len, 2);
    assert_string_equal(rig.last_policy, "{\"deny\":[]}");
    stop(&rig);
}

static void test_nobody_to_tell(void **state)
{
    (void)state;
    struct rig rig;
    struct err e;
    start(&rig);
    struct rules_change *c = rules_begin(&rig.book, 9, "{}", on_done, &rig, &e);
    assert_int_equal(rules_sent(c), 0);
    assert_int_equal(rig.answers, 1);
    stop(&rig);
}

static void test_given_up(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    change(&rig, "{}");
    assert_true(rules_cancel(&rig.book, 7));
    assert_false(rules_cancel(&rig.book, 8));
    for (int i = 0; i < PROXIES; i++)
        say(rig.theirs[i], "{\"event\":\"policy\"}\n");
    turn(&rig);
    assert_int_equal(rig.answers, 0);
    assert_int_equal(rig.settled, 2); /* the channel has it all the same */
    assert_int_equal(rig.book.n, 0);
    change(&rig, "{}"); /* and one that is under way at the end */
    stop(&rig);
    assert_int_equal(rig.answers, 0);
}

/* A proxy that does not answer: told so after RULES_ANSWER_MS, and a late answer is taken. */
static void test_silence(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig);
    change(&rig, "{}");
    say(rig.theirs[0], "{\"event\":\"policy\"}\n");
    while (rig.answers == 0)
        uv_run(&rig.loop, UV_RUN_ONCE);
    assert_int_equal(rig.changed.len, 1);
    assert_int_equal(rig.others.len, 1);
    assert_string_equal(rig.others.items[0], "proc-b");
    assert_non_null(strstr(rig.why, "did not answer"));
    say(rig.theirs[1], "{\"event\":\"policy\"}\n");
    turn(&rig);
    assert_int_equal(rig.answers, 1);
    assert_int_equal(rig.settled, 2);
    stop(&rig);
}

/* More than a socket takes at once goes out as the proxy reads. */
static void test_large(void **state)
{
    (void)state;
    struct rig rig;
    autobuf policy = BUF_INIT;
    start(&rig);
    buf_puts(&policy, "{\"allow\":[");
    for (int i = 0; i < 30000; i++)
        buf_printf(&policy, "%s\"host-number-%d.example.test\"", i > 0 ? "," : "", i);
    buf_puts(&policy, "]}");
    change(&rig, buf_cstr(&policy));
    size_t got[PROXIES] = {0};
    char text[65536];
    const size_t all = policy.len + strlen("{\"op\":\"policy\",\"policy\":}\n");
    while (got[0] < all || got[1] < all) {
        for (int i = 0; i < PROXIES; i++) {
            ssize_t n = recv(rig.theirs[i], text, sizeof(text), MSG_DONTWAIT);
            got[i] += n > 0 ? (size_t)n : 0;
        }
        turn(&rig);
    }
    assert_int_equal(got[0], all);
    stop(&rig);
}

static void test_limit(void **state)
{
    (void)state;
    struct rig rig;
    struct err e;
    start(&rig);
    for (unsigned i = 0; i < RULES_CHANGES_MAX; i++)
        change(&rig, "{}");
    assert_null(rules_begin(&rig.book, 9, "{}", on_done, &rig, &e));
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_non_null(strstr(e.message, "RULES_CHANGES_MAX"));
    stop(&rig);
}

UNIT_MAIN(cmocka_unit_test(test_all_obey), cmocka_unit_test(test_one_refuses_and_one_ends),
          cmocka_unit_test(test_two_changes), cmocka_unit_test(test_nobody_to_tell),
          cmocka_unit_test(test_given_up), cmocka_unit_test(test_silence),
          cmocka_unit_test(test_large), cmocka_unit_test(test_limit))
