/* wire/helper: requests, answers and control lines, there and back and refused. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "wire/helper.h"

#include <errno.h>
#include <stdio.h>

#define HEAD                                                                                       \
    "\"protocol\":1,\"workspace_root\":\"/w\",\"command_cwd\":\"/w/sub\","                         \
    "\"writable_workspace\":true,\"network\":\"restricted\",\"argv\":[\"make\",\"\"]"

static int read_request(const char *text, struct helper_request *ret, struct err *e)
{
    return helper_request_read(text, strlen(text), ret, e);
}

static void test_minimal_request(void **state)
{
    (void)state;
    struct helper_request r;
    struct err e = {0};
    assert_int_equal(read_request("{" HEAD "}", &r, &e), 0);
    assert_string_equal(r.view.workspace, "/w");
    assert_string_equal(r.cwd, "/w/sub");
    assert_true(r.view.workspace_writable);
    assert_int_equal(r.network, HELPER_NETWORK_RESTRICTED);
    assert_int_equal(r.view.read, VIEW_READ_MINIMAL);
    assert_false(r.tty);
    assert_int_equal(r.argv.len, 2);
    assert_string_equal(r.argv.items[1], "");
    assert_int_equal(r.env.len, 0);
    assert_int_equal(r.view.n_mounts, 0);
    assert_int_equal(r.view.hidden.len, 0);
    assert_int_equal(r.view.protect.len, 3);
    assert_true(strv_has(&r.view.protect, ".git"));
    helper_request_fini(&r);
    /* an empty list is not an absent one */
    assert_int_equal(read_request("{" HEAD ",\"protect\":[]}", &r, &e), 0);
    assert_int_equal(r.view.protect.len, 0);
    helper_request_fini(&r);
}

static void test_there_and_back(void **state)
{
    (void)state;
    struct helper_request r = {0};
    struct helper_request q;
    struct err e = {0};
    autobuf a = BUF_INIT;
    autobuf b = BUF_INIT;
    r.view.read = VIEW_READ_ALL;
    r.view.workspace = mem_strdup("/w \"quoted\"\n");
    r.view.mounts = mem_zalloc(2, sizeof(*r.view.mounts));
    r.view.n_mounts = 2;
    r.view.mounts[0] = (struct view_mount){mem_strdup("/data"), false};
    r.view.mounts[1] = (struct view_mount){mem_strdup("/out"), true};
    strv_add(&r.view.hidden, "/home/u/.ssh");
    strv_add(&r.view.protect, ".hg");
    strv_add(&r.view.protect, "ci/deploy.sh");
    strv_add(&r.view.deny, "*.pem");
    strv_add(&r.view.devices, "/dev/dri/renderD128");
    r.view.git = VIEW_GIT_COMMIT;
    r.view.shared_tmp = true;
    r.view.inherited_proc = true;
    r.debug = true;
    r.user_namespaces = true;
    r.keep = true;
    r.own_network = true;
    r.limits.memory = 1ull << 40;
    r.limits.file_size = 5;
    r.cgroup_parent = mem_strdup("/sys/fs/cgroup/x");
    r.cwd = mem_strdup("/");
    r.network = HELPER_NETWORK_ENABLED;
    r.tty = true;
    strv_add(&r.argv, "sh");
    strv_add(&r.argv, "a\tb");
    strv_add(&r.env, "K=V=W");
    strv_add(&r.env, "EMPTY=");
    helper_request_write(&r, &a);
    assert_int_equal(helper_request_read(buf_bytes(&a), a.len, &q, &e), 0);
    assert_true(q.view.mounts[1].writable && !q.view.mounts[0].writable);
    assert_int_equal(q.network, HELPER_NETWORK_ENABLED);
    assert_int_equal(q.view.git, VIEW_GIT_COMMIT);
    assert_true(q.view.shared_tmp && q.view.inherited_proc && q.debug && q.user_namespaces);
    assert_true(q.keep && q.own_network);
    assert_int_equal(q.limits.memory, 1ull << 40);
    assert_int_equal(q.limits.pids, 0);
    helper_request_write(&q, &b);
    assert_string_equal(buf_cstr(&a), buf_cstr(&b));
    helper_request_fini(&r);
    helper_request_fini(&q);
}

/* Whole requests, each with the word its message must hold. */
static void test_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *word;
    } bad[] = {
        {"", "request"},
        {"{}", "protocol"},
        {"{" HEAD ",\"surprise\":1}", "surprise"},
        {"{\"protocol\":2}", "protocol"},
        {"{" HEAD ",\"read\":\"most\"}", "read"},
        {"{" HEAD ",\"background\":\"both\"}", "background"},
        {"{" HEAD ",\"network_scope\":\"host\"}", "network_scope"},
        {"{" HEAD ",\"env\":[\"=x\"]}", "env"},
        {"{" HEAD ",\"env\":[\"novalue\"]}", "env"},
        {"{" HEAD ",\"hidden\":[\"rel\"]}", "hidden"},
        {"{" HEAD ",\"hidden\":[\"/a/../b\"]}", "hidden"},
        {"{" HEAD ",\"protect\":[\"a/../b\"]}", "protect"},
        {"{" HEAD ",\"protect\":[\"..\"]}", "protect"},
        {"{" HEAD ",\"protect\":[\"\"]}", "protect"},
        {"{" HEAD ",\"mounts\":[{}]}", "mounts[0].path"},
        {"{" HEAD ",\"mounts\":[{\"path\":\"/a/\"}]}", "mounts[0]"},
        {"{" HEAD ",\"mounts\":[{\"path\":\"/a\"},{\"path\":\"/a//b\"}]}", "mounts[1]"},
        {"{" HEAD ",\"mounts\":[{\"path\":\"/a\",\"mode\":\"rw\"}]}", "mode"},
        {"{\"protocol\":1,\"workspace_root\":\"w\",\"command_cwd\":\"/w\",\"writable_workspace\":"
         "true,\"network\":\"restricted\",\"argv\":[\"x\"]}",
         "workspace_root"},
        {"{\"protocol\":1,\"workspace_root\":\"/w\",\"command_cwd\":\"/w/./x\","
         "\"writable_workspace\":true,\"network\":\"restricted\",\"argv\":[\"x\"]}",
         "command_cwd"},
        {"{\"protocol\":1,\"workspace_root\":\"/w\",\"command_cwd\":\"/w\",\"writable_workspace\":"
         "true,\"network\":\"restricted\",\"argv\":[\"\"]}",
         "argv"},
        {"{\"protocol\":1,\"workspace_root\":\"/w\",\"command_cwd\":\"/w\",\"writable_workspace\":"
         "true,\"network\":\"restricted\",\"argv\":[]}",
         "argv"},
        {"{\"protocol\":1,\"workspace_root\":\"/w\",\"command_cwd\":\"/w\",\"writable_workspace\":"
         "true,\"network\":\"restricted\",\"argv\":[\"a\\u0000b\"]}",
         "argv"},
        {"{\"protocol\":1,\"workspace_root\":\"/w\",\"command_cwd\":\"/w\",\"writable_workspace\":"
         "true,\"network\":\"open\",\"argv\":[\"a\"]}",
         "network"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct helper_request r = {0};
        struct err e = {0};
        if (read_request(bad[i].text, &r, &e) != -1)
            fail_msg("accepted: %s", bad[i].text);
        assert_int_equal(e.code, ERR_INVALID_COMMAND);
        if (strstr(e.message, bad[i].word) == NULL)
            fail_msg("%s: %s", bad[i].text, e.message);
        assert_null(r.cwd);
    }
}

static void test_too_many_names(void **state)
{
    (void)state;
    struct helper_request r;
    struct err e = {0};
    autobuf b = BUF_INIT;
    buf_puts(&b, "{" HEAD ",\"protect\":[");
    for (int i = 0; i <= VIEW_PROTECT_MAX; i++)
        buf_printf(&b, "%s\"n%d\"", i ? "," : "", i);
    buf_puts(&b, "]}");
    assert_int_equal(helper_request_read(buf_bytes(&b), b.len, &r, &e), -1);
    assert_non_null(strstr(e.message, "protect"));
}

static void test_answers(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    autofree char *path = NULL;
    struct err e = {0};
    helper_answer_write_plan("/tmp/x/plan", NULL, &b);
    assert_string_equal(buf_cstr(&b), "{\"type\":\"prepared\",\"plan_path\":\"/tmp/x/plan\"}\n");
    assert_int_equal(helper_answer_read(buf_bytes(&b), b.len, &path, NULL, &e), 0);
    assert_string_equal(path, "/tmp/x/plan");
    buf_truncate(&b, 0);
    helper_answer_write_error("no \"such\" thing", &b);
    assert_int_equal(helper_answer_read(buf_bytes(&b), b.len, &path, NULL, &e), -1);
    assert_int_equal(e.code, ERR_PROCESS_SPAWN_FAILED);
    assert_non_null(strstr(e.message, "no \"such\" thing"));
    static const char *const bad[] = {
        "",
        "x",
        "{}",
        "{\"type\":\"prepared\"}",
        "{\"type\":\"prepared\",\"plan_path\":\"rel\"}",
        "{\"type\":\"prepared\",\"plan_path\":\"/a\"} trailing",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(helper_answer_read(bad[i], strlen(bad[i]), &path, NULL, &e), -1);
        assert_int_equal(e.code, ERR_PROCESS_SPAWN_FAILED);
    }
}

static void test_guards_of_an_answer(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    autofree char *path = NULL;
    autostrv guards = {0}, got = {0};
    struct err e = {0};
    const char *const pairs[] = {"/w/.git", "", "/w/.agents", "else\nwhere"};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        strv_add(&guards, pairs[i]);
    helper_answer_write_plan("/tmp/x/plan", &guards, &b);
    assert_int_equal(helper_answer_read(buf_bytes(&b), b.len, &path, &got, &e), 0);
    assert_int_equal(got.len, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(got.items[i], pairs[i]);
    static const char *const bad[] = {
        "[]", "[\"/w/.git\"]", "[\"rel\",\"\"]", "[\"/w/../x\",\"\"]", "[\"/w\",1]", "{}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        buf_truncate(&b, 0);
        buf_printf(&b, "{\"type\":\"prepared\",\"plan_path\":\"/a\",\"guards\":%s}", bad[i]);
        assert_int_equal(helper_answer_read(buf_bytes(&b), b.len, &path, &got, &e), -1);
    }
    assert_int_equal(got.len, 4); /* as it was */
}

/* That of `start`, which names no plan; of `prepare` it would be none. */
static void test_answer_without_a_plan(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    autofree char *path = NULL;
    autostrv guards = {0}, got = {0};
    struct err e = {0};
    strv_add(&guards, "/w/.git");
    strv_add(&guards, "");
    helper_answer_write_plan(NULL, &guards, &b);
    assert_string_equal(buf_cstr(&b), "{\"type\":\"prepared\",\"guards\":[\"/w/.git\",\"\"]}\n");
    assert_int_equal(helper_answer_read(buf_bytes(&b), b.len, NULL, &got, &e), 0);
    assert_int_equal(got.len, 2);
    assert_int_equal(helper_answer_read(buf_bytes(&b), b.len, &path, NULL, &e), -1);
    assert_null(path);
}

/* What does not fit is left to process 1. */
static void test_more_guards_than_an_answer_has_room_for(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    autofree char *path = NULL;
    autostrv guards = {0}, got = {0};
    struct err e = {0};
    for (int i = 0; i < 4000; i++) {
        strv_addf(&guards, "/w/repository%d/.git/config.worktree", i);
        strv_add(&guards, "");
    }
    helper_answer_write_plan("/tmp/x/plan", &guards, &b);
    assert_true(b.len < HELPER_LINE_MAX);
    assert_int_equal(helper_answer_read(buf_bytes(&b), b.len, &path, &got, &e), 0);
    assert_true(got.len > 100 && got.len % 2 == 0);
}

static void check_event(const struct helper_verdict *v)
{
    struct helper_verdict got;
    autobuf b = BUF_INIT;
    helper_verdict_write(v, &b);
    assert_int_equal(buf_bytes(&b)[b.len - 1], '\n');
    helper_verdict_read(buf_bytes(&b), b.len - 1, &got);
    assert_memory_equal(v, &got, sizeof(got));
}

static void test_events(void **state)
{
    (void)state;
    check_event(&(struct helper_verdict){.event = HELPER_STARTED});
    check_event(&(struct helper_verdict){.event = HELPER_STARTED, .at_us = 12345678901234});
    check_event(&(struct helper_verdict){.event = HELPER_EXEC_FAILED, .value = 2, .message = "m"});
    check_event(&(struct helper_verdict){.event = HELPER_FAILED, .value = 189, .message = "\"x\""});
    struct helper_verdict end = {
        .event = HELPER_EXIT,
        .value = 137,
        .at_us = 7,
        .background = 3,
        .left = {{4, "sleep"}, {2147483647, "fifteen letters"}},
        .cpu_us = 1234567890123,
        .max_rss_kib = 4096,
        .removed = {".git", ".codex"},
        .created = {"sub/.git"},
        .oom_kills = 2,
        .denials = {{"filter.trace", "ptrace", 3}, {"filter.unobserved", "", 0}}};
    check_event(&end);
    end.kept = true;
    check_event(&end);
    end.event = HELPER_SIGNAL;
    end.value = 9;
    check_event(&end);
    end.event = HELPER_OVER;
    end.value = 0;
    end.kept = false;
    check_event(&end);
    check_event(&(struct helper_verdict){.event = HELPER_TEXT, .message = "bwrap: no"});
}

/* What is not an event in full is text, never half an event. */
static void test_not_events(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "bwrap: Can't mount proc",
        "{",
        "{\"event\":\"party\"}",
        "{\"event\":\"exit\"}",
        "{\"event\":\"exit\",\"code\":-1}",
        "{\"event\":\"exit\",\"code\":\"0\"}",
        "{\"event\":\"exit\",\"code\":1e3}",
        "{\"event\":\"signal\",\"signal\":99999}",
        "{\"event\":\"exit\",\"code\":0,\"code\":1}",
        "[{\"event\":\"started\"}]",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct helper_verdict v;
        helper_verdict_read(lines[i], strlen(lines[i]), &v);
        assert_int_equal(v.event, HELPER_TEXT);
        assert_string_equal(v.message, lines[i]);
        assert_int_equal(v.value, 0);
    }
}

/* Only an end can say that something lives on, and only by true. */
static void test_kept_is_strict(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{\"event\":\"exit\",\"code\":0,\"kept\":1}",
        "{\"event\":\"exit\",\"code\":0,\"kept\":\"true\"}",
        "{\"event\":\"exit\",\"code\":0,\"kept\":[true]}",
        "{\"event\":\"over\",\"kept\":true}",
        "{\"event\":\"started\",\"kept\":true}",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct helper_verdict v;
        helper_verdict_read(lines[i], strlen(lines[i]), &v);
        assert_int_not_equal(v.event, HELPER_TEXT);
        assert_false(v.kept);
    }
}

static void test_text_is_bounded(void **state)
{
    (void)state;
    struct helper_verdict v;
    char line[4096];
    memset(line, 'x', sizeof(line));
    line[3] = '\0';
    helper_verdict_read(line, sizeof(line), &v);
    assert_int_equal(v.event, HELPER_TEXT);
    assert_int_equal(strlen(v.message), sizeof(v.message) - 1);
    assert_int_equal(v.message[3], ' ');
}

/* Names of any bytes, the longest there are, still make one line. */
static void test_longest_names_fit(void **state)
{
    (void)state;
    struct helper_verdict v = {.event = HELPER_EXIT};
    struct helper_verdict back;
    autobuf b = BUF_INIT;
    for (size_t i = 0; i < HELPER_REMOVED_MAX; i++) {
        memset(v.created[i], 1, HELPER_NAME_MAX - 1);
        memset(v.removed[i], 'x', HELPER_NAME_MAX - 1);
        memset(v.denials[i].rule, 'r', DENIAL_RULE_MAX - 1);
        memset(v.denials[i].what, 1, DENIAL_WHAT_MAX - 1);
        v.denials[i].count = DENIAL_COUNT_MAX;
        v.left[i].pid = INT32_MAX;
        memset(v.left[i].name, 1, HELPER_COMM_MAX - 1);
    }
    helper_verdict_write(&v, &b);
    assert_in_range(b.len, 1, HELPER_LINE_MAX);
    helper_verdict_read(buf_bytes(&b), b.len - 1, &back);
    assert_int_equal(back.event, HELPER_EXIT);
    assert_string_equal(back.created[HELPER_REMOVED_MAX - 1], v.created[0]);
    assert_memory_equal(back.denials, v.denials, sizeof(v.denials));
    assert_memory_equal(back.left, v.left, sizeof(v.left));
}

/* What is no list of processes names none, and no more are taken than there is room for. */
static void test_left_is_bounded(void **state)
{
    (void)state;
    struct helper_verdict v;
    static const char *const lists[] = {
        "7", "\"7\"", "[7]", "[{}]", "[{\"pid\":0}]", "[{\"pid\":2147483648}]", "[{\"pid\":-1}]"};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        autobuf b = BUF_INIT;
        buf_printf(&b, "{\"event\":\"exit\",\"code\":0,\"background_pids\":%s}", lists[i]);
        helper_verdict_read(buf_bytes(&b), b.len, &v);
        assert_int_equal(v.event, HELPER_EXIT);
        assert_int_equal(v.left[0].pid, 0);
    }
    autobuf b = BUF_INIT;
    buf_puts(&b, "{\"event\":\"exit\",\"code\":0,\"background_pids\":[");
    for (int i = 1; i <= 100; i++)
        buf_printf(&b, "%s{\"pid\":%d,\"name\":\"a name that is too long\"}", i > 1 ? "," : "", i);
    buf_puts(&b, "]}");
    helper_verdict_read(buf_bytes(&b), b.len, &v);
    assert_int_equal(v.left[HELPER_LEFT_MAX - 1].pid, HELPER_LEFT_MAX);
    assert_string_equal(v.left[0].name, "a name that is ");
}

static void test_removed_is_bounded(void **state)
{
    (void)state;
    struct helper_verdict v;
    autobuf b = BUF_INIT;
    buf_puts(&b, "{\"event\":\"exit\",\"code\":0,\"removed\":[1,\"\"");
    for (int i = 0; i < 100; i++)
        buf_printf(&b, ",\"n%d\"", i);
    buf_puts(&b, "]}");
    helper_verdict_read(buf_bytes(&b), b.len, &v);
    assert_int_equal(v.event, HELPER_EXIT);
    assert_string_equal(v.removed[0], "n0");
    assert_string_equal(v.removed[HELPER_REMOVED_MAX - 1], "n15");
}

static void test_signals(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    helper_signal_write(15, &b);
    assert_string_equal(buf_cstr(&b), "{\"op\":\"signal\",\"signal\":15}\n");
    assert_int_equal(helper_signal_read(buf_bytes(&b), b.len - 1), 15);
    static const char *const bad[] = {
        "",
        "{}",
        "{\"op\":\"signal\"}",
        "{\"op\":\"signal\",\"signal\":0}",
        "{\"op\":\"signal\",\"signal\":65}",
        "{\"op\":\"kill\",\"signal\":9}",
        "{\"op\":\"signal\",\"signal\":9,\"pid\":1}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(helper_signal_read(bad[i], strlen(bad[i])), -EINVAL);
}

UNIT_MAIN(cmocka_unit_test(test_minimal_request), cmocka_unit_test(test_there_and_back),
          cmocka_unit_test(test_refuses), cmocka_unit_test(test_too_many_names),
          cmocka_unit_test(test_answers), cmocka_unit_test(test_guards_of_an_answer),
          cmocka_unit_test(test_answer_without_a_plan),
          cmocka_unit_test(test_more_guards_than_an_answer_has_room_for),
          cmocka_unit_test(test_events), cmocka_unit_test(test_not_events),
          cmocka_unit_test(test_kept_is_strict), cmocka_unit_test(test_text_is_bounded),
          cmocka_unit_test(test_removed_is_bounded), cmocka_unit_test(test_longest_names_fit),
          cmocka_unit_test(test_left_is_bounded), cmocka_unit_test(test_signals))
