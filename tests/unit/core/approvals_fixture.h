/* What the tests of approvals share. */
#ifndef CODESPACE_TESTS_APPROVALS_FIXTURE_H
#define CODESPACE_TESTS_APPROVALS_FIXTURE_H

#include "ledger_fixture.h"

#include "base/str.h"
#include "core/approvals.h"

#define SECRET "the-words-of-a-secret-patch"
#define ARGUMENTS "{\"patch\":\"" SECRET "\"}"

static const struct approval_request patch_hold = {.workspace_id = "w",
                                                   .tool = APPROVAL_APPLY_PATCH,
                                                   .fingerprint = "print",
                                                   .arguments = ARGUMENTS};
static const struct approval_request exec_hold = {.workspace_id = "w",
                                                  .tool = APPROVAL_EXEC_COMMAND,
                                                  .fingerprint = "exec",
                                                  .arguments = "{\"command\":[\"true\"]}"};

static inline char *hold(struct fixture *f, const struct approval_request *q, int want)
{
    struct err e = {0};
    autoapproval a = {0};
    assert_int_equal(approvals_create(f->l, q, &a, &e), want);
    assert_true(str_starts(a.approval_id, "appr-"));
    return mem_strdup(a.approval_id);
}

static inline void grant(struct fixture *f, const char *id)
{
    struct err e = {0};
    if (approvals_grant(f->l, id, APPROVAL_BY_COMMAND_LINE, false, &e) < 0)
        fail_msg("%s", e.message);
}

static inline enum approval_state state_of(struct fixture *f, const char *id)
{
    struct err e = {0};
    autoapproval a = {0};
    assert_int_equal(approvals_get(f->l, id, &a, &e), 0);
    return a.state;
}

static inline void claim(struct fixture *f, const char *id)
{
    struct err e = {0};
    autoapproval a = {0};
    if (approvals_claim(f->l, id, &a, &e) != 0)
        fail_msg("%s", e.message);
    assert_int_equal(a.state, APPROVAL_QUEUED);
}

static inline void start(struct fixture *f, const char *id)
{
    struct err e = {0};
    claim(f, id);
    assert_int_equal(approvals_start(f->l, id, &e), 0);
}

static inline void expect_conflict(struct fixture *f, const char *id, const char *part)
{
    struct err e = {0};
    autoapproval a = {0};
    assert_int_equal(approvals_claim(f->l, id, &a, &e), -1);
    assert_int_equal(e.code, ERR_APPROVAL_CONFLICT);
    assert_non_null(strstr(e.message, part));
}

#endif
