/* core/operations_store: keys, outcomes, commands, look-ups, pages. */
#include "operations_fixture.h"

static void test_a_new_operation_is_unknown_and_unfinished(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct op_request q = patch_request("w", "k", "f");
    q.work_id = "work-1";
    q.approval_id = "appr-1";
    autorecord r = {0};
    assert_int_equal(opstore_begin(f->l, &q, LEDGER_DURABLE, &r, &e), 0);
    assert_true(str_starts(r.operation_id, "op-"));
    assert_int_equal(strlen(r.operation_id), 39);
    assert_int_equal(r.status, OP_UNKNOWN);
    assert_int_equal(r.created_ms, f->clock_ms);
    assert_int_equal(r.finished_ms, 0);
    assert_int_equal(r.n_events, 1);
    assert_string_equal(r.events[0].name, "minted");
    assert_int_equal(r.events[0].at_ms, f->clock_ms);
    assert_string_equal(r.work_id, "work-1");
    assert_string_equal(r.approval_id, "appr-1");
    assert_null(r.reverts);
    assert_int_equal(r.planned_ms, 0);
}

static void test_keys_replay_and_conflict(void **state)
{
    struct fixture *f = *state;
    struct op_request q = patch_request("w", "k", "f");
    autofree char *id = begin(f, &q);
    const struct {
        struct op_request q;
        int want;
        enum err_code code;
    } rows[] = {
        {patch_request("w", "k", "f"), 1, ERR_NONE},
        {patch_request("w", "k", "other"), -1, ERR_OPERATION_KEY_CONFLICT},
        {{.kind = OP_COMMAND,
          .workspace_id = "w",
          .key = "k",
          .fingerprint = "f",
          .argv_sha256 = HASH_A},
         -1,
         ERR_OPERATION_KEY_CONFLICT},
        {patch_request("w2", "k", "other"), 0, ERR_NONE}, /* L44: a key belongs to its workspace */
        {patch_request("w", "k2", "f"), 0, ERR_NONE},
        {patch_request("w", NULL, "f"), 0, ERR_NONE},
        {patch_request("w", NULL, "f"), 0, ERR_NONE},
        {patch_request("w", "", "f"), -1, ERR_INVALID_ARGUMENT},
    };
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            struct err e = {0};
            autorecord r = {0};
            int want = rows[i].q.key != NULL && rows[i].want == 0 && round == 1 ? 1 : rows[i].want;
            assert_int_equal(opstore_begin(f->l, &rows[i].q, LEDGER_LAZY, &r, &e), want);
            assert_int_equal(e.code, rows[i].code);
            if (i == 0)
                assert_string_equal(r.operation_id, id);
        }
        fixture_reopen(f); /* and after a restart, the unfinished row stays as it is */
        assert_int_equal(status_of(f, id), OP_UNKNOWN);
    }
}

static int replay_by_begin(struct fixture *f, const struct op_request *q, struct op_record *ret)
{
    return opstore_begin(f->l, q, LEDGER_LAZY, ret, NULL);
}

static int replay_by_peek(struct fixture *f, const struct op_request *q, struct op_record *ret)
{
    return opstore_peek(f->l, q, ret, NULL);
}

static void test_a_replay_tells_the_whole_story(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct op_request q = patch_request("w", "k", "f");
    autorecord none = {0};
    assert_int_equal(opstore_peek(f->l, &q, &none, &e), 0);
    assert_int_equal(fixture_number(f, "SELECT count(*) FROM operations"), 0);
    autofree char *id = begin(f, &q);
    plan(f, id, "a", "1", "2");
    struct op_outcome o = {.status = OP_FAILED_PARTIAL, .reason = "the disk is full"};
    assert_int_equal(opstore_finish(f->l, id, &o, LEDGER_LAZY, &e), 0);
    static int (*const ways[])(struct fixture *, const struct op_request *,
                               struct op_record *) = {replay_by_begin, replay_by_peek};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        autorecord r = {0};
        assert_int_equal(ways[i](f, &q, &r), 1);
        assert_string_equal(r.operation_id, id);
        assert_int_equal(r.n_changes, 1);
        assert_int_equal(r.n_events, 3);
        assert_string_equal(r.events[1].name, "planned");
        assert_string_equal(r.events[2].name, "finished");
        assert_string_equal(r.events[2].status, "failed_partial");
        assert_string_equal(r.events[2].reason, "the disk is full");
    }
    q.fingerprint = "other";
    assert_int_equal(opstore_peek(f->l, &q, &none, &e), -1);
    assert_int_equal(e.code, ERR_OPERATION_KEY_CONFLICT);
    q.key = NULL;
    assert_int_equal(opstore_peek(f->l, &q, &none, &e), 0);
}

static void test_a_long_key_is_refused_by_name(void **state)
{
    struct fixture *f = *state;
    char key[OPSTORE_KEY_MAX + 2];
    memset(key, 'k', sizeof(key));
    key[OPSTORE_KEY_MAX + 1] = '\0';
    struct op_request q = patch_request("w", key, "f");
    struct err e = {0};
    autorecord r = {0};
    assert_int_equal(opstore_begin(f->l, &q, LEDGER_LAZY, &r, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_non_null(strstr(e.message, "OPSTORE_KEY_MAX is 256"));
    key[OPSTORE_KEY_MAX] = '\0';
    assert_int_equal(opstore_begin(f->l, &q, LEDGER_LAZY, &r, &e), 0);
}

static void test_outcomes_are_recorded_once(void **state)
{
    struct fixture *f = *state;
    static const enum op_status rows[] = {
        OP_APPLIED, OP_CHECKED, OP_REJECTED, OP_UNKNOWN, OP_FAILED_ROLLED_BACK, OP_FAILED_PARTIAL};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct op_request q = patch_request("w", NULL, "f");
        autofree char *id = begin(f, &q);
        struct err e = {0};
        struct err refusal = {0};
        err_set(&refusal, ERR_VERSION_CONFLICT, "file a is at another version");
        struct op_outcome o = {.status = rows[i], .reason = "because"};
        o.refusal = rows[i] == OP_REJECTED ? &refusal : NULL;
        f->clock_ms += 5;
        assert_int_equal(opstore_finish(f->l, id, &o, LEDGER_LAZY, &e), 0);
        assert_int_equal(opstore_finish(f->l, id, &o, LEDGER_LAZY, &e), -1);
        assert_int_equal(e.code, ERR_INTERNAL);
        autorecord r = {0};
        assert_int_equal(opstore_get(f->l, id, &r, &e), 0);
        assert_int_equal(r.status, rows[i]);
        assert_int_equal(r.finished_ms, f->clock_ms);
        assert_string_equal(r.error_code, o.refusal ? "VERSION_CONFLICT" : "");
        assert_string_equal(r.reason, o.refusal ? refusal.message : "because");
        assert_int_equal(r.n_events, 2);
        assert_string_equal(r.events[1].name, "finished");
        assert_string_equal(r.events[1].status, op_status_name(rows[i]));
    }
    struct op_outcome o = {.status = OP_APPLIED};
    struct err e = {0};
    assert_int_equal(opstore_finish(f->l, "op-none", &o, LEDGER_LAZY, &e), -1);
    assert_int_equal(e.code, ERR_OPERATION_NOT_FOUND);
}

static void test_a_plan_keeps_changes_and_inverse(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct op_request q = patch_request("w", NULL, "f");
    autofree char *id = begin(f, &q);
    struct patch_change c[] = {
        change("a\xff/b", PATCH_ADD, "", "sha256:1"),
        change("c", PATCH_UPDATE, "sha256:2", "sha256:3"),
        change("d", PATCH_DELETE, "sha256:4", ""),
        change("e", PATCH_MOVE, "", "sha256:4"),
    };
    c[1].fuzzy = true;
    assert_int_equal(opstore_plan(f->l, id, c, 4, "in\0verse", 8, LEDGER_DURABLE, &e), 0);
    fixture_reopen(f);
    autorecord r = {0};
    assert_int_equal(opstore_get(f->l, id, &r, &e), 0);
    assert_true(r.planned_ms != 0);
    assert_int_equal(r.inverse_size, 8);
    assert_int_equal(r.n_changes, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(r.changes[i].path, c[i].path);
        assert_int_equal(r.changes[i].kind, c[i].kind);
        assert_string_equal(r.changes[i].before, c[i].before);
        assert_string_equal(r.changes[i].after, c[i].after);
        assert_int_equal(r.changes[i].fuzzy, c[i].fuzzy);
    }
    struct op_outcome o = {.status = OP_APPLIED, .changes = c, .n_changes = 2};
    assert_int_equal(opstore_finish(f->l, id, &o, LEDGER_LAZY, &e), 0);
    autorecord after = {0};
    assert_int_equal(opstore_get(f->l, id, &after, &e), 0);
    assert_int_equal(after.n_changes, 2);
    autobuf inverse = BUF_INIT;
    assert_int_equal(opstore_inverse(f->l, id, &inverse, &e), 0);
    assert_int_equal(inverse.len, 8);
    assert_memory_equal(buf_bytes(&inverse), "in\0verse", 8);
}

static void test_too_large_an_inverse_is_said(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct op_request q = patch_request("w", NULL, "f");
    autofree char *id = begin(f, &q);
    struct patch_change c = change("a", PATCH_UPDATE, "1", "2");
    autofree char *big = mem_zalloc(1, OPSTORE_INVERSE_MAX + 1);
    assert_int_equal(opstore_plan(f->l, id, &c, 1, big, OPSTORE_INVERSE_MAX + 1, LEDGER_LAZY, &e),
                     0);
    finish(f, id, OP_APPLIED);
    autorecord r = {0};
    assert_int_equal(opstore_get(f->l, id, &r, &e), 0);
    assert_int_equal(r.inverse_size, 0);
    assert_non_null(strstr(r.events[1].reason, "OPSTORE_INVERSE_MAX"));
    autobuf inverse = BUF_INIT;
    assert_int_equal(opstore_inverse(f->l, id, &inverse, &e), -1);
    assert_int_equal(e.code, ERR_OPERATION_NOT_REVERTIBLE);
}

static void test_commands_are_recorded_without_their_text(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct op_request q = {.kind = OP_COMMAND,
                           .workspace_id = "w",
                           .key = "run",
                           .fingerprint = "f",
                           .argv_sha256 = HASH_A};
    autofree char *id = begin(f, &q);
    assert_int_equal(status_of(f, id), OP_RUNNING);
    assert_int_equal(opstore_start_command(f->l, id, "proc-1", HASH_A, LEDGER_LAZY, &e), 0);
    struct op_end end = {.status = OP_ENDED,
                         .termination = "exited",
                         .has_exit_code = true,
                         .exit_code = 3,
                         .denials = "[{\"kind\":\"write\",\"path\":\"/etc/x\"}]",
                         .started_ms = 7,
                         .ended_ms = 9};
    assert_int_equal(opstore_end_command(f->l, id, &end, LEDGER_LAZY, &e), 0);
    assert_int_equal(opstore_end_command(f->l, id, &end, LEDGER_LAZY, &e), -1);
    autorecord r = {0};
    assert_int_equal(opstore_get_by_process(f->l, "proc-1", &r, &e), 0);
    assert_string_equal(r.operation_id, id);
    assert_int_equal(r.status, OP_ENDED);
    assert_string_equal(r.command.argv_sha256, HASH_A);
    assert_string_equal(r.command.plan_sha256, HASH_A);
    assert_string_equal(r.command.termination, "exited");
    assert_true(r.command.has_exit_code);
    assert_int_equal(r.command.exit_code, 3);
    assert_int_equal(r.command.signal, 0);
    assert_string_equal(r.command.denials, end.denials);
    assert_int_equal(r.command.started_ms, 7);
    assert_int_equal(r.command.ended_ms, 9);
    autorecord none = {0};
    assert_int_equal(opstore_get_by_process(f->l, "proc-2", &none, &e), -1);
    assert_int_equal(e.code, ERR_OPERATION_NOT_FOUND);
    assert_int_equal(opstore_get_by_process(f->l, "", &none, &e), -1);
}

static void test_signals_and_refusals_have_no_exit_code(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct op_request q = {
        .kind = OP_COMMAND, .workspace_id = "w", .fingerprint = "f", .argv_sha256 = HASH_A};
    autofree char *killed = begin(f, &q);
    struct op_end end = {.status = OP_ENDED, .termination = "signaled", .signal = 9};
    assert_int_equal(opstore_end_command(f->l, killed, &end, LEDGER_LAZY, &e), 0);
    autorecord r = {0};
    assert_int_equal(opstore_get(f->l, killed, &r, &e), 0);
    assert_false(r.command.has_exit_code);
    assert_int_equal(r.command.signal, 9);
    assert_null(r.command.denials);
    autofree char *refused = begin(f, &q);
    struct err refusal = {0};
    err_set(&refusal, ERR_PROCESS_SPAWN_FAILED, "no such file");
    struct op_outcome o = {.status = OP_REJECTED, .refusal = &refusal};
    assert_int_equal(opstore_finish(f->l, refused, &o, LEDGER_LAZY, &e), 0);
    autofree char *denials = mem_zalloc(1, OPSTORE_DENIALS_MAX + 2);
    memset(denials, '[', OPSTORE_DENIALS_MAX + 1);
    autofree char *third = begin(f, &q);
    end.denials = denials;
    assert_int_equal(opstore_end_command(f->l, third, &end, LEDGER_LAZY, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_int_equal(status_of(f, third), OP_RUNNING);
}

static void test_running_commands_are_lost_with_their_gateway(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct op_request q = {
        .kind = OP_COMMAND, .workspace_id = "w", .fingerprint = "f", .argv_sha256 = HASH_A};
    struct op_request p = patch_request("w", NULL, "f");
    autofree char *running = begin(f, &q);
    autofree char *patch = begin(f, &p);
    fixture_reopen(f);
    assert_int_equal(opstore_lose_commands(f->l, &e), 1);
    assert_int_equal(opstore_lose_commands(f->l, &e), 0);
    autorecord r = {0};
    assert_int_equal(opstore_get(f->l, running, &r, &e), 0);
    assert_int_equal(r.status, OP_LOST);
    assert_true(r.finished_ms > 0);
    assert_string_equal(r.events[1].name, "recovered");
    assert_int_equal(status_of(f, patch), OP_UNKNOWN);
}

static void test_look_ups_need_what_exists(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct op_request a = patch_request("w", "k", "f");
    struct op_request b = patch_request("w2", "k", "f");
    struct op_request c = patch_request("w", "single", "f");
    autofree char *in_w = begin(f, &a);
    autofree char *in_w2 = begin(f, &b);
    autofree char *single = begin(f, &c);
    const struct {
        const char *workspace, *key, *want;
        enum err_code code;
    } rows[] = {
        {"w", "k", in_w, ERR_NONE},
        {"w2", "k", in_w2, ERR_NONE},
        {NULL, "k", NULL, ERR_INVALID_ARGUMENT},
        {NULL, "single", single, ERR_NONE},
        {"w2", "single", NULL, ERR_OPERATION_NOT_FOUND},
        {NULL, "none", NULL, ERR_OPERATION_NOT_FOUND},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autorecord r = {0};
        e = (struct err){0};
        int got = opstore_get_by_key(f->l, rows[i].workspace, rows[i].key, &r, &e);
        assert_int_equal(got, rows[i].want == NULL ? -1 : 0);
        assert_int_equal(e.code, rows[i].code);
        if (rows[i].want != NULL)
            assert_string_equal(r.operation_id, rows[i].want);
    }
    autorecord r = {0};
    assert_int_equal(opstore_get(f->l, "op-invented", &r, &e), -1);
    assert_int_equal(e.code, ERR_OPERATION_NOT_FOUND);
}

static size_t count_pages(struct fixture *f, struct op_filter filter, size_t *ret_pages)
{
    size_t total = 0;
    int64_t last = INT64_MAX;
    *ret_pages = 0;
    do {
        struct err e = {0};
        struct op_page page = {0};
        assert_int_equal(opstore_list(f->l, &filter, &page, &e), 0);
        for (size_t i = 0; i < page.n; i++) {
            assert_true(page.items[i].seq < last);
            last = page.items[i].seq;
        }
        total += page.n;
        ++*ret_pages;
        filter.before_seq = page.next_seq;
        op_page_fini(&page);
    } while (filter.before_seq != 0);
    return total;
}

static void test_lists_come_in_pages_newest_first(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 25; i++) {
        struct op_request q = patch_request(i % 5 == 0 ? "w2" : "w", NULL, "f");
        autofree char *id = begin(f, &q);
        if (i % 2 == 0)
            finish(f, id, OP_APPLIED);
    }
    const struct {
        struct op_filter filter;
        size_t rows, pages;
    } rows[] = {
        {{.kind = -1}, 25, 1},
        {{.kind = -1, .limit = 10}, 25, 3},
        {{.kind = -1, .limit = 5}, 25, 5},
        {{.kind = -1, .limit = 10, .workspace_id = "w"}, 20, 2},
        {{.kind = -1, .workspace_id = "w2", .unfinished = true}, 2, 1},
        {{.kind = -1, .unfinished = true, .limit = 5}, 12, 3},
        {{.kind = OP_PATCH, .limit = 10, .workspace_id = "w2"}, 5, 1},
        {{.kind = OP_COMMAND}, 0, 1},
        {{.kind = -1, .workspace_id = "w3"}, 0, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t pages = 0;
        assert_int_equal(count_pages(f, rows[i].filter, &pages), rows[i].rows);
        assert_int_equal(pages, rows[i].pages);
    }
    struct err e = {0};
    struct op_page page = {0};
    struct op_filter big = {.kind = -1, .limit = OPSTORE_PAGE_MAX + 1};
    assert_int_equal(opstore_list(f->l, &big, &page, &e), -1);
    assert_int_equal(e.code, ERR_OUTPUT_LIMIT);
}

/* One transaction: what is planned is there with the row, or neither is. */
static void test_a_plan_and_its_row_come_together(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct patch_change c = change("a", PATCH_UPDATE, "sha256:1", "sha256:2");
    const struct op_plan planned = {&c, 1, "undo", 4};
    struct op_request q = patch_request("w", "k", "f");
    autorecord r = {0};
    autorecord again = {0};
    autorecord seen = {0};
    assert_int_equal(opstore_begin_planned(f->l, &q, &planned, LEDGER_DURABLE, &r, &e), 0);
    assert_int_equal(opstore_get(f->l, r.operation_id, &seen, &e), 0);
    assert_int_equal(seen.status, OP_UNKNOWN);
    assert_int_equal(seen.n_changes, 1);
    assert_int_equal(seen.inverse_size, 4);
    assert_true(seen.planned_ms != 0 && seen.finished_ms == 0);
    /* The key answers; the second plan is not recorded. */
    c = change("b", PATCH_UPDATE, "", "sha256:3");
    assert_int_equal(opstore_begin_planned(f->l, &q, &planned, LEDGER_LAZY, &again, &e), 1);
    assert_string_equal(again.operation_id, r.operation_id);
    assert_string_equal(again.changes[0].path, "a");
    q.fingerprint = "other";
    assert_int_equal(opstore_begin_planned(f->l, &q, &planned, LEDGER_LAZY, &again, &e), -1);
    assert_int_equal(e.code, ERR_OPERATION_KEY_CONFLICT);
}

/* What was carried out already is there at once, with its plan and its outcome. */
static void test_a_plan_and_its_outcome_come_together(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct patch_change c = change("a", PATCH_UPDATE, "sha256:1", "sha256:2");
    const struct op_plan planned = {&c, 1, "undo", 4};
    const struct op_outcome applied = {.status = OP_APPLIED};
    struct op_request q = patch_request("w", NULL, "f");
    q.operation_id = "op-mine";
    autorecord r = {0};
    autorecord seen = {0};
    assert_int_equal(opstore_record_planned(f->l, &q, &planned, &applied, LEDGER_LAZY, &r, &e), 0);
    assert_int_equal(opstore_get(f->l, "op-mine", &seen, &e), 0);
    assert_int_equal(seen.status, OP_APPLIED);
    assert_int_equal(seen.n_changes, 1);
    assert_int_equal(seen.inverse_size, 4);
    assert_true(seen.planned_ms != 0 && seen.finished_ms != 0);
}

/* Many rows go into one statement; all numbers around that are there, in order. */
static void test_plans_of_any_length(void **state)
{
    struct fixture *f = *state;
    static const size_t lengths[] = {0, 1, 31, 32, 33, 64, 97};
    for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
        struct patch_change changes[97];
        char paths[97][8];
        struct err e = {0};
        autorecord r = {0};
        autorecord seen = {0};
        for (size_t i = 0; i < lengths[k]; i++) {
            snprintf(paths[i], sizeof(paths[i]), "p%zu", i);
            changes[i] = change(paths[i], (enum patch_kind)(i % 4), "sha256:1", "sha256:2");
            changes[i].fuzzy = i % 3 == 0;
        }
        const struct op_plan planned = {changes, lengths[k], "undo", 4};
        const struct op_request q = patch_request("w", NULL, "f");
        assert_int_equal(opstore_begin_planned(f->l, &q, &planned, LEDGER_LAZY, &r, &e), 0);
        assert_int_equal(opstore_get(f->l, r.operation_id, &seen, &e), 0);
        assert_int_equal(seen.n_changes, lengths[k]);
        for (size_t i = 0; i < lengths[k]; i++) {
            assert_string_equal(seen.changes[i].path, paths[i]);
            assert_int_equal(seen.changes[i].kind, i % 4);
            assert_string_equal(seen.changes[i].before, "sha256:1");
            assert_string_equal(seen.changes[i].after, "sha256:2");
            assert_int_equal(seen.changes[i].fuzzy, i % 3 == 0);
        }
    }
}

static void test_what_came_to_nothing_is_recorded_at_once(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct err refusal;
    err_set(&refusal, ERR_INVALID_PATCH, "does not apply");
    struct op_request q = patch_request("w", "k", "f");
    const struct op_outcome outcome = {.status = OP_REJECTED, .refusal = &refusal};
    autorecord r = {0};
    autorecord again = {0};
    autorecord seen = {0};
    assert_int_equal(opstore_record(f->l, &q, &outcome, LEDGER_LAZY, &r, &e), 0);
    assert_int_equal(opstore_get(f->l, r.operation_id, &seen, &e), 0);
    assert_int_equal(seen.status, OP_REJECTED);
    assert_string_equal(seen.error_code, "INVALID_PATCH");
    assert_string_equal(seen.reason, "does not apply");
    assert_true(seen.finished_ms != 0);
    assert_int_equal(opstore_record(f->l, &q, &outcome, LEDGER_LAZY, &again, &e), 1);
    assert_string_equal(again.operation_id, r.operation_id);
}

/* Ids that the caller chose are in the row from the first moment. */
static void test_ids_of_the_caller(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    const struct op_request q = {.kind = OP_COMMAND,
                                 .workspace_id = "w",
                                 .fingerprint = "f",
                                 .argv_sha256 = HASH_A,
                                 .operation_id = "op-mine",
                                 .process_id = "proc-mine"};
    autorecord r = {0};
    autorecord seen = {0};
    assert_int_equal(opstore_begin(f->l, &q, LEDGER_LAZY, &r, &e), 0);
    assert_string_equal(r.operation_id, "op-mine");
    assert_string_equal(r.command.process_id, "proc-mine");
    assert_int_equal(opstore_get_by_process(f->l, "proc-mine", &seen, &e), 0);
    assert_string_equal(seen.operation_id, "op-mine");
    assert_int_equal(seen.status, OP_RUNNING);
    /* An id is used once. */
    autorecord second = {0};
    assert_int_equal(opstore_begin(f->l, &q, LEDGER_LAZY, &second, &e), -1);
    assert_int_equal(e.code, ERR_LEDGER_FAILED);
}

/* New egress rules: finished from the start, in lists by their kind, and nothing undoes them. */
static void test_new_rules(void **state)
{
    struct fixture *f = *state;
    struct err e = {0};
    struct buf inverse = BUF_INIT;
    const char *rules = "{\"by\":\"the operator's token\",\"changed\":[\"allow\"]}";
    const struct op_request q = {
        .kind = OP_EGRESS, .workspace_id = "w", .fingerprint = "", .rules = rules};
    const struct op_outcome outcome = {.status = OP_APPLIED, .reason = "one has not"};
    autorecord r = {0}, seen = {0};
    struct op_page page = {0};
    assert_int_equal(opstore_record(f->l, &q, &outcome, LEDGER_DURABLE, &r, &e), 0);
    assert_string_equal(r.rules, rules);
    assert_int_equal(opstore_get(f->l, r.operation_id, &seen, &e), 0);
    assert_int_equal(seen.kind, OP_EGRESS);
    assert_int_equal(seen.status, OP_APPLIED);
    assert_string_equal(seen.rules, rules);
    assert_string_equal(seen.reason, "one has not");
    assert_true(seen.finished_ms != 0);
    assert_int_equal(opstore_inverse(f->l, r.operation_id, &inverse, &e), -1);
    assert_int_equal(e.code, ERR_OPERATION_NOT_REVERTIBLE);
    const struct op_filter all = {.kind = OP_EGRESS}, patches = {.kind = OP_PATCH};
    assert_int_equal(opstore_list(f->l, &all, &page, &e), 0);
    assert_int_equal(page.n, 1);
    op_page_fini(&page);
    assert_int_equal(opstore_list(f->l, &patches, &page, &e), 0);
    assert_int_equal(page.n, 0);
    op_page_fini(&page);
}

UNIT_MAIN(TEST(test_a_new_operation_is_unknown_and_unfinished), TEST(test_keys_replay_and_conflict),
          TEST(test_a_replay_tells_the_whole_story), TEST(test_a_long_key_is_refused_by_name),
          TEST(test_outcomes_are_recorded_once), TEST(test_a_plan_keeps_changes_and_inverse),
          TEST(test_too_large_an_inverse_is_said),
          TEST(test_commands_are_recorded_without_their_text),
          TEST(test_signals_and_refusals_have_no_exit_code),
          TEST(test_running_commands_are_lost_with_their_gateway),
          TEST(test_look_ups_need_what_exists), TEST(test_lists_come_in_pages_newest_first),
          TEST(test_a_plan_and_its_row_come_together),
          TEST(test_a_plan_and_its_outcome_come_together), TEST(test_plans_of_any_length),
          TEST(test_what_came_to_nothing_is_recorded_at_once), TEST(test_ids_of_the_caller),
          TEST(test_new_rules))
