/* run/msgs: every member of a runner's structs crosses the wire and comes back. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "run/msgs.h"
#include "wire/glob.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A member that is added to these must be added to wire/runmsg and run/msgs as well: for a
 * workspace it is a rule that a worker would not keep otherwise. Then this number is changed. */
static void test_sizes(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct workspace), 768);
    assert_int_equal(sizeof(struct helper_limits), 7 * sizeof(uint64_t));
}

static void *through_the_wire(struct runmsg *m, struct runmsg *back)
{
    autobuf text = BUF_INIT;
    struct err e = {0};
    m->request_id = mem_strdup("r");
    runmsg_write(m, &text);
    if (runmsg_read(buf_bytes(&text), text.len, back, &e) != 0)
        fail_msg("%s", e.message);
    return back->data;
}

static void assert_same_policy(const struct egress_policy *a, const struct egress_policy *b)
{
    struct buf texts[2] = {BUF_INIT, BUF_INIT};
    struct jsonw w;
    jsonw_init(&w, &texts[0]);
    egress_policy_write(a, &w);
    jsonw_init(&w, &texts[1]);
    egress_policy_write(b, &w);
    assert_string_equal(buf_cstr(&texts[0]), buf_cstr(&texts[1]));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        buf_fini(&texts[i]);
}

static void test_workspace(void **state)
{
    (void)state;
    struct stat st;
    char *const argv[] = {(char *)"true", NULL};
    assert_int_equal(stat("/usr", &st), 0);
    struct view_mount mounts[] = {{(char *)"/opt", false}, {(char *)"/srv", true}};
    struct workspace ws = {.id = (char *)"demo",
                           .root = (char *)"/usr",
                           .dev = st.st_dev,
                           .ino = st.st_ino,
                           .profile = PROFILE_WORKSPACE_WRITE,
                           .network = NETWORK_ENABLED,
                           .network_scope = NETWORK_SCOPE_COMMAND,
                           .sandbox = SANDBOX_REQUIRED,
                           .read = VIEW_READ_ALL,
                           .mounts = mounts,
                           .n_mounts = 2,
                           .git = VIEW_GIT_COMMIT,
                           .shared_tmp = true,
                           .inherited_proc = true,
                           .debug = true,
                           .user_namespaces = true,
                           .limits = {1, 2, 3, 4, 5, 6},
                           .cgroup_parent = (char *)"/sys/fs/cgroup/x"};
    struct strv *const lists[] = {&ws.hide, &ws.hidden, &ws.env, &ws.protect, &ws.devices};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        strv_addf(lists[i], "/item/%zu", i);
    strv_add(&ws.deny_read, "**/*.pem");
    static const char policy[] =
        "{\"allow\":[\"*.test:443\"],\"deny\":[\"x.test\"],\"methods\":[\"GET\"],"
        "\"local_ports\":[5432],\"unix_sockets\":[\"/run/x.sock\"],"
        "\"private\":[\"10.0.0.0/8\"],\"fronting\":\"refuse\"}";
    if (egress_policy_parse(policy, strlen(policy), &ws.egress, NULL) < 0)
        fail();
    ws.publish[ws.n_publish++] = 3000;
    struct run_exec x = {.ws = &ws, .argv = argv};
    struct runmsg m = {0}, back;
    struct err e = {0};
    msgs_exec(&x, runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_EXEC));
    struct runmsg_exec *got = through_the_wire(&m, &back);
    struct workspace *w = msgs_workspace_new(&got->workspace, &e);
    if (w == NULL)
        fail_msg("%s", e.message);
    assert_string_equal(w->id, ws.id);
    assert_string_equal(w->root, ws.root);
    assert_true(w->dev == ws.dev && w->ino == ws.ino && w->root_fd >= 0);
    assert_true(w->profile == ws.profile && w->network == ws.network && w->sandbox == ws.sandbox);
    assert_true(w->read == ws.read && w->git == ws.git && w->network_scope == ws.network_scope);
    assert_true(w->shared_tmp && w->inherited_proc && w->debug && w->user_namespaces);
    assert_memory_equal(&w->limits, &ws.limits, sizeof(ws.limits));
    assert_string_equal(w->cgroup_parent, ws.cgroup_parent);
    assert_same_policy(&w->egress, &ws.egress);
    assert_int_equal(w->n_publish, 1);
    assert_int_equal(w->publish[0], 3000);
    egress_policy_fini(&ws.egress);
    assert_int_equal(w->n_mounts, 2);
    assert_true(!w->mounts[0].writable && w->mounts[1].writable);
    assert_string_equal(w->mounts[1].path, "/srv");
    const struct strv *const back_lists[] = {&w->hide, &w->hidden, &w->env, &w->protect,
                                             &w->devices};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        assert_int_equal(back_lists[i]->len, 1);
        assert_string_equal(back_lists[i]->items[0], lists[i]->items[0]);
        strv_fini(lists[i]);
    }
    assert_int_equal(w->deny_read.len, 1);
    assert_true(glob_match(&w->deny[0], "keys/a.pem"));
    workspace_free(w);
    got->workspace.ino++; /* another directory has taken the place */
    assert_null(msgs_workspace_new(&got->workspace, &e));
    assert_int_equal(e.code, ERR_PROCESS_SPAWN_FAILED);
    strv_fini(&ws.deny_read);
    runmsg_fini(&m);
    runmsg_fini(&back);
}

static void test_exec(void **state)
{
    (void)state;
    struct workspace ws = {.id = (char *)"d", .root = (char *)"/"};
    char *const argv[] = {(char *)"a", (char *)"", (char *)"c", NULL};
    char *const env[] = {(char *)"K=V", NULL};
    struct run_exec x = {.ws = &ws,
                         .argv = argv,
                         .cwd = "sub",
                         .env = env,
                         .tty = true,
                         .rows = 7,
                         .cols = 8,
                         .timeout_ms = 9,
                         .stdin_data = "\0z",
                         .stdin_len = 2,
                         .process_id = "proc-1",
                         .idle_timeout_ms = 10,
                         .background = RUN_BACKGROUND_KEEP,
                         .exclusive = true,
                         .exclusive_wait_ms = 11};
    struct run_exec y;
    struct runmsg m = {0}, back;
    msgs_exec(&x, runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_EXEC));
    msgs_exec_from(through_the_wire(&m, &back), &y);
    assert_string_equal(y.argv[2], "c");
    assert_null(y.argv[3]);
    assert_string_equal(y.env[0], "K=V");
    assert_string_equal(y.cwd, "sub");
    assert_string_equal(y.process_id, "proc-1");
    assert_true(y.tty && y.rows == 7 && y.cols == 8 && y.timeout_ms == 9);
    assert_true(y.stdin_len == 2 && memcmp(y.stdin_data, "\0z", 2) == 0);
    assert_true(y.idle_timeout_ms == 10 && y.background == RUN_BACKGROUND_KEEP);
    assert_true(y.exclusive && y.exclusive_wait_ms == 11);
    runmsg_fini(&m);
    runmsg_fini(&back);
    x.stdin_data = ""; /* given and empty is not the same as open */
    x.stdin_len = 0;
    msgs_exec(&x, runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_EXEC));
    msgs_exec_from(through_the_wire(&m, &back), &y);
    assert_non_null(y.stdin_data);
    runmsg_fini(&m);
    runmsg_fini(&back);
}

/* The read that goes along names no process: the exec's answer does. */
static void test_first(void **state)
{
    (void)state;
    struct workspace ws = {.id = (char *)"d", .root = (char *)"/"};
    char *const argv[] = {(char *)"a", NULL};
    const struct run_exec x = {.ws = &ws, .argv = argv};
    const struct run_read first = {.process_id = "not told",
                                   .cursor = 1,
                                   .stream = RUN_STDERR,
                                   .max_bytes = 2,
                                   .wait_ms = 3,
                                   .until_exit = true,
                                   .whole_chars = true,
                                   .clean = true,
                                   .from = RUN_FROM_TAIL_LINES};
    struct run_read y;
    struct runmsg m = {0}, back;
    struct runmsg_exec *out = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_EXEC);
    msgs_exec(&x, out);
    msgs_first(&first, 4, out);
    const struct runmsg_exec *in = through_the_wire(&m, &back);
    assert_true(in->has_first);
    assert_int_equal(in->hold_ms, 4);
    msgs_read_from(&in->first, &y);
    assert_null(y.process_id);
    assert_true(y.cursor == 1 && y.stream == RUN_STDERR && y.max_bytes == 2 && y.wait_ms == 3);
    assert_true(y.until_exit && y.whole_chars && y.clean && y.from == RUN_FROM_TAIL_LINES);
    runmsg_fini(&m);
    runmsg_fini(&back);
}

static void test_page(void **state)
{
    (void)state;
    const char *const left[] = {"7 sleep", NULL};
    const char *const removed[] = {".git", NULL};
    const char *const denials[] = {"filter.trace 2 ptrace", NULL};
    const char *const created[] = {"a/.git", "b/.git", NULL};
    struct run_page p = {.bytes = "\xff\0",
                         .len = 2,
                         .cursor = 1,
                         .lost = true,
                         .retained_from = 2,
                         .start = 3,
                         .time_ms = 4};
    p.status = (struct run_status){
        .process_id = "proc-1",
        .workspace_id = "ws",
        .state = RUN_EXITED,
        .termination = RUN_END_SIGNALED,
        .exit_code = 5,
        .signal = 6,
        .reason = "why",
        .sandboxed = true,
        .tty = true,
        .eof = true,
        .output_total = 7,
        .output_retained_from = 8,
        .started_ms = 9,
        .ended_ms = 10,
        .timeout_ms = 11,
        .cpu_us = 12,
        .max_rss_kib = 13,
        .background = 14,
        .background_alive = true,
        .background_pids = left,
        .removed = removed,
        .denials = denials,
        .created = created,
        .shares_network = true,
        .command = "cmd",
        .serial = 15,
        .sequence = 16,
        .idle_timeout_ms = 17,
        .stopped = true,
        .output_dropped = 18,
        .output_failed = "full",
    };
    struct run_page q;
    struct runmsg m = {0}, back;
    msgs_page(&p, runmsg_new_data(&m, RUNMSG_RESPONSE, RUNMSG_READ));
    msgs_page_from(through_the_wire(&m, &back), &q);
    assert_true(q.len == 2 && memcmp(q.bytes, p.bytes, 2) == 0);
    assert_true(q.cursor == 1 && q.lost && q.retained_from == 2 && q.start == 3 && q.time_ms == 4);
    const struct run_status *s = &q.status;
    assert_string_equal(s->process_id, "proc-1");
    assert_string_equal(s->workspace_id, "ws");
    assert_string_equal(s->reason, "why");
    assert_string_equal(s->command, "cmd");
    assert_string_equal(s->output_failed, "full");
    assert_string_equal(s->background_pids[0], "7 sleep");
    assert_null(s->background_pids[1]);
    assert_string_equal(s->removed[0], ".git");
    assert_null(s->removed[1]);
    assert_string_equal(s->denials[0], denials[0]);
    assert_null(s->denials[1]);
    assert_string_equal(s->created[1], "b/.git");
    assert_null(s->created[2]);
    /* all the numbers and flags: with the strings set aside the two are the same bytes */
    struct run_status a = p.status, b = *s;
    struct run_status *const both[] = {&a, &b};
    for (size_t i = 0; i < 2; i++) {
        both[i]->process_id = both[i]->workspace_id = both[i]->reason = NULL;
        both[i]->command = both[i]->output_failed = NULL;
        both[i]->background_pids = NULL;
        both[i]->removed = both[i]->denials = both[i]->created = NULL;
    }
    assert_memory_equal(&a.state, &b.state, sizeof(a.state));
    assert_true(
        a.termination == b.termination && a.exit_code == b.exit_code && a.signal == b.signal &&
        a.sandboxed == b.sandboxed && a.tty == b.tty && a.eof == b.eof && a.stopped == b.stopped &&
        a.output_total == b.output_total && a.output_retained_from == b.output_retained_from &&
        a.output_dropped == b.output_dropped && a.started_ms == b.started_ms &&
        a.ended_ms == b.ended_ms && a.timeout_ms == b.timeout_ms && a.cpu_us == b.cpu_us &&
        a.max_rss_kib == b.max_rss_kib && a.background == b.background &&
        a.background_alive == b.background_alive && a.shares_network == b.shares_network &&
        a.serial == b.serial && a.sequence == b.sequence && a.idle_timeout_ms == b.idle_timeout_ms);
    runmsg_fini(&m);
    runmsg_fini(&back);
}

UNIT_MAIN(cmocka_unit_test(test_sizes), cmocka_unit_test(test_workspace),
          cmocka_unit_test(test_exec), cmocka_unit_test(test_first), cmocka_unit_test(test_page))
