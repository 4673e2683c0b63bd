/* mcp/command_record: see command_record.h. */
#include "mcp/command_record.h"

#include "base/log.h"
#include "base/str.h"
#include "core/fingerprint.h"
#include "core/operations_store.h"
#include "mcp/approval_gate.h"
#include "mcp/denials.h"
#include "mcp/recorder.h"

#include <string.h>

struct command_records {
    struct server *server;
    struct map live;      /* operation id -> struct command_record */
    struct list adopting; /* struct command_record */
};

struct command_record {
    struct command_records *all;
    char *operation_id;
    char *process_id;
    struct list link;            /* while it is adopted */
    struct command_write *begin; /* valid while its batch is not written */
    uint64_t batch;
};

/* ---- writing, on the pool ---- */

/* One write; what it borrows is its own. */
struct command_write {
    struct record record;
    bool begin;
    bool ended; /* has an end */
    char *operation_id;
    char *process_id;
    char *workspace_id;
    char *approval_id;
    char argv_sha256[LEDGER_HASH_LEN];
    struct op_end end;
    char *reason;
    char *denials;
};

static void write_free(struct command_write *w)
{
    free(w->operation_id);
    free(w->process_id);
    free(w->workspace_id);
    free(w->approval_id);
    free(w->reason);
    free(w->denials);
    free(w);
}

static int write_begin(const struct command_write *w, struct ledger *l, struct err *e)
{
    const struct op_request q = {
        .kind = OP_COMMAND,
        .workspace_id = w->workspace_id,
        .fingerprint = w->argv_sha256,
        .approval_id = w->approval_id,
        .argv_sha256 = w->argv_sha256,
        .operation_id = w->operation_id,
        .process_id = w->process_id,
    };
    autorecord r = {0};
    if (w->ended)
        return opstore_record_command(l, &q, &w->end, LEDGER_LAZY, &r, e);
    return opstore_begin(l, &q, LEDGER_LAZY, &r, e);
}

static bool write_command(struct record *record, struct ledger *l)
{
    struct command_write *w = container_of(record, struct command_write, record);
    struct err e;
    int rc = 0;
    if (l != NULL)
        rc = w->begin ? write_begin(w, l, &e)
                      : opstore_end_command(l, w->operation_id, &w->end, LEDGER_LAZY, &e);
    if (rc < 0)
        log_warn("command %s was not recorded: %s", w->operation_id, e.message);
    write_free(w);
    return rc >= 0;
}

static struct command_write *write_new(const struct command_record *r)
{
    struct command_write *w = mem_new(struct command_write);
    w->record.write = write_command;
    w->operation_id = mem_strdup(r->operation_id);
    return w;
}

static void set_end(struct command_write *w, const struct op_end *end, const char *reason)
{
    w->ended = true;
    w->end = *end;
    w->reason = mem_strdup(reason);
    w->end.reason = w->reason;
    w->denials = mem_strdup(end->denials);
    w->end.denials = w->denials;
}

struct end_of {
    const struct op_end *end;
    const char *reason;
};

static void add_end(struct record *record, void *user)
{
    const struct end_of *x = user;
    set_end(container_of(record, struct command_write, record), x->end, x->reason);
}

/* ---- the record of a command that is about to start ---- */

static struct command_record *record_new(struct command_records *all)
{
    struct command_record *r = mem_new(struct command_record);
    r->all = all;
    r->operation_id = str_new_id("op-");
    r->process_id = str_new_id("proc-");
    map_set(&all->live, r->operation_id, r);
    return r;
}

static void record_free(struct command_record *r)
{
    map_remove(&r->all->live, r->operation_id);
    free(r->operation_id);
    free(r->process_id);
    free(r);
}

const char *command_record_process(const struct command_record *r)
{
    return r->process_id;
}

const char *command_record_operation(const struct command_record *r)
{
    return r->operation_id;
}

/* The end that is known of it; takes the record. A short command's begin still waits. */
static void end(struct command_record *r, const struct op_end *end, const char *reason)
{
    struct recorder *to = r->all->server->recorder;
    struct end_of x = {end, reason};
    if (r->begin == NULL || !recorder_amend(to, r->batch, &r->begin->record, add_end, &x)) {
        struct command_write *w = write_new(r);
        set_end(w, end, reason);
        recorder_push(to, &w->record);
    }
    record_free(r);
}

void command_record_refused(struct command_record *r, const struct err *why)
{
    autofree char *reason = mem_printf("%s: %s", err_info(why->code)->name, why->message);
    end(r, &(struct op_end){.status = OP_REJECTED}, reason);
}

void command_record_unknown(struct command_record *r, const char *why)
{
    end(r, &(struct op_end){.status = OP_UNKNOWN}, why);
}

/* ---- the end ---- */

static void watch(struct command_record *r);

static void on_page(void *user, const struct run_page *page, const struct err *failure)
{
    struct command_record *r = user;
    if (failure != NULL) {
        end(r, &(struct op_end){.status = OP_LOST}, failure->message);
        return;
    }
    if (page->status.state == RUN_RUNNING)
        watch(r);
    else
        command_record_ended(r, &page->status);
}

void command_record_ended(struct command_record *r, const struct run_status *s)
{
    struct jsonw w;
    autobuf denials = BUF_INIT;
    jsonw_init(&w, &denials);
    denials_write_array(&w, s);
    const struct op_end seen = {
        .status = s->termination == RUN_END_LOST ? OP_LOST : OP_ENDED,
        .termination = run_termination_name(s->termination),
        .has_exit_code = s->termination == RUN_END_EXITED,
        .exit_code = s->exit_code,
        .signal = s->signal,
        .denials = str_eq(buf_cstr(&denials), "[]") ? NULL : buf_cstr(&denials),
        .started_ms = s->started_ms,
        .ended_ms = s->ended_ms,
    };
    end(r, &seen, s->reason);
}

/* Only the status is wanted: a page of one byte. */
static void watch(struct command_record *r)
{
    const struct run_read read = {.process_id = r->process_id,
                                  .max_bytes = 1,
                                  .wait_ms = RUN_WAIT_MAX_MS,
                                  .until_exit = true};
    (void)runner_read(r->all->server->runner, &read, on_page, r);
}

void command_record_started(struct command_record *r)
{
    watch(r);
}

/* ---- those of the last gateway ---- */

/* What stays unfinished in the ledger is asked for again by the next gateway. */
static void leave_rest(struct command_records *c)
{
    while (!list_empty(&c->adopting)) {
        struct command_record *r = container_of(c->adopting.next, struct command_record, link);
        list_remove(&r->link);
        record_free(r);
    }
}

static void adopt_next(struct command_records *c);

static void on_adopted(void *user, const struct run_status *status, const struct err *failure)
{
    struct command_record *r = user;
    struct command_records *c = r->all;
    if (failure == NULL) {
        log_info("command %s is followed again: %s", r->operation_id,
                 run_state_name(status->state));
        watch(r);
    } else if (failure->code == ERR_PROCESS_NOT_FOUND) {
        end(r, &(struct op_end){.status = OP_LOST},
            "the gateway ended before the end of the command was seen, and the worker does not "
            "know it (any more)");
    } else {
        log_warn("commands of the last gateway cannot be asked for: %s", failure->message);
        record_free(r);
        leave_rest(c);
        return;
    }
    adopt_next(c);
}

static void adopt_next(struct command_records *c)
{
    if (list_empty(&c->adopting))
        return;
    struct command_record *r = container_of(c->adopting.next, struct command_record, link);
    list_remove(&r->link);
    (void)runner_status(c->server->runner, r->process_id, on_adopted, r);
}

static void adopt(struct command_records *c, const struct op_record *found)
{
    if (found->command.process_id[0] == '\0')
        return;
    struct command_record *r = record_new(c);
    map_remove(&c->live, r->operation_id);
    free(r->operation_id);
    free(r->process_id);
    r->operation_id = mem_strdup(found->operation_id);
    r->process_id = mem_strdup(found->command.process_id);
    map_set(&c->live, r->operation_id, r);
    list_append(&c->adopting, &r->link);
}

int command_records_adopt(struct command_records *c, struct err *e)
{
    struct op_filter filter = {.kind = OP_COMMAND, .unfinished = true, .limit = OPSTORE_PAGE_MAX};
    do {
        struct op_page page = {0};
        if (opstore_list(c->server->ledger, &filter, &page, e) < 0)
            return -1;
        for (size_t i = 0; i < page.n; i++)
            adopt(c, &page.items[i]);
        filter.before_seq = page.next_seq;
        op_page_fini(&page);
    } while (filter.before_seq != 0);
    adopt_next(c);
    return 0;
}

/* ---- the table ---- */

struct command_records *command_records_new(struct server *s)
{
    struct command_records *c = mem_new(struct command_records);
    c->server = s;
    list_init(&c->adopting);
    return c;
}

void command_records_free(struct command_records *c)
{
    size_t pos = 0;
    struct err e;
    static const struct op_end gone = {
        .status = OP_LOST,
        .reason = "it ran when the server ended, which ends all its commands",
    };
    if (c == NULL)
        return;
    recorder_flush(c->server->recorder);
    for (struct command_record *r; (r = map_next(&c->live, &pos, NULL)) != NULL;) {
        if (!c->server->commands_outlive &&
            opstore_end_command(c->server->ledger, r->operation_id, &gone, LEDGER_LAZY, &e) < 0)
            log_warn("the end of %s was not recorded: %s", r->operation_id, e.message);
        free(r->operation_id);
        free(r->process_id);
        free(r);
    }
    map_fini(&c->live);
    free(c);
}

/* ---- claiming ---- */

/* A claim on its way: over the look-up of its key and the gate to its record. */
struct command_way {
    struct command_claim claim;
    struct command_record *record;
    struct op_request request;
    char argv_sha256[LEDGER_HASH_LEN];
    char fingerprint[LEDGER_HASH_LEN];
    int status;
    struct op_record found;
    struct err e;
};

void command_claim_end(struct request *rq)
{
    struct command_way *k = rq->claim;
    if (k == NULL)
        return;
    rq->claim = NULL;
    op_record_fini(&k->found);
    free(k);
}

static void hash_argv(char *const *argv, char ret[LEDGER_HASH_LEN])
{
    size_t n = 0;
    while (argv[n] != NULL)
        n++;
    struct ledger_part *parts = mem_zalloc(n + 1, sizeof(*parts));
    for (size_t i = 0; i < n; i++)
        parts[i] = (struct ledger_part){argv[i], strlen(argv[i])};
    ledger_hash(parts, n, ret);
    free(parts);
}

static void start(struct request *rq, struct command_record *record)
{
    struct command_way *k = rq->claim;
    void (*go)(struct request *, struct command_record *) = k->claim.start;
    command_claim_end(rq);
    go(rq, record);
}

static void fail(struct request *rq)
{
    struct err e = ((struct command_way *)rq->claim)->e;
    request_fail(rq, &e);
}

/* Nobody waits any more: true, and the request is gone. */
static bool left(struct request *rq)
{
    struct command_way *k = rq->claim;
    if (rq->session != NULL)
        return false;
    err_set(&k->e, ERR_CANCELLED, "the call was cancelled before the command started");
    if (k->record != NULL)
        command_record_refused(steal(k->record), &k->e);
    fail(rq);
    return true;
}

/* The first call's refusal is the second one's, too: its code begins the recorded reason. */
static void answer_refused(struct request *rq, const struct op_record *r)
{
    struct err e;
    autofree char *code = mem_dup(r->reason, strcspn(r->reason, ":"));
    const char *message = strstr(r->reason, ": ");
    enum err_code known = message == NULL ? ERR_NONE : err_code_of(code);
    err_set(&e, known == ERR_NONE ? ERR_PROCESS_SPAWN_FAILED : known, "%s",
            known == ERR_NONE ? r->reason : message + 2);
    request_fail_operation(rq, &e, r->operation_id);
}

static void answer_known(struct request *rq)
{
    struct command_way *k = rq->claim;
    const struct op_record *r = &k->found;
    bool unsure = r->status == OP_UNKNOWN || r->status == OP_LOST;
    if (r->status == OP_REJECTED)
        answer_refused(rq, r);
    else
        k->claim.known(rq, r->command.process_id, unsure ? r->reason : NULL);
}

/* ---- the record ---- */

static void record_quietly(struct request *rq)
{
    struct command_way *k = rq->claim;
    struct command_record *r = record_new(rq->server->commands);
    struct command_write *w = write_new(r);
    w->begin = true;
    w->process_id = mem_strdup(r->process_id);
    w->workspace_id = mem_strdup(k->claim.ws->id);
    w->approval_id = mem_strdup(approval_of(rq));
    memcpy(w->argv_sha256, k->argv_sha256, sizeof(w->argv_sha256));
    r->begin = w;
    r->batch = recorder_push(rq->server->recorder, &w->record);
    if (r->batch == RECORDER_DROPPED)
        r->begin = NULL;
    start(rq, r);
}

static void begin_work(struct request *rq)
{
    struct command_way *k = rq->claim;
    k->status = opstore_begin(rq->server->ledger, &k->request, LEDGER_LAZY, &k->found, &k->e);
}

static void begin_after(struct request *rq)
{
    struct command_way *k = rq->claim;
    if (k->status != 0)
        record_free(steal(k->record)); /* nothing of it is in the ledger */
    if (k->status < 0)
        fail(rq);
    else if (k->status == 1)
        answer_known(rq);
    else if (!left(rq))
        start(rq, steal(k->record));
}

static void gated(struct request *rq)
{
    struct command_way *k = rq->claim;
    k->request.approval_id = approval_of(rq);
    if (k->request.key == NULL) {
        record_quietly(rq);
        return;
    }
    k->record = record_new(rq->server->commands);
    k->request.operation_id = k->record->operation_id;
    k->request.process_id = k->record->process_id;
    request_pool(rq, 0, begin_work, begin_after);
}

/* ---- the key ---- */

static void peek_work(struct request *rq)
{
    struct command_way *k = rq->claim;
    recorder_flush(rq->server->recorder);
    k->status = opstore_peek(rq->server->ledger, &k->request, &k->found, &k->e);
}

static void gate(struct request *rq)
{
    struct command_way *k = rq->claim;
    approval_gate(rq, k->claim.ws, APPROVAL_EXEC_COMMAND, gated);
}

static void peek_after(struct request *rq)
{
    struct command_way *k = rq->claim;
    if (k->status < 0)
        fail(rq);
    else if (k->status == 1)
        answer_known(rq);
    else if (!left(rq))
        gate(rq);
}

void command_claim(struct request *rq, const struct command_claim *claim)
{
    static const char *const no_effect[] = {"workspace_id", "operation_key", "wait_ms", "work_id",
                                            "approved",     "user_id",       "network", NULL};
    struct command_way *k = mem_new(struct command_way);
    k->claim = *claim;
    rq->claim = k;
    hash_argv(claim->argv, k->argv_sha256);
    k->request = (struct op_request){
        .kind = OP_COMMAND,
        .workspace_id = claim->ws->id,
        .key = claim->operation_key,
        .fingerprint = k->fingerprint,
        .argv_sha256 = k->argv_sha256,
    };
    if (claim->operation_key == NULL) {
        gate(rq);
        return;
    }
    fingerprint_arguments(claim->ws->id, "exec_command", rq->args, no_effect, k->fingerprint);
    request_pool(rq, 0, peek_work, peek_after);
}
