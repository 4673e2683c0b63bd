/* mcp/tool_patch: the answers of apply_patch, its order, and what a key remembers. */
#include "fixture.h"

#include "core/operations_store.h"
#include "mcp/patch_record.h"
#include "mcp/recorder.h"
#include "mcp/tool.h"

#include <stdio.h>
#include <unistd.h>

#define PATCH(body) "*** Begin Patch\\n" body "*** End Patch"
#define ADD(name) PATCH("*** Add File: " name "\\n+x\\n")

static void send_patch(struct fixture *f, const char *id, const char *patch, const char *rest)
{
    autofree char *m = mem_printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\","
                                  "\"params\":{\"name\":\"apply_patch\",\"arguments\":{"
                                  "\"workspace_id\":\"ws\",\"patch\":\"%s\"%s}}}",
                                  id, patch, rest);
    session_message(&f->session, m, strlen(m));
}

static const char *apply(struct fixture *f, const char *patch, const char *rest)
{
    buf_truncate(&f->sent, 0);
    f->n_sent = 0;
    send_patch(f, "1", patch, rest);
    return fixture_run(f);
}

static bool exists(struct fixture *f, const char *name)
{
    autofree char *path = mem_printf("%s/%s", f->dir, name);
    return access(path, F_OK) == 0;
}

static void test_applies(void **state)
{
    struct fixture *f = *state;
    const char *out = apply(f, ADD("a.txt"), ",\"check_only\":true");
    assert_has(out, "\"status\":\"checked\"", "\"operation_id\":\"op-", "\"replayed\":false", NULL);
    assert_false(exists(f, "a.txt"));
    out = apply(f, ADD("a.txt"), "");
    assert_has(out, "\"status\":\"applied\"", "\"files\":[\"a.txt\"]",
               "{\"path\":\"a.txt\",\"kind\":\"add\",\"after_version\":\"sha256:", NULL);
    assert_null(strstr(out, "before_version"));
    assert_true(exists(f, "a.txt"));
}

/* A refusal after the operation was minted names it; one before does not. */
static void test_refusals(void **state)
{
    struct fixture *f = *state;
    fixture_file(f, "there", "1\n", 2);
    assert_has(apply(f, ADD("there"), ""), "ADD_FILE_EXISTS", "\\\"operation_id\\\":\\\"op-",
               "\"isError\":true", NULL);
    assert_has(apply(f, "rubbish", ""), "INVALID_PATCH", "\\\"operation_id\\\":\\\"op-", NULL);
    assert_has(apply(f, ADD("../x"), ""), "PATH_ESCAPE", NULL);
    assert_has(apply(f, ADD("x"), ",\"expected_versions\":{\"there\":\"absent\"}"),
               "VERSION_CONFLICT", NULL);
    assert_false(exists(f, "x"));
    const char *out = apply(f, ADD("x"), ",\"expected_versions\":{\"there\":5}");
    assert_has(out, "INVALID_ARGUMENT", NULL);
    assert_null(strstr(out, "operation_id"));
    assert_has(apply(f, ADD("x"), ",\"operation_key\":\"\""), "INVALID_ARGUMENT", NULL);
    ((struct workspace *)f->registry.items[0])->profile = PROFILE_READ_ONLY;
    out = apply(f, ADD("x"), "");
    assert_has(out, "UNAUTHORIZED", NULL);
    assert_null(strstr(out, "operation_id"));
    assert_has(apply(f, ADD("x"), ",\"check_only\":true"), "UNAUTHORIZED", NULL);
}

static void test_key_replays(void **state)
{
    struct fixture *f = *state;
    autofree char *first = mem_strdup(apply(f, ADD("a"), ",\"operation_key\":\"k\""));
    assert_has(first, "\"status\":\"applied\"", "\"replayed\":false", NULL);
    autofree char *id = mem_dup(strstr(first, "op-"), 3 + 36);
    const char *out = apply(f, ADD("a"), ",\"operation_key\":\"k\"");
    assert_has(out, id, "\"replayed\":true", "\"status\":\"applied\"", "after_version", NULL);
    out = apply(f, ADD("b"), ",\"operation_key\":\"k\"");
    assert_has(out, "OPERATION_KEY_CONFLICT", NULL);
    assert_null(strstr(out, "\\\"operation_id\\\""));
    assert_false(exists(f, "b"));
    /* The preview is another request. */
    assert_has(apply(f, ADD("a"), ",\"operation_key\":\"k\",\"check_only\":true"),
               "OPERATION_KEY_CONFLICT", NULL);
    /* What was refused stays refused under its key, and says why. */
    assert_has(apply(f, ADD("a"), ",\"operation_key\":\"r\""), "ADD_FILE_EXISTS",
               "\"isError\":true", NULL);
    assert_has(apply(f, ADD("a"), ",\"operation_key\":\"r\""), "\"status\":\"rejected\"",
               "\"replayed\":true", "\"error\":{\"code\":\"ADD_FILE_EXISTS\"", NULL);
}

static char *id_of(const char *answer)
{
    return mem_dup(strstr(answer, "op-"), 3 + 36);
}

/* In memory a plan without a key waits for its outcome, and whoever reads sees both. */
static void test_a_plan_may_wait(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autorecord seen = {0};
    autorecord keyed = {0};
    fixture_file(f, "a", "1\n", 2);
    autofree char *id =
        id_of(apply(f, PATCH("*** Update File: a\\n@@\\n-1\\n+2\\n"), ",\"durable\":false"));
    assert_int_equal(recorder_waiting(f->server.recorder), 1);
    assert_int_equal(opstore_get(f->ledger, id, &seen, &e), -1);
    /* The row of a patch with a key comes behind it all the same. */
    autofree char *second = id_of(apply(f, ADD("b"), ",\"operation_key\":\"k\""));
    assert_int_equal(opstore_get(f->ledger, id, &seen, &e), 0);
    assert_int_equal(seen.status, OP_APPLIED);
    assert_true(seen.planned_ms != 0 && seen.finished_ms != 0 && seen.inverse_size > 0);
    assert_int_equal(seen.n_changes, 1);
    assert_string_equal(seen.changes[0].path, "a");
    assert_int_equal(opstore_get(f->ledger, second, &keyed, &e), 0);
    assert_true(keyed.seq > seen.seq);
}

/* One of many changes, or with much to undo, does not. */
static void test_a_large_plan_does_not_wait(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    autorecord seen = {0};
    autofree char *old = mem_zalloc(1, PATCH_RECORD_MAX + 2);
    memset(old, 'x', PATCH_RECORD_MAX);
    old[PATCH_RECORD_MAX] = '\n';
    fixture_file(f, "big", old, PATCH_RECORD_MAX + 1);
    autofree char *id = id_of(apply(f, PATCH("*** Delete File: big\\n"), ""));
    assert_int_equal(opstore_get(f->ledger, id, &seen, &e), 0);
    assert_true(seen.planned_ms != 0 && seen.inverse_size > PATCH_RECORD_MAX);
}

/* Two requests of one key at once: the second waits and gets what the first did. */
static void test_key_at_once(void **state)
{
    struct fixture *f = *state;
    buf_truncate(&f->sent, 0);
    send_patch(f, "1", ADD("a"), ",\"operation_key\":\"k\"");
    send_patch(f, "2", ADD("a"), ",\"operation_key\":\"k\"");
    const char *out = fixture_run(f);
    const char *second = strstr(out, "\"id\":2");
    assert_non_null(second);
    assert_has(out, "\"id\":1,\"result\"", "\"replayed\":false", NULL);
    assert_has(second, "\"replayed\":true", "\"status\":\"applied\"", NULL);
}

static void test_order_and_cancel(void **state)
{
    struct fixture *f = *state;
    static const char cancel[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                                 "\"params\":{\"requestId\":2}}";
    fixture_file(f, "n", "0\n", 2);
    buf_truncate(&f->sent, 0);
    send_patch(f, "1", PATCH("*** Update File: n\\n@@\\n-0\\n+1\\n"), "");
    send_patch(f, "2", ADD("never"), "");
    send_patch(f, "3", PATCH("*** Update File: n\\n@@\\n-1\\n+2\\n"), "");
    session_message(&f->session, cancel, strlen(cancel));
    const char *out = fixture_run(f);
    assert_has(out, "\"id\":1,\"result\"", "\"id\":3,\"result\"", NULL);
    assert_null(strstr(out, "\"id\":2"));
    assert_null(strstr(out, "isError"));
    assert_false(exists(f, "never"));
}

static void send_and_cancel(struct fixture *f, const char *patch, const char *rest)
{
    static const char cancel[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                                 "\"params\":{\"requestId\":1}}";
    buf_truncate(&f->sent, 0);
    send_patch(f, "1", patch, rest);
    session_message(&f->session, cancel, strlen(cancel));
    assert_string_equal(fixture_run(f), "");
}

/* A patch that runs goes on when its call is cancelled, and the ledger remembers it. */
static void test_cancel_running(void **state)
{
    struct fixture *f = *state;
    send_and_cancel(f, ADD("a"), "");
    assert_true(exists(f, "a"));
    assert_has(fixture_call(f, "list_operations", "{}"), "\"status\":\"applied\"",
               "\"truncated\":false", NULL);
}

/* One whose key is still being looked up leaves no trace, and its key is free. */
static void test_cancel_during_look_up(void **state)
{
    struct fixture *f = *state;
    send_and_cancel(f, ADD("a"), ",\"operation_key\":\"k\"");
    assert_false(exists(f, "a"));
    assert_has(fixture_call(f, "list_operations", "{}"), "\"operations\":[]", NULL);
    assert_has(apply(f, ADD("a"), ",\"operation_key\":\"k\""), "\"replayed\":false",
               "\"status\":\"applied\"", NULL);
}

static void test_queue_full(void **state)
{
    struct fixture *f = *state;
    buf_truncate(&f->sent, 0);
    f->n_sent = 0;
    for (unsigned i = 0; i < LANE_WAITERS_MAX + 2; i++) {
        char id[16];
        char patch[80];
        snprintf(id, sizeof(id), "%u", i);
        snprintf(patch, sizeof(patch), ADD("f%u"), i);
        send_patch(f, id, patch, "");
    }
    assert_int_equal(f->n_sent, 1);
    assert_has(buf_cstr(&f->sent), "RESOURCE_QUEUE_FULL", "LANE_WAITERS_MAX (64)", NULL);
    fixture_run(f);
    assert_int_equal(f->n_sent, LANE_WAITERS_MAX + 2);
    assert_true(exists(f, "f64"));
    assert_false(exists(f, "f65"));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
UNIT_MAIN(WITH(test_applies), WITH(test_refusals), WITH(test_key_replays), WITH(test_key_at_once),
          WITH(test_a_plan_may_wait), WITH(test_a_large_plan_does_not_wait),
          WITH(test_order_and_cancel), WITH(test_cancel_running), WITH(test_cancel_during_look_up),
          WITH(test_queue_full))
