/* core/approvals: see approvals.h. Restarts and retention are in approvals_recover.c. */
#include "core/approvals.h"

#include "base/jsonw.h"
#include "base/str.h"
#include "core/approvals_sql.h"

#include <string.h>

#define STATES 6
#define EVENTS 7

static const char *const state_words[STATES] = {
    [APPROVAL_PENDING] = "pending",   [APPROVAL_GRANTED] = "granted",
    [APPROVAL_DENIED] = "denied",     [APPROVAL_QUEUED] = "queued",
    [APPROVAL_RESUMING] = "resuming", [APPROVAL_CONSUMED] = "consumed",
};

static const char *const tool_words[] = {
    [APPROVAL_APPLY_PATCH] = "apply_patch",
    [APPROVAL_EXEC_COMMAND] = "exec_command",
};

static const char *const actor_words[] = {
    [APPROVAL_BY_OPERATOR_TOKEN] = "operator_token",
    [APPROVAL_BY_ELICITATION] = "elicitation",
    [APPROVAL_BY_COMMAND_LINE] = "command_line",
    [APPROVAL_BY_CALLER] = "caller",
};

/* The whole machine: next state + 1; 0 = not allowed. */
#define TO(s) (APPROVAL_##s + 1)
static const unsigned char transitions[STATES][EVENTS] = {
    [APPROVAL_PENDING] = {[APPROVAL_GRANT] = TO(GRANTED), [APPROVAL_DENY] = TO(DENIED)},
    [APPROVAL_GRANTED] = {[APPROVAL_CLAIM] = TO(QUEUED)},
    [APPROVAL_QUEUED] = {[APPROVAL_START] = TO(RESUMING),
                         [APPROVAL_RELEASE] = TO(GRANTED),
                         [APPROVAL_CONSUME] = TO(CONSUMED),
                         [APPROVAL_REQUEUE] = TO(GRANTED)},
    [APPROVAL_RESUMING] = {[APPROVAL_RELEASE] = TO(GRANTED),
                           [APPROVAL_CONSUME] = TO(CONSUMED),
                           [APPROVAL_REQUEUE] = TO(GRANTED)},
};

/* Why a hold in that state does not take the step, and what to do. */
static const char *const conflicts[STATES] = {
    [APPROVAL_PENDING] = "nobody has decided it yet; wait for the operator",
    [APPROVAL_GRANTED] = "it is granted; resume it",
    [APPROVAL_DENIED] = "it was denied, which is final; ask for something else",
    [APPROVAL_QUEUED] = "another resume has it and waits for the workspace",
    [APPROVAL_RESUMING] = ("another resume runs it, or ran it and could not record the result; "
                           "operation_status knows, and a restart of the gateway settles it"),
    [APPROVAL_CONSUMED] = "it was used, which happens once; make the call again for a new one",
};

const char *approval_state_name(enum approval_state s)
{
    return state_words[s];
}

const char *approval_tool_name(enum approval_tool t)
{
    return tool_words[t];
}

const char *approval_actor_name(enum approval_actor a)
{
    return actor_words[a];
}

int approval_next(enum approval_state state, enum approval_event event)
{
    return (int)transitions[state][event] - 1;
}

void approval_fini(struct approval *a)
{
    free(a->approval_id);
    free(a->workspace_id);
    free(a->fingerprint);
    free(a->arguments);
    free(a->result);
    *a = (struct approval){0};
}

void approvals_free(struct approval *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        approval_fini(&items[i]);
    free(items);
}

#define COLUMNS                                                                                    \
    "SELECT seq, approval_id, workspace_id, tool, fingerprint, state, arguments, resolved_by,"     \
    " result, result_is_error, created_ms, resolved_ms, ended_ms FROM approvals "

#define ACTIVE "state IN ('pending','granted','queued','resuming')"

static void read_row(sqlite3_stmt *s, struct approval *a)
{
    int tool =
        ledger_word(tool_words, ARRAY_LEN(tool_words), (const char *)sqlite3_column_text(s, 3));
    int state = ledger_word(state_words, STATES, (const char *)sqlite3_column_text(s, 5));
    ensure(tool >= 0 && state >= 0);
    a->seq = sqlite3_column_int64(s, 0);
    a->approval_id = ledger_column_dup(s, 1);
    a->workspace_id = ledger_column_dup(s, 2);
    a->tool = (enum approval_tool)tool;
    a->fingerprint = ledger_column_dup(s, 4);
    a->state = (enum approval_state)state;
    a->arguments = ledger_column_dup(s, 6);
    ledger_column_copy(s, 7, a->resolved_by, sizeof(a->resolved_by));
    a->result = ledger_column_dup(s, 8);
    a->result_is_error = sqlite3_column_int(s, 9) != 0;
    a->created_ms = ledger_column_u64(s, 10);
    a->resolved_ms = ledger_column_u64(s, 11);
    a->ended_ms = ledger_column_u64(s, 12);
}

int approvals_load(struct ledger *l, const char *id, struct approval *ret, struct err *e)
{
    autoquery *s = NULL;
    int row = ledger_query(l, COLUMNS "WHERE approval_id=?1", L_ARGS(L_TEXT(id)), &s, e);
    if (row == 0)
        return err_set(e, ERR_APPROVAL_NOT_FOUND,
                       "no approval \"%.80s\" is in the ledger: it never was, or retention deleted "
                       "it",
                       id);
    if (row == 1)
        read_row(s, ret);
    return row < 0 ? -1 : 0;
}

static int find_active(struct ledger *l, const struct approval_request *q, struct approval *ret,
                       struct err *e)
{
    static const char sql[] = COLUMNS "WHERE workspace_id=?1 AND fingerprint=?2 AND " ACTIVE;
    autoquery *s = NULL;
    int row = ledger_query(l, sql, L_ARGS(L_TEXT(q->workspace_id), L_TEXT(q->fingerprint)), &s, e);
    if (row == 1)
        read_row(s, ret);
    return row;
}

static int check_room(struct ledger *l, const struct approval_request *q, struct err *e)
{
    static const char count[] = "SELECT count(*) FROM approvals WHERE workspace_id=?1 AND " ACTIVE;
    static const char bytes[] = "SELECT sum(length(CAST(arguments AS BLOB))) FROM approvals"
                                " WHERE workspace_id=?1 AND " ACTIVE;
    int64_t n = 0;
    int64_t held = 0;
    size_t want = strlen(q->arguments);
    if (want > APPROVALS_ARGUMENTS_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "the arguments have %zu bytes and APPROVALS_ARGUMENTS_MAX is %u; split the "
                       "call",
                       want, APPROVALS_ARGUMENTS_MAX);
    if (ledger_number(l, count, L_ARGS(L_TEXT(q->workspace_id)), 0, &n, e) < 0 ||
        ledger_number(l, bytes, L_ARGS(L_TEXT(q->workspace_id)), 0, &held, e) < 0)
        return -1;
    if (n >= (int64_t)APPROVALS_ACTIVE_MAX)
        return err_set(e, ERR_RESOURCE_QUEUE_FULL,
                       "%lld calls of workspace %s wait for approval (APPROVALS_ACTIVE_MAX is %u); "
                       "have some decided or denied first",
                       (long long)n, q->workspace_id, APPROVALS_ACTIVE_MAX);
    if ((uint64_t)held + want > APPROVALS_ARGUMENTS_TOTAL_MAX)
        return err_set(e, ERR_RESOURCE_QUEUE_FULL,
                       "the calls of workspace %s that wait for approval hold %lld bytes "
                       "(APPROVALS_ARGUMENTS_TOTAL_MAX is %u); have some decided or denied first",
                       q->workspace_id, (long long)held, APPROVALS_ARGUMENTS_TOTAL_MAX);
    return 0;
}

static int insert(struct ledger *l, const struct approval_request *q, struct approval *ret,
                  struct err *e)
{
    static const char sql[] =
        "INSERT INTO approvals(approval_id, workspace_id, tool, fingerprint, state, arguments,"
        " created_ms) VALUES(?1, ?2, ?3, ?4, 'pending', ?5, ?6)";
    autofree char *id = str_new_id("appr-");
    if (ledger_run(l, sql,
                   L_ARGS(L_TEXT(id), L_TEXT(q->workspace_id), L_TEXT(tool_words[q->tool]),
                          L_TEXT(q->fingerprint), L_TEXT(q->arguments), L_INT(ledger_now_ms(l))),
                   e) < 0)
        return -1;
    return approvals_load(l, id, ret, e);
}

int approvals_create(struct ledger *l, const struct approval_request *q, struct approval *ret,
                     struct err *e)
{
    autotxn txn = {0};
    autoapproval a = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0)
        return -1;
    int found = find_active(l, q, &a, e);
    if (found < 0)
        return -1;
    if (found == 0 && (check_room(l, q, e) < 0 || insert(l, q, &a, e) < 0))
        return -1;
    if (ledger_commit(&txn, e) < 0)
        return -1;
    *ret = a;
    a = (struct approval){0};
    return found;
}

int approvals_get(struct ledger *l, const char *approval_id, struct approval *ret, struct err *e)
{
    autotxn txn = {0};
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0)
        return -1;
    return approvals_load(l, approval_id, ret, e);
}

static int read_list(struct ledger *l, const struct approval_filter *f, uint32_t limit,
                     struct approval *items, size_t *n, struct err *e)
{
    static const char sql[] = COLUMNS "WHERE (?1 IS NULL OR workspace_id=?1) AND (?2 = 0 OR " ACTIVE
                                      ") AND (?3 = 0 OR seq < ?3) ORDER BY seq DESC LIMIT ?4";
    autoquery *s = NULL;
    int row = ledger_query(
        l, sql, L_ARGS(L_TEXT(f->workspace_id), L_INT(f->active), L_INT(f->before), L_INT(limit)),
        &s, e);
    for (; row == 1; row = ledger_next(l, s, e))
        read_row(s, &items[(*n)++]);
    return row;
}

int approvals_list(struct ledger *l, const struct approval_filter *filter, struct approval **ret,
                   size_t *ret_n, struct err *e)
{
    uint32_t limit = filter->limit == 0 ? APPROVALS_PAGE_DEFAULT : filter->limit;
    if (limit > APPROVALS_PAGE_MAX)
        return err_set(e, ERR_OUTPUT_LIMIT, "limit %u is above APPROVALS_PAGE_MAX (%u)", limit,
                       APPROVALS_PAGE_MAX);
    autotxn txn = {0};
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0)
        return -1;
    struct approval *items = mem_zalloc(limit, sizeof(*items));
    size_t n = 0;
    if (read_list(l, filter, limit, items, &n, e) < 0) {
        approvals_free(items, n);
        return -1;
    }
    *ret = items;
    *ret_n = n;
    return 0;
}

static int conflict(const struct approval *a, struct err *e)
{
    return err_set(e, ERR_APPROVAL_CONFLICT, "approval %s is %s: %s", a->approval_id,
                   state_words[a->state], conflicts[a->state]);
}

int approvals_step(struct ledger *l, const struct approval *a, enum approval_event event,
                   struct err *e)
{
    int next = approval_next(a->state, event);
    if (next < 0)
        return conflict(a, e);
    static const char sql[] = "UPDATE approvals SET state=?2, ended_ms=?3 WHERE seq=?1";
    bool ends = next == APPROVAL_DENIED || next == APPROVAL_CONSUMED;
    struct ledger_value values[] = {
        L_INT(a->seq),
        L_TEXT(state_words[next]),
        L_INT(ledger_now_ms(l)),
    };
    if (!ends)
        values[2].type = LEDGER_NULL;
    return ledger_put(l, sql, values, ARRAY_LEN(values), e);
}

static int scrub(struct ledger *l, const struct approval *a, struct err *e)
{
    autobuf text = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_kbool(&w, "scrubbed", true);
    jsonw_kstr(&w, "tool", tool_words[a->tool]);
    jsonw_kstr(&w, "workspace_id", a->workspace_id);
    jsonw_kstr(&w, "fingerprint", a->fingerprint);
    jsonw_object_end(&w);
    return ledger_put(l, "UPDATE approvals SET arguments=?2 WHERE seq=?1",
                      L_ARGS(L_INT(a->seq), L_TEXT(buf_cstr(&text))), e);
}

static int record_decision(struct ledger *l, const struct approval *a, enum approval_actor actor,
                           struct err *e)
{
    static const char sql[] = "UPDATE approvals SET resolved_by=?2, resolved_ms=?3 WHERE seq=?1";
    return ledger_put(
        l, sql, L_ARGS(L_INT(a->seq), L_TEXT(actor_words[actor]), L_INT(ledger_now_ms(l))), e);
}

int approvals_grant(struct ledger *l, const char *approval_id, enum approval_actor actor,
                    bool self_grant, struct err *e)
{
    autotxn txn = {0};
    autoapproval a = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || approvals_load(l, approval_id, &a, e) < 0)
        return -1;
    if (actor == APPROVAL_BY_CALLER && !self_grant)
        return err_set(e, ERR_UNAUTHORIZED,
                       "approval %s cannot be granted by the caller that needs it: a person grants "
                       "it with the operator's token, in the question that the client shows, or on "
                       "the gateway's command line. Ask for that, then call operation_resume. "
                       "(An operator may set approvals.self_grant)",
                       approval_id);
    if (approvals_step(l, &a, APPROVAL_GRANT, e) < 0 || record_decision(l, &a, actor, e) < 0)
        return -1;
    return ledger_commit(&txn, e);
}

int approvals_deny(struct ledger *l, const char *approval_id, enum approval_actor actor,
                   struct err *e)
{
    autotxn txn = {0};
    autoapproval a = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || approvals_load(l, approval_id, &a, e) < 0 ||
        approvals_step(l, &a, APPROVAL_DENY, e) < 0 || record_decision(l, &a, actor, e) < 0 ||
        scrub(l, &a, e) < 0 || ledger_commit(&txn, e) < 0)
        return -1;
    ledger_fold_log(l);
    return 0;
}

static int replay(struct approval *a, struct err *e)
{
    if (a->result != NULL)
        return 1;
    return err_set(e, ERR_APPROVAL_AMBIGUOUS,
                   "approval %s was used and its result is not kept; operation_status and the "
                   "workspace itself show what it did",
                   a->approval_id);
}

int approvals_claim(struct ledger *l, const char *approval_id, struct approval *ret, struct err *e)
{
    autotxn txn = {0};
    autoapproval a = {0};
    if (ledger_begin(l, LEDGER_LAZY, &txn, e) < 0 || approvals_load(l, approval_id, &a, e) < 0)
        return -1;
    int outcome = 0;
    if (a.state == APPROVAL_CONSUMED)
        outcome = replay(&a, e);
    else if (approvals_step(l, &a, APPROVAL_CLAIM, e) < 0)
        return -1;
    else
        a.state = APPROVAL_QUEUED;
    if (outcome < 0 || ledger_commit(&txn, e) < 0)
        return -1;
    *ret = a;
    a = (struct approval){0};
    return outcome;
}

static int simple_step(struct ledger *l, const char *approval_id, enum approval_event event,
                       enum ledger_sync sync, struct err *e)
{
    autotxn txn = {0};
    autoapproval a = {0};
    if (ledger_begin(l, sync, &txn, e) < 0 || approvals_load(l, approval_id, &a, e) < 0 ||
        approvals_step(l, &a, event, e) < 0)
        return -1;
    return ledger_commit(&txn, e);
}

int approvals_start(struct ledger *l, const char *approval_id, struct err *e)
{
    return simple_step(l, approval_id, APPROVAL_START, LEDGER_DURABLE, e);
}

int approvals_release(struct ledger *l, const char *approval_id, struct err *e)
{
    return simple_step(l, approval_id, APPROVAL_RELEASE, LEDGER_LAZY, e);
}

/* A result that is too large is not kept: a second resume says so. */
int approvals_consume(struct ledger *l, const struct approval *a, const char *result, bool is_error,
                      struct err *e)
{
    static const char sql[] = "UPDATE approvals SET result=?2, result_is_error=?3 WHERE seq=?1";
    if (result != NULL && strlen(result) > APPROVALS_RESULT_MAX)
        result = NULL;
    if (approvals_step(l, a, APPROVAL_CONSUME, e) < 0 || scrub(l, a, e) < 0)
        return -1;
    return ledger_put(l, sql, L_ARGS(L_INT(a->seq), L_TEXT(result), L_INT(is_error)), e);
}

/* The call has run: that its result could not be written down is not a failure of the call. */
static int not_recorded(const char *approval_id, struct err *e)
{
    if (e == NULL || e->code != ERR_LEDGER_FAILED)
        return -1;
    err_wrap(e, "approval %s: the call was made and its result could not be recorded", approval_id);
    e->code = ERR_APPROVAL_AMBIGUOUS;
    return -1;
}

int approvals_finish(struct ledger *l, const char *approval_id, const char *result,
                     bool result_is_error, struct err *e)
{
    autotxn txn = {0};
    autoapproval a = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || approvals_load(l, approval_id, &a, e) < 0 ||
        approvals_consume(l, &a, result, result_is_error, e) < 0 || ledger_commit(&txn, e) < 0)
        return not_recorded(approval_id, e);
    ledger_fold_log(l);
    return 0;
}
