/* core/intents: see intents.h. */
#include "core/intents.h"

#include "base/map.h"
#include "base/str.h"
#include "core/works_sql.h"

#include <string.h>

static const char *const kind_words[] = {
    [INTENT_FOLLOW_UP] = "follow_up",
    [INTENT_NOTE] = "note",
    [INTENT_STOP_NOTICE] = "stop_notice",
};

static const char *const delivery_words[] = {
    [INTENT_NEXT_CHECKPOINT] = "next_checkpoint",
    [INTENT_AFTER_CURRENT_WORK] = "after_current_work",
    [INTENT_NEXT_WORK] = "next_work",
};

static const char *const state_words[] = {
    [INTENT_DRAFT] = "draft", [INTENT_QUEUED] = "queued",   [INTENT_CLAIMED] = "claimed",
    [INTENT_DONE] = "done",   [INTENT_BLOCKED] = "blocked", [INTENT_CANCELLED] = "cancelled",
};

static const char stop_text[] = "The user stopped the processes of this workspace. Do not start "
                                "them again before you have asked why.";

const char *intent_kind_name(enum intent_kind k)
{
    return kind_words[k];
}

const char *intent_delivery_name(enum intent_delivery d)
{
    return delivery_words[d];
}

const char *intent_state_name(enum intent_state s)
{
    return state_words[s];
}

int intent_kind_of(const char *word)
{
    return ledger_word(kind_words, ARRAY_LEN(kind_words), word);
}

int intent_delivery_of(const char *word)
{
    return ledger_word(delivery_words, ARRAY_LEN(delivery_words), word);
}

void intent_fini(struct intent *i)
{
    free(i->intent_id);
    free(i->work_id);
    free(i->workspace_id);
    free(i->body);
    *i = (struct intent){0};
}

void intents_free(struct intent *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        intent_fini(&items[i]);
    free(items);
}

#define COLUMNS                                                                                    \
    "SELECT intent_id, work_id, workspace_id, position, revision, kind, delivery, state, body,"    \
    " created_ms, updated_ms, claimed_ms, completed_ms FROM intents "

/* The words are the database's own CHECK lists. */
static int read_word(sqlite3_stmt *s, int column, const char *const *words, size_t n)
{
    int word = ledger_word(words, n, (const char *)sqlite3_column_text(s, column));
    ensure(word >= 0);
    return word;
}

static void read_row(sqlite3_stmt *s, struct intent *i)
{
    i->intent_id = ledger_column_dup(s, 0);
    i->work_id = ledger_column_dup(s, 1);
    i->workspace_id = ledger_column_dup(s, 2);
    i->position = sqlite3_column_int64(s, 3);
    i->revision = ledger_column_u64(s, 4);
    i->kind = (enum intent_kind)read_word(s, 5, kind_words, ARRAY_LEN(kind_words));
    i->delivery = (enum intent_delivery)read_word(s, 6, delivery_words, ARRAY_LEN(delivery_words));
    i->state = (enum intent_state)read_word(s, 7, state_words, ARRAY_LEN(state_words));
    i->body = ledger_column_dup(s, 8);
    i->created_ms = ledger_column_u64(s, 9);
    i->updated_ms = ledger_column_u64(s, 10);
    i->claimed_ms = ledger_column_u64(s, 11);
    i->completed_ms = ledger_column_u64(s, 12);
}

static int not_found(const char *intent_id, struct err *e)
{
    return err_set(e, ERR_INTENT_NOT_FOUND, "no instruction \"%.80s\" is there for that work",
                   intent_id);
}

static int load(struct ledger *l, const char *intent_id, struct intent *ret, struct err *e)
{
    autoquery *s = NULL;
    int row = ledger_query(l, COLUMNS "WHERE intent_id=?1", L_ARGS(L_TEXT(intent_id)), &s, e);
    if (row == 0)
        return not_found(intent_id, e);
    if (row == 1)
        read_row(s, ret);
    return row < 0 ? -1 : 0;
}

/* Read again what a change left, commit, and hand it out. */
static int commit_and_return(struct ledger_txn *txn, const char *intent_id, struct intent *ret,
                             struct err *e)
{
    autointent i = {0};
    if (load(txn->l, intent_id, &i, e) < 0 || ledger_commit(txn, e) < 0)
        return -1;
    *ret = i;
    i = (struct intent){0};
    return 0;
}

static int check_body(const char *body, struct err *e)
{
    if (*body == '\0')
        return err_set(e, ERR_INVALID_ARGUMENT, "the instruction is empty; write what to do");
    if (strlen(body) > INTENTS_BODY_MAX)
        return err_set(
            e, ERR_LIMIT_EXCEEDED,
            "the instruction has %zu bytes and INTENTS_BODY_MAX is %u; put the rest into "
            "a file of the workspace and name it",
            strlen(body), INTENTS_BODY_MAX);
    return 0;
}

static int check_room(struct ledger *l, const char *workspace_id, struct err *e)
{
    static const char sql[] = "SELECT count(*) FROM intents WHERE workspace_id=?1"
                              " AND state IN ('draft','queued')";
    int64_t n = 0;
    if (ledger_number(l, sql, L_ARGS(L_TEXT(workspace_id)), 0, &n, e) < 0)
        return -1;
    if (n >= (int64_t)INTENTS_OPEN_MAX)
        return err_set(e, ERR_RESOURCE_QUEUE_FULL,
                       "%lld instructions of workspace %s wait (INTENTS_OPEN_MAX is %u); cancel "
                       "some",
                       (long long)n, workspace_id, INTENTS_OPEN_MAX);
    return 0;
}

/* Positions are given per workspace, so that adopting keeps the order and never makes a tie. */
static int insert(struct ledger *l, const struct intent *i, struct err *e)
{
    static const char sql[] =
        "INSERT INTO intents(intent_id, work_id, workspace_id, position, kind, delivery, body,"
        " state, created_ms, updated_ms, claimed_ms) VALUES(?1, ?2, ?3,"
        " (SELECT coalesce(max(position), 0) + 1 FROM intents WHERE workspace_id=?3),"
        " ?4, ?5, ?6, ?7, ?8, ?8, CASE WHEN ?7 = 'claimed' THEN ?8 END)";
    return ledger_put(l, sql,
                      L_ARGS(L_TEXT(i->intent_id), L_TEXT(i->work_id), L_TEXT(i->workspace_id),
                             L_TEXT(kind_words[i->kind]), L_TEXT(delivery_words[i->delivery]),
                             L_TEXT(i->body), L_TEXT(state_words[i->state]),
                             L_INT(ledger_now_ms(l))),
                      e);
}

int intents_add(struct ledger *l, const char *work_id, enum intent_kind kind,
                enum intent_delivery delivery, const char *body, struct intent *ret, struct err *e)
{
    if (kind == INTENT_STOP_NOTICE)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "a stop notice is made by stopping the work; use follow_up or note");
    if (check_body(body, e) < 0)
        return -1;
    autotxn txn = {0};
    autowork w = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || works_load(l, work_id, &w, e) < 0 ||
        check_room(l, w.workspace_id, e) < 0)
        return -1;
    bool closed = w.state == WORK_CLOSED_STATE;
    autointent i = {
        .intent_id = str_new_id("fb-"),
        .work_id = closed ? NULL : mem_strdup(w.work_id),
        .workspace_id = mem_strdup(w.workspace_id),
        .kind = kind,
        .delivery = closed ? INTENT_NEXT_WORK : delivery,
        .state = INTENT_DRAFT,
        .body = mem_strdup(body),
    };
    if (insert(l, &i, e) < 0)
        return -1;
    return commit_and_return(&txn, i.intent_id, ret, e);
}

int intents_stop(struct ledger *l, const char *work_id, const char *reason, struct intent *ret,
                 struct err *e)
{
    const char *body = reason == NULL || *reason == '\0' ? stop_text : reason;
    if (check_body(body, e) < 0)
        return -1;
    autotxn txn = {0};
    autowork w = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || works_load(l, work_id, &w, e) < 0)
        return -1;
    bool closed = w.state == WORK_CLOSED_STATE;
    autointent i = {
        .intent_id = str_new_id("fb-"),
        .work_id = closed ? NULL : mem_strdup(w.work_id),
        .workspace_id = mem_strdup(w.workspace_id),
        .kind = INTENT_STOP_NOTICE,
        .delivery = INTENT_NEXT_CHECKPOINT,
        .state = closed ? INTENT_QUEUED : INTENT_CLAIMED,
        .body = mem_strdup(body),
    };
    if (insert(l, &i, e) < 0 || works_bump(l, i.work_id, e) < 0)
        return -1;
    return commit_and_return(&txn, i.intent_id, ret, e);
}

int intents_get(struct ledger *l, const char *intent_id, struct intent *ret, struct err *e)
{
    autotxn txn = {0};
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0)
        return -1;
    return load(l, intent_id, ret, e);
}

static int read_list(struct ledger *l, const struct work *w, uint32_t offset, uint32_t limit,
                     struct intent *items, size_t *n, struct err *e)
{
    static const char sql[] =
        COLUMNS "WHERE work_id=?1 OR (work_id IS NULL AND workspace_id=?2) ORDER BY CASE state"
                " WHEN 'claimed' THEN 0 WHEN 'queued' THEN 1 WHEN 'draft' THEN 2 ELSE 3 END,"
                " position, intent_id LIMIT ?3 OFFSET ?4";
    autoquery *s = NULL;
    int row = ledger_query(
        l, sql, L_ARGS(L_TEXT(w->work_id), L_TEXT(w->workspace_id), L_INT(limit), L_INT(offset)),
        &s, e);
    for (; row == 1; row = ledger_next(l, s, e))
        read_row(s, &items[(*n)++]);
    return row;
}

int intents_list(struct ledger *l, const char *work_id, uint32_t offset, uint32_t limit,
                 struct intent **ret, size_t *ret_n, struct err *e)
{
    limit = limit == 0 ? INTENTS_PAGE_DEFAULT : limit;
    if (limit > INTENTS_PAGE_MAX)
        return err_set(e, ERR_OUTPUT_LIMIT, "limit %u is above INTENTS_PAGE_MAX (%u)", limit,
                       INTENTS_PAGE_MAX);
    autotxn txn = {0};
    autowork w = {0};
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0 || works_load(l, work_id, &w, e) < 0)
        return -1;
    struct intent *items = mem_zalloc(limit, sizeof(*items));
    size_t n = 0;
    if (read_list(l, &w, offset, limit, items, &n, e) < 0) {
        intents_free(items, n);
        return -1;
    }
    *ret = items;
    *ret_n = n;
    return 0;
}

/* May a person still change it? */
static int check_editable(const struct intent *i, struct err *e)
{
    if (i->state == INTENT_CLAIMED)
        return err_set(e, ERR_INTENT_ALREADY_CLAIMED,
                       "instruction %s was handed out and its text is frozen; add another one",
                       i->intent_id);
    if (i->kind == INTENT_STOP_NOTICE)
        return err_set(e, ERR_INTENT_NOT_EDITABLE, "instruction %s is a stop notice, which stays",
                       i->intent_id);
    if (i->state != INTENT_DRAFT && i->state != INTENT_QUEUED)
        return err_set(e, ERR_INTENT_NOT_EDITABLE,
                       "instruction %s is %s, which is final; add another one", i->intent_id,
                       state_words[i->state]);
    return 0;
}

static int check_revision(const struct intent *i, uint64_t revision, struct err *e)
{
    if (i->revision == revision)
        return 0;
    return err_set(
        e, ERR_INTENT_REVISION_CONFLICT,
        "instruction %s is at revision %llu and you changed revision %llu; read it again",
        i->intent_id, (unsigned long long)i->revision, (unsigned long long)revision);
}

/* A draft is on no queue, so what happens to it moves no revision that a model can see. */
static int bump_if_queued(struct ledger *l, const struct intent *i, struct err *e)
{
    return i->state == INTENT_DRAFT ? 0 : works_bump(l, i->work_id, e);
}

int intents_edit(struct ledger *l, const char *intent_id, uint64_t revision, const char *body,
                 int delivery, struct intent *ret, struct err *e)
{
    static const char sql[] = "UPDATE intents SET body=?2, delivery=coalesce(?3, delivery),"
                              " revision=revision+1, updated_ms=?4 WHERE intent_id=?1";
    if (check_body(body, e) < 0)
        return -1;
    const char *word = delivery < 0 ? NULL : delivery_words[delivery];
    autotxn txn = {0};
    autointent i = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || load(l, intent_id, &i, e) < 0 ||
        check_editable(&i, e) < 0 || check_revision(&i, revision, e) < 0 ||
        ledger_run(l, sql,
                   L_ARGS(L_TEXT(intent_id), L_TEXT(body), L_TEXT(word), L_INT(ledger_now_ms(l))),
                   e) < 0 ||
        bump_if_queued(l, &i, e) < 0)
        return -1;
    return commit_and_return(&txn, intent_id, ret, e);
}

static int set_state(struct ledger *l, const char *intent_id, enum intent_state state,
                     struct err *e)
{
    static const char sql[] =
        "UPDATE intents SET state=?2, updated_ms=?3,"
        " claimed_ms = CASE WHEN ?2 = 'claimed' THEN ?3 ELSE claimed_ms END,"
        " delivered_ms = CASE WHEN ?2 = 'claimed' THEN ?3 ELSE delivered_ms END,"
        " completed_ms = CASE WHEN ?2 IN ('done','blocked') THEN ?3 END WHERE intent_id=?1";
    return ledger_put(
        l, sql, L_ARGS(L_TEXT(intent_id), L_TEXT(state_words[state]), L_INT(ledger_now_ms(l))), e);
}

int intents_queue(struct ledger *l, const char *intent_id, uint64_t revision, struct intent *ret,
                  struct err *e)
{
    autotxn txn = {0};
    autointent i = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || load(l, intent_id, &i, e) < 0 ||
        check_editable(&i, e) < 0)
        return -1;
    if (i.state == INTENT_QUEUED)
        return err_set(e, ERR_INTENT_NOT_EDITABLE, "instruction %s is queued already", intent_id);
    if (check_revision(&i, revision, e) < 0 || set_state(l, intent_id, INTENT_QUEUED, e) < 0 ||
        works_bump(l, i.work_id, e) < 0)
        return -1;
    return commit_and_return(&txn, intent_id, ret, e);
}

int intents_cancel(struct ledger *l, const char *intent_id, struct intent *ret, struct err *e)
{
    autotxn txn = {0};
    autointent i = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || load(l, intent_id, &i, e) < 0 ||
        check_editable(&i, e) < 0 || set_state(l, intent_id, INTENT_CANCELLED, e) < 0 ||
        bump_if_queued(l, &i, e) < 0)
        return -1;
    return commit_and_return(&txn, intent_id, ret, e);
}

/* The positions that the queued instructions have, lowest first; the new order fills them. */
static int load_positions(struct ledger *l, const char *work_id, struct map *ids,
                          int64_t *positions, size_t cap, size_t *ret_n, struct err *e)
{
    static const char sql[] = "SELECT position, intent_id FROM intents WHERE work_id=?1"
                              " AND state='queued' ORDER BY position";
    autoquery *s = NULL;
    size_t n = 0;
    int row = ledger_query(l, sql, L_ARGS(L_TEXT(work_id)), &s, e);
    for (; row == 1; row = ledger_next(l, s, e), n++) {
        if (n < cap) {
            positions[n] = sqlite3_column_int64(s, 0);
            map_set(ids, (const char *)sqlite3_column_text(s, 1), positions);
        }
    }
    *ret_n = n;
    return row;
}

static int check_same_set(struct map *queued, const char *const *ids, size_t n, size_t n_queued,
                          struct err *e)
{
    bool same = n == n_queued;
    /* Removing as we go refuses an id that is named twice. */
    for (size_t i = 0; same && i < n; i++)
        same = map_remove(queued, ids[i]) != NULL;
    if (same)
        return 0;
    return err_set(e, ERR_INTENT_REVISION_CONFLICT,
                   "the new order must name each of the %zu queued instructions of the work once; "
                   "read the list again",
                   n_queued);
}

static int move_all(struct ledger *l, const char *const *ids, const int64_t *positions, size_t n,
                    struct err *e)
{
    static const char sql[] = "UPDATE intents SET position=?2, updated_ms=?3 WHERE intent_id=?1";
    for (size_t i = 0; i < n; i++) {
        if (ledger_run(l, sql, L_ARGS(L_TEXT(ids[i]), L_INT(positions[i]), L_INT(ledger_now_ms(l))),
                       e) < 0)
            return -1;
    }
    return 0;
}

int intents_reorder(struct ledger *l, const char *work_id, const char *const *ids, size_t n,
                    struct err *e)
{
    autotxn txn = {0};
    autowork w = {0};
    struct map queued = {0};
    autofree int64_t *positions = mem_zalloc(INTENTS_OPEN_MAX, sizeof(*positions));
    size_t n_queued = 0;
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || works_load_open(l, work_id, &w, e) < 0)
        return -1;
    int r = load_positions(l, work_id, &queued, positions, INTENTS_OPEN_MAX, &n_queued, e);
    if (r == 0)
        r = check_same_set(&queued, ids, n, n_queued, e);
    map_fini(&queued);
    if (r < 0 || move_all(l, ids, positions, n, e) < 0 || works_bump(l, work_id, e) < 0)
        return -1;
    return ledger_commit(&txn, e);
}

static int next_claimable(struct ledger *l, const char *work_id, struct intent *ret, struct err *e)
{
    static const char sql[] =
        COLUMNS "WHERE " WORKS_CLAIMABLE " ORDER BY state='queued', position LIMIT 1";
    autoquery *s = NULL;
    int row = ledger_query(l, sql, L_ARGS(L_TEXT(work_id)), &s, e);
    if (row == 1)
        read_row(s, ret);
    return row;
}

int intents_claim_next(struct ledger *l, const char *work_id, struct intent *ret, struct err *e)
{
    autotxn txn = {0};
    autowork w = {0};
    autointent next = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || works_load_open(l, work_id, &w, e) < 0)
        return -1;
    int there = next_claimable(l, work_id, &next, e);
    if (there <= 0)
        return there;
    if (set_state(l, next.intent_id, INTENT_CLAIMED, e) < 0 || works_bump(l, work_id, e) < 0 ||
        commit_and_return(&txn, next.intent_id, ret, e) < 0)
        return -1;
    return 1;
}

int intents_complete(struct ledger *l, const char *work_id, const char *intent_id, bool blocked,
                     struct intent *ret, struct err *e)
{
    autotxn txn = {0};
    autointent i = {0};
    if (ledger_begin(l, LEDGER_DURABLE, &txn, e) < 0 || load(l, intent_id, &i, e) < 0)
        return -1;
    if (!str_eq(i.work_id, work_id))
        return not_found(intent_id, e);
    if (i.state != INTENT_CLAIMED)
        return err_set(e, ERR_INTENT_NOT_EDITABLE,
                       "instruction %s is %s; only one that was claimed can be completed",
                       intent_id, state_words[i.state]);
    if (set_state(l, intent_id, blocked ? INTENT_BLOCKED : INTENT_DONE, e) < 0 ||
        works_bump(l, work_id, e) < 0)
        return -1;
    return commit_and_return(&txn, intent_id, ret, e);
}
