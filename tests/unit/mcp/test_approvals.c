/* mcp/approval_gate, mcp/approval_run, mcp/work_hint: when a call is held, by whom it is let go,
 * and that it runs once. The runner is a fake that counts. */
#include "fixture.h"

#include "core/approvals.h"
#include "core/intents.h"
#include "core/works.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>

#define EXEC "{\"workspace_id\":\"ws\",\"command\":[\"prog\",\"arg\"]}"

static void confirm(struct fixture *f)
{
    f->registry.items[0]->approvals = APPROVALS_CONFIRM;
}

/* The id in what was sent last. */
static char *id_of(const char *text)
{
    const char *at = strstr(text, "appr-");
    assert_non_null(at);
    return mem_dup(at, strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-"));
}

static char *hold(struct fixture *f)
{
    const char *out = fixture_call(f, "exec_command", EXEC);
    assert_has(out, "APPROVAL_REQUIRED", "\"isError\":true", NULL);
    return id_of(out);
}

static void grant(struct fixture *f, const char *id)
{
    struct err e;
    if (approvals_grant(f->ledger, id, APPROVAL_BY_COMMAND_LINE, false, &e) < 0)
        fail_msg("%s", e.message);
}

static enum approval_state state_of(struct fixture *f, const char *id)
{
    struct err e;
    autoapproval a = {0};
    assert_int_equal(approvals_get(f->ledger, id, &a, &e), 0);
    return a.state;
}

static const char *resume(struct fixture *f, const char *id)
{
    char args[160];
    snprintf(args, sizeof(args), "{\"approval_id\":\"%s\"}", id);
    return fixture_call(f, "operation_resume", args);
}

static void test_one_start(void **state)
{
    struct fixture *f = *state;
    confirm(f);
    autofree char *id = hold(f);
    assert_int_equal(f->fake.execs, 0);
    assert_has(resume(f, id), "APPROVAL_CONFLICT", NULL);
    grant(f, id);
    assert_string_equal(resume(f, id), "");
    assert_int_equal(f->fake.execs, 1);
    assert_string_equal(f->fake.argv0, "prog");
    assert_int_equal(state_of(f, id), APPROVAL_RESUMING);
    fixture_started(f, "proc-1");
    assert_has(fixture_run(f), "\"state\":\"consumed\"", "\"exec_command\":{\"process_id\":\"",
               NULL);
    assert_has(resume(f, id), "\"state\":\"consumed\"", NULL);
    assert_int_equal(f->fake.execs, 1);
}

static void test_a_second_resume_is_a_conflict(void **state)
{
    struct fixture *f = *state;
    confirm(f);
    autofree char *id = hold(f);
    grant(f, id);
    resume(f, id);
    char say[256];
    snprintf(say, sizeof(say),
             "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\",\"params\":{\"name\":"
             "\"operation_resume\",\"arguments\":{\"approval_id\":\"%s\"}}}",
             id);
    assert_has(fixture_say(f, say), "APPROVAL_CONFLICT", "\"id\":8", NULL);
    assert_int_equal(f->fake.execs, 1);
    fixture_started(f, "proc-1");
    assert_has(fixture_run(f), "\"id\":7", "consumed", NULL);
}

/* Errors that pass give the hold back, others use it up. */
static void test_what_uses_it_up(void **state)
{
    struct fixture *f = *state;
    static const struct {
        enum err_code code;
        enum approval_state after;
    } rows[] = {{ERR_WORKSPACE_BUSY, APPROVAL_GRANTED},
                {ERR_RESOURCE_QUEUE_FULL, APPROVAL_GRANTED},
                {ERR_PROCESS_LIMIT, APPROVAL_GRANTED},
                {ERR_WORKSPACE_PROCESS_LIMIT, APPROVAL_GRANTED},
                {ERR_PROCESS_SPAWN_FAILED, APPROVAL_CONSUMED}};
    confirm(f);
    autofree char *id = hold(f);
    grant(f, id);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e;
        resume(f, id);
        assert_int_equal(f->fake.execs, i + 1);
        err_set(&e, rows[i].code, "the fake says so");
        f->fake.exec_done(f->fake.user, NULL, &e);
        assert_has(fixture_run(f), err_info(rows[i].code)->name, "\"isError\":true", NULL);
        assert_int_equal(state_of(f, id), rows[i].after);
    }
    assert_has(resume(f, id), "PROCESS_SPAWN_FAILED", NULL);
    assert_int_equal(f->fake.execs, ARRAY_LEN(rows));
}

static void test_cancel_while_it_runs(void **state)
{
    struct fixture *f = *state;
    confirm(f);
    autofree char *id = hold(f);
    grant(f, id);
    resume(f, id);
    assert_string_equal(fixture_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\""
                                       ",\"params\":{\"requestId\":7}}"),
                        "");
    assert_int_equal(f->fake.cancels, 1);
    assert_int_equal(state_of(f, id), APPROVAL_CONSUMED);
    assert_has(resume(f, id), "CANCELLED", NULL);
    assert_int_equal(f->fake.execs, 1);
}

/* Policy is asked when it runs, by the code of any call. */
static void test_policy_again(void **state)
{
    struct fixture *f = *state;
    confirm(f);
    autofree char *id = hold(f);
    grant(f, id);
    f->registry.items[0]->profile = PROFILE_READ_ONLY;
    assert_has(resume(f, id), "UNAUTHORIZED", NULL);
    assert_int_equal(state_of(f, id), APPROVAL_CONSUMED);
    assert_int_equal(f->fake.execs, 0);
}

static void test_ledger_that_fails(void **state)
{
    struct fixture *f = *state;
    confirm(f);
    assert_has(resume(f, "appr-none"), "APPROVAL_NOT_FOUND", "\\\"approval_id\\\"", NULL);
    assert_int_equal(f->fake.execs, 0);
}

static void ask(struct fixture *f, const char *id, const char *result)
{
    autofree char *say =
        mem_printf("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":%s}", id, result);
    fixture_say(f, say);
}

/* A question is kept as an answer is. */
static bool keep_question(struct peer *p, struct buf *message)
{
    p->ops->send(p, message);
    return true;
}

static void declare(struct fixture *f)
{
    static struct peer_ops ops;
    ops = *f->peer.ops;
    ops.notify = keep_question;
    f->peer.ops = &ops;
    static const char text[] = "{\"elicitation\":{}}";
    json_object_put(f->session.capabilities);
    f->session.capabilities = NULL;
    assert_int_equal(json_parse(text, sizeof(text) - 1, &f->session.capabilities, NULL), 0);
}

static void test_a_person_allows(void **state)
{
    struct fixture *f = *state;
    confirm(f);
    declare(f);
    const char *out = fixture_call(f, "exec_command", EXEC);
    assert_has(out, "elicitation/create", "\\\"prog\\\" \\\"arg\\\"", "\"id\":\"ask-1\"", NULL);
    autofree char *id = id_of(out);
    ask(f, "ask-2", "{\"action\":\"accept\",\"content\":{\"decision\":\"allow once\"}}");
    assert_int_equal(state_of(f, id), APPROVAL_PENDING);
    ask(f, "ask-1", "{\"action\":\"accept\",\"content\":{\"decision\":\"allow once\"}}");
    assert_int_equal(f->fake.execs, 1);
    fixture_started(f, "proc-1");
    assert_has(fixture_run(f), "\"id\":7", "\"dispatch_status\":\"confirmed\"", NULL);
    assert_int_equal(state_of(f, id), APPROVAL_CONSUMED);
    /* The same answer once more is an answer to nothing. */
    ask(f, "ask-1", "{\"action\":\"accept\",\"content\":{\"decision\":\"allow once\"}}");
    assert_int_equal(f->fake.execs, 1);
}

static void test_a_person_says_no(void **state)
{
    struct fixture *f = *state;
    confirm(f);
    declare(f);
    autofree char *id = id_of(fixture_call(f, "exec_command", EXEC));
    ask(f, "ask-1", "{\"action\":\"decline\"}");
    assert_has(fixture_run(f), "APPROVAL_CONFLICT", NULL);
    assert_int_equal(state_of(f, id), APPROVAL_DENIED);
    assert_int_equal(f->fake.execs, 0);
}

/* Whoever sees the end of the client's input does not wait for its answer. */
static void test_hang_up_while_it_asks(void **state)
{
    struct fixture *f = *state;
    confirm(f);
    declare(f);
    autofree char *id = id_of(fixture_call(f, "exec_command", EXEC));
    assert_int_equal(f->session.n_calls, 1);
    session_hang_up(&f->session);
    assert_int_equal(f->session.n_calls, 0);
    assert_int_equal(state_of(f, id), APPROVAL_PENDING);
}

/* ---- hints ---- */

static void test_hint(void **state)
{
    struct fixture *f = *state;
    struct err e;
    autowork work = {0};
    autointent i = {0};
    autointent queued = {0};
    fixture_file(f, "a.txt", "x", 1);
    static const char read[] = "{\"workspace_id\":\"ws\",\"path\":\"a.txt\"}";
    assert_null(strstr(fixture_call(f, "read", read), "coordination"));
    assert_int_equal(works_open(f->ledger, "ws", NULL, &work, &e), 0);
    assert_int_equal(
        intents_add(f->ledger, work.work_id, INTENT_NOTE, INTENT_NEXT_CHECKPOINT, "t", &i, &e), 0);
    assert_int_equal(intents_queue(f->ledger, i.intent_id, 1, &queued, &e), 0);
    assert_has(fixture_call(f, "read", read), "\"coordination\":{\"work_id\":\"", work.work_id,
               "\"pending_user_items\":1", NULL);
    /* A call that is cancelled while the hint is looked up. */
    const char *call = "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{"
                       "\"name\":\"process_status\",\"arguments\":{\"process_id\":\"p\"}}}";
    fixture_say(f, call);
    const struct run_status status = {.process_id = "p", .workspace_id = "ws", .reason = ""};
    run_status_fn answer = f->fake.status_done;
    answer(f->fake.user, &status, NULL);
    assert_string_equal(fixture_say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\""
                                       ",\"params\":{\"requestId\":9}}"),
                        "");
    assert_int_equal(f->session.n_calls, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_start),
        TEST(test_a_second_resume_is_a_conflict),
        TEST(test_what_uses_it_up),
        TEST(test_cancel_while_it_runs),
        TEST(test_policy_again),
        TEST(test_ledger_that_fails),
        TEST(test_a_person_allows),
        TEST(test_a_person_says_no),
        TEST(test_hang_up_while_it_asks),
        TEST(test_hint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
