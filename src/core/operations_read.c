/* core/operations_read: look-ups and pages of core/operations_store. */
#include "base/str.h"
#include "core/operations_sql.h"

#include <string.h>

#define COLUMNS                                                                                    \
    "SELECT seq, operation_id, workspace_id, operation_key, fingerprint, work_id, approval_id,"    \
    " reverts, kind, status, error_code, reason, recovered, plan_note, created_ms, planned_ms,"    \
    " finished_ms, (SELECT size FROM operation_inverses i WHERE i.seq = operations.seq),"          \
    " argv_sha256, plan_sha256, process_id, termination, exit_code, signal, denials,"              \
    " started_ms, ended_ms, rules FROM operations "

static const char *const kinds[] = {"patch", "command", "revert", "egress"};

void op_record_fini(struct op_record *r)
{
    for (size_t i = 0; i < r->n_changes; i++)
        free(r->changes[i].path);
    free(r->changes);
    free(r->command.denials);
    free(r->rules);
    free(r->operation_id);
    free(r->workspace_id);
    free(r->key);
    free(r->fingerprint);
    free(r->work_id);
    free(r->approval_id);
    free(r->reverts);
    free(r->reason);
    free(r->plan_note);
    *r = (struct op_record){0};
}

static void read_command(sqlite3_stmt *s, struct op_command *c)
{
    ledger_column_copy(s, 18, c->argv_sha256, sizeof(c->argv_sha256));
    ledger_column_copy(s, 19, c->plan_sha256, sizeof(c->plan_sha256));
    ledger_column_copy(s, 20, c->process_id, sizeof(c->process_id));
    ledger_column_copy(s, 21, c->termination, sizeof(c->termination));
    c->has_exit_code = sqlite3_column_type(s, 22) != SQLITE_NULL;
    c->exit_code = sqlite3_column_int(s, 22);
    c->signal = sqlite3_column_int(s, 23);
    c->denials = ledger_column_dup(s, 24);
    c->started_ms = ledger_column_u64(s, 25);
    c->ended_ms = ledger_column_u64(s, 26);
}

void op_record_add_event(struct op_record *r, uint64_t at_ms, const char *name, const char *status,
                         const char *reason)
{
    ensure(r->n_events < ARRAY_LEN(r->events));
    r->events[r->n_events++] = (struct op_event){at_ms, name, status, reason};
}

/* The words are the database's own CHECK lists, so an unknown one is a bug of ours. */
static int read_word(sqlite3_stmt *s, int column, const char *const *words, size_t n)
{
    int word = ledger_word(words, n, (const char *)sqlite3_column_text(s, column));
    ensure(word >= 0);
    return word;
}

static void read_row(sqlite3_stmt *s, struct op_record *r)
{
    int status = op_status_of((const char *)sqlite3_column_text(s, 9));
    ensure(status >= 0);
    r->seq = sqlite3_column_int64(s, 0);
    r->operation_id = ledger_column_dup(s, 1);
    r->workspace_id = ledger_column_dup(s, 2);
    r->key = ledger_column_dup(s, 3);
    r->fingerprint = ledger_column_dup(s, 4);
    r->work_id = ledger_column_dup(s, 5);
    r->approval_id = ledger_column_dup(s, 6);
    r->reverts = ledger_column_dup(s, 7);
    r->kind = (enum op_kind)read_word(s, 8, kinds, ARRAY_LEN(kinds));
    r->status = (enum op_status)status;
    ledger_column_copy(s, 10, r->error_code, sizeof(r->error_code));
    r->reason = ledger_column_dup(s, 11);
    r->plan_note = ledger_column_dup(s, 13);
    r->recovered = sqlite3_column_int(s, 12) != 0;
    r->created_ms = ledger_column_u64(s, 14);
    r->planned_ms = ledger_column_u64(s, 15);
    r->finished_ms = ledger_column_u64(s, 16);
    r->inverse_size = ledger_column_u64(s, 17);
    r->rules = ledger_column_dup(s, 27);
    if (r->kind == OP_COMMAND)
        read_command(s, &r->command);
}

/* An operation's story is in its own columns. */
static void tell_events(struct op_record *r)
{
    op_record_add_event(r, r->created_ms, "minted", "", "");
    if (r->planned_ms != 0)
        op_record_add_event(r, r->planned_ms, "planned", "", r->plan_note);
    if (r->command.started_ms != 0)
        op_record_add_event(r, r->command.started_ms, "started", "", "");
    if (r->finished_ms != 0)
        op_record_add_event(r, r->finished_ms, r->recovered ? "recovered" : "finished",
                            op_status_name(r->status), r->reason);
}

static int load_changes(struct ledger *l, struct op_record *r, struct err *e)
{
    static const char sql[] = "SELECT path, kind, before_version, after_version, fuzzy"
                              " FROM operation_changes WHERE seq=?1 ORDER BY n";
    autoquery *s = NULL;
    size_t cap = 0;
    int row = ledger_query(l, sql, L_ARGS(L_INT(r->seq)), &s, e);
    for (; row == 1; row = ledger_next(l, s, e)) {
        void *items = r->changes;
        mem_grow(&items, &cap, r->n_changes + 1, sizeof(*r->changes));
        r->changes = items;
        struct patch_change *c = &r->changes[r->n_changes++];
        c->path = ledger_column_dup(s, 0);
        c->kind =
            (enum patch_kind)read_word(s, 1, opstore_change_kinds, ARRAY_LEN(opstore_change_kinds));
        ledger_column_copy(s, 2, c->before, sizeof(c->before));
        ledger_column_copy(s, 3, c->after, sizeof(c->after));
        c->fuzzy = sqlite3_column_int(s, 4) != 0;
    }
    return row;
}

static int load_row(struct ledger *l, int64_t seq, struct op_record *ret, struct err *e)
{
    autoquery *s = NULL;
    int row = ledger_query(l, COLUMNS "WHERE seq=?1", L_ARGS(L_INT(seq)), &s, e);
    if (row == 1)
        read_row(s, ret);
    return row;
}

int opstore_load(struct ledger *l, int64_t seq, struct op_record *ret, struct err *e)
{
    autorecord r = {0};
    int row = load_row(l, seq, &r, e);
    if (row != 1)
        return row;
    if (load_changes(l, &r, e) < 0)
        return -1;
    tell_events(&r);
    *ret = r;
    r = (struct op_record){0};
    return 1;
}

/* One look-up by a query that gives a seq. 1, 0 = none, -1. */
static int find(struct ledger *l, const char *sql, const char *text, struct op_record *ret,
                struct err *e)
{
    autotxn txn = {0};
    int64_t seq = 0;
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0 ||
        ledger_number(l, sql, L_ARGS(L_TEXT(text)), 0, &seq, e) < 0)
        return -1;
    return seq == 0 ? 0 : opstore_load(l, seq, ret, e);
}

int opstore_get(struct ledger *l, const char *operation_id, struct op_record *ret, struct err *e)
{
    int r = find(l, "SELECT seq FROM operations WHERE operation_id=?1", operation_id, ret, e);
    if (r == 0)
        return opstore_not_found(operation_id, e);
    return r < 0 ? -1 : 0;
}

int opstore_get_by_process(struct ledger *l, const char *process_id, struct op_record *ret,
                           struct err *e)
{
    static const char sql[] =
        "SELECT seq FROM operations WHERE process_id=?1 ORDER BY seq DESC LIMIT 1";
    int r = find(l, sql, process_id, ret, e);
    if (r == 0)
        return err_set(e, ERR_OPERATION_NOT_FOUND, "no recorded command ran as \"%.80s\"",
                       process_id);
    return r < 0 ? -1 : 0;
}

int opstore_find_by_approval(struct ledger *l, const char *approval_id, struct op_record *ret,
                             struct err *e)
{
    static const char sql[] =
        "SELECT seq FROM operations WHERE approval_id=?1 ORDER BY seq DESC LIMIT 1";
    return find(l, sql, approval_id, ret, e);
}

static int check_one_workspace(struct ledger *l, const char *workspace_id, const char *key,
                               struct err *e)
{
    static const char sql[] = "SELECT count(*) FROM operations WHERE operation_key=?1";
    int64_t n = 0;
    if (workspace_id != NULL)
        return 0;
    if (ledger_number(l, sql, L_ARGS(L_TEXT(key)), 0, &n, e) < 0)
        return -1;
    if (n > 1)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "operation_key \"%.80s\" is used in %lld workspaces; name workspace_id too, "
                       "or ask by operation_id",
                       key, (long long)n);
    return 0;
}

int opstore_get_by_key(struct ledger *l, const char *workspace_id, const char *key,
                       struct op_record *ret, struct err *e)
{
    static const char sql[] = "SELECT seq FROM operations WHERE operation_key=?1"
                              " AND (?2 IS NULL OR workspace_id=?2)";
    autotxn txn = {0};
    int64_t seq = 0;
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0 ||
        check_one_workspace(l, workspace_id, key, e) < 0 ||
        ledger_number(l, sql, L_ARGS(L_TEXT(key), L_TEXT(workspace_id)), 0, &seq, e) < 0)
        return -1;
    if (seq == 0)
        return err_set(e, ERR_OPERATION_NOT_FOUND,
                       "no operation has the key \"%.80s\"%s: it never was, or retention deleted "
                       "it",
                       key, workspace_id == NULL ? "" : " in that workspace");
    return opstore_load(l, seq, ret, e) < 0 ? -1 : 0;
}

void op_page_fini(struct op_page *p)
{
    for (size_t i = 0; i < p->n; i++)
        op_record_fini(&p->items[i]);
    free(p->items);
    *p = (struct op_page){0};
}

/* One row more than asked tells whether there is a next page. */
static int read_page(struct ledger *l, const struct op_filter *f, uint32_t limit,
                     struct op_page *page, struct err *e)
{
    static const char sql[] =
        COLUMNS "WHERE (?1 IS NULL OR workspace_id=?1) AND (?2 IS NULL OR kind=?2)"
                " AND (?3 = 0 OR finished_ms IS NULL) AND seq < ?4 ORDER BY seq DESC LIMIT ?5";
    int64_t before = f->before_seq == 0 ? INT64_MAX : f->before_seq;
    autoquery *s = NULL;
    int row =
        ledger_query(l, sql,
                     L_ARGS(L_TEXT(f->workspace_id), L_TEXT(f->kind < 0 ? NULL : kinds[f->kind]),
                            L_INT(f->unfinished), L_INT(before), L_INT(limit + 1)),
                     &s, e);
    for (; row == 1 && page->n < limit; row = ledger_next(l, s, e)) {
        void *items = page->items;
        mem_grow(&items, &page->cap, page->n + 1, sizeof(*page->items));
        page->items = items;
        page->items[page->n] = (struct op_record){0};
        read_row(s, &page->items[page->n++]);
    }
    if (row == 1)
        page->next_seq = page->items[page->n - 1].seq;
    return row < 0 ? -1 : 0;
}

int opstore_list(struct ledger *l, const struct op_filter *filter, struct op_page *ret,
                 struct err *e)
{
    uint32_t limit = filter->limit == 0 ? OPSTORE_PAGE_DEFAULT : filter->limit;
    if (limit > OPSTORE_PAGE_MAX)
        return err_set(e, ERR_OUTPUT_LIMIT,
                       "limit %u is above OPSTORE_PAGE_MAX (%u); ask for pages with the cursor",
                       limit, OPSTORE_PAGE_MAX);
    autotxn txn = {0};
    struct op_page page = {0};
    if (ledger_begin(l, LEDGER_READ, &txn, e) < 0)
        return -1;
    if (read_page(l, filter, limit, &page, e) < 0) {
        op_page_fini(&page);
        return -1;
    }
    *ret = page;
    return 0;
}
