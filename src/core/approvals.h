/* core/approvals: calls that wait for a person, as a state machine on disk.
 *
 * Theory. A hold keeps one call (tool and arguments) until it is decided and then run once:
 *
 *   pending --grant--> granted --claim--> queued --start--> resuming --consume--> consumed
 *      |                  ^                 |  \--consume (refused before it ran)--> consumed
 *      +--deny--> denied  +----release------+------------------+
 *
 * Granting is an act of the operator's side: the operator's HTTP token, an elicitation that a
 * person answered, or the command line. The caller that asked can look, resume and withdraw (deny),
 * never grant, unless the operator set approvals.self_grant. `start` is durable before the call
 * runs, so after a crash a hold found in `resuming` may have run: approvals_recover() asks the
 * ledger (patches), or says that nobody knows (commands); nothing is ever run twice.
 *
 * Arguments are kept while the hold is active and overwritten, in the file too, when it ends.
 * A hold grants no right that the workspace's policy does not give: policy is asked again when the
 * call runs. Works in any workspace, whatever its approvals setting.
 *
 * All functions block on the ledger and may run on any thread. Errors of all: LEDGER_FAILED.
 * Must not: run anything, or decide by what the caller says about itself.
 */
#ifndef CODESPACE_CORE_APPROVALS_H
#define CODESPACE_CORE_APPROVALS_H

#include "base/buf.h"
#include "base/err.h"
#include "core/ledger.h"
#include "core/operations_store.h"

#include <stdbool.h>
#include <stdint.h>

/* Active holds of a workspace: more is a caller in a loop, not work for a person. */
#define APPROVALS_ACTIVE_MAX 256u
/* Arguments of one hold (a patch of PATCH_TEXT_MAX, escaped), and of all active holds of a
 * workspace. */
#define APPROVALS_ARGUMENTS_MAX (16u << 20)
#define APPROVALS_ARGUMENTS_TOTAL_MAX (64u << 20)
/* Largest result that is kept for a second resume. */
#define APPROVALS_RESULT_MAX (4u << 20)
/* Rows of a list: default and largest. */
#define APPROVALS_PAGE_DEFAULT 50u
#define APPROVALS_PAGE_MAX 500u

enum approval_state {
    APPROVAL_PENDING,
    APPROVAL_GRANTED,
    APPROVAL_DENIED,
    APPROVAL_QUEUED,
    APPROVAL_RESUMING,
    APPROVAL_CONSUMED,
};

enum approval_event {
    APPROVAL_GRANT,
    APPROVAL_DENY,
    APPROVAL_CLAIM,
    APPROVAL_START,
    APPROVAL_RELEASE,
    APPROVAL_CONSUME,
    APPROVAL_REQUEUE, /* recovery: it did not run */
};

enum approval_actor {
    APPROVAL_BY_OPERATOR_TOKEN,
    APPROVAL_BY_ELICITATION,
    APPROVAL_BY_COMMAND_LINE,
    APPROVAL_BY_CALLER,
};

enum approval_tool { APPROVAL_APPLY_PATCH, APPROVAL_EXEC_COMMAND };

const char *approval_state_name(enum approval_state s);
const char *approval_tool_name(enum approval_tool t);
const char *approval_actor_name(enum approval_actor a);

/* The state after `event`, or -1 when the table does not allow it. Pure. */
int approval_next(enum approval_state state, enum approval_event event);

struct approval {
    int64_t seq;
    char *approval_id;
    char *workspace_id;
    char *fingerprint;
    enum approval_tool tool;
    enum approval_state state;
    char *arguments;                            /* JSON object; once ended {"scrubbed":true, ...} */
    char resolved_by[16];                       /* an actor's name, "" while pending */
    char *result;                               /* JSON; NULL = none */
    bool result_is_error;                       /* result is an error body */
    uint64_t created_ms, resolved_ms, ended_ms; /* 0 = not yet */
};

#define autoapproval __attribute__((cleanup(approval_fini))) struct approval
void approval_fini(struct approval *a);

struct approval_request {
    const char *workspace_id;
    enum approval_tool tool;
    const char *fingerprint; /* what makes two calls the same */
    const char *arguments;   /* JSON object */
};

/* Hold a call. 0: a new hold, pending. 1: the same call is held already, *ret is that hold.
 * Errors: LIMIT_EXCEEDED (arguments), RESOURCE_QUEUE_FULL (holds or their bytes). */
int approvals_create(struct ledger *l, const struct approval_request *request, struct approval *ret,
                     struct err *e);

/* Errors: APPROVAL_NOT_FOUND. */
int approvals_get(struct ledger *l, const char *approval_id, struct approval *ret, struct err *e);

struct approval_filter {
    const char *workspace_id; /* NULL = all */
    bool active;              /* leave out the ended */
    int64_t before;           /* the seq of the last one seen; 0 = from the newest */
    uint32_t limit;           /* 0 = APPROVALS_PAGE_DEFAULT */
};

/* Newest first. The caller frees with approvals_free. Errors: OUTPUT_LIMIT. */
int approvals_list(struct ledger *l, const struct approval_filter *filter, struct approval **ret,
                   size_t *ret_n, struct err *e);
void approvals_free(struct approval *items, size_t n);

/* Decide a pending hold. Durable. self_grant is the operator's setting, for APPROVAL_BY_CALLER.
 * Errors: APPROVAL_NOT_FOUND, UNAUTHORIZED (the caller may not grant), APPROVAL_CONFLICT (not
 * pending). */
int approvals_grant(struct ledger *l, const char *approval_id, enum approval_actor actor,
                    bool self_grant, struct err *e);
int approvals_deny(struct ledger *l, const char *approval_id, enum approval_actor actor,
                   struct err *e);

/* Take a granted hold to run it. 0: yours, *ret has the arguments; go on with start, release or
 * finish. 1: it ran before, *ret has its result. Errors: APPROVAL_NOT_FOUND, APPROVAL_CONFLICT
 * (pending, denied, or another resume has it), APPROVAL_AMBIGUOUS (ran, and its result is not
 * kept). */
int approvals_claim(struct ledger *l, const char *approval_id, struct approval *ret, struct err *e);

/* The workspace is ours; the call runs next. Durable. Errors: as claim. */
int approvals_start(struct ledger *l, const char *approval_id, struct err *e);

/* The call certainly did not run, and for a reason that passes (WORKSPACE_BUSY, RESOURCE_QUEUE_FULL
 * and their like): granted again, also after start. */
int approvals_release(struct ledger *l, const char *approval_id, struct err *e);

/* The call ran, or was refused for good: keep its result, overwrite the arguments. Durable.
 * `result` is JSON (a result or an error body). Errors: APPROVAL_AMBIGUOUS when it could not be
 * recorded (the hold stays resuming, and a restart reconciles it); APPROVAL_NOT_FOUND,
 * APPROVAL_CONFLICT. */
int approvals_finish(struct ledger *l, const char *approval_id, const char *result,
                     bool result_is_error, struct err *e);

/* Write the result of the tool for a recorded operation, as JSON. */
typedef void (*approval_render_fn)(void *user, const struct op_record *record, struct buf *ret);

struct approval_recovery {
    unsigned requeued;  /* did not run: granted again */
    unsigned recovered; /* patch ran: result taken from the ledger */
    unsigned ambiguous; /* command: nobody knows */
};

/* At start, after opstore_recover(): settle the holds that a crash left queued or resuming. */
int approvals_recover(struct ledger *l, approval_render_fn render, void *user,
                      struct approval_recovery *ret, struct err *e);

#endif
