/* mcp/operation_answer: see operation_answer.h. */
#include "mcp/operation_answer.h"

#include <string.h>

static void write_text(struct jsonw *w, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0')
        jsonw_kstr(w, key, text);
}

/* Seconds, as the public contract has it. */
static void write_time(struct jsonw *w, const char *key, uint64_t ms)
{
    if (ms != 0)
        jsonw_kuint(w, key, ms / 1000);
}

static void write_change(struct jsonw *w, const struct patch_change *change)
{
    jsonw_object(w);
    jsonw_kstr(w, "path", change->path);
    jsonw_kstr(w, "kind", patch_kind_name(change->kind));
    write_text(w, "before_version", change->before);
    write_text(w, "after_version", change->after);
    if (change->fuzzy)
        jsonw_kbool(w, "fuzzy", true);
    jsonw_object_end(w);
}

void operation_write_changes(struct jsonw *w, const struct patch_change *changes, size_t n)
{
    jsonw_key(w, "files");
    jsonw_array(w);
    for (size_t i = 0; i < n; i++)
        jsonw_str(w, changes[i].path);
    jsonw_array_end(w);
    jsonw_key(w, "changes");
    jsonw_array(w);
    for (size_t i = 0; i < n; i++)
        write_change(w, &changes[i]);
    jsonw_array_end(w);
}

/* Why it ended as it did: of a refusal its error, else a sentence. */
static void write_reason(struct jsonw *w, const struct op_record *r)
{
    if (r->error_code[0] == '\0') {
        write_text(w, "failure", r->reason);
        return;
    }
    jsonw_key(w, "error");
    jsonw_object(w);
    jsonw_kstr(w, "code", r->error_code);
    jsonw_kstr(w, "message", r->reason);
    jsonw_object_end(w);
}

void operation_write_patch(struct jsonw *w, const struct op_record *r, bool replayed)
{
    jsonw_kstr(w, "status", op_status_name(r->status));
    jsonw_kstr(w, "operation_id", r->operation_id);
    jsonw_kbool(w, "replayed", replayed);
    operation_write_changes(w, r->changes, r->n_changes);
    write_text(w, "reverts", r->reverts);
    write_reason(w, r);
}

void operation_render(void *user, const struct op_record *record, struct buf *ret)
{
    struct jsonw w;
    (void)user;
    jsonw_init(&w, ret);
    jsonw_object(&w);
    operation_write_patch(&w, record, true);
    jsonw_object_end(&w);
}

static void write_events(struct jsonw *w, const struct op_record *r)
{
    if (r->n_events == 0)
        return;
    jsonw_key(w, "events");
    jsonw_array(w);
    for (size_t i = 0; i < r->n_events; i++) {
        jsonw_object(w);
        jsonw_kuint(w, "at", r->events[i].at_ms / 1000);
        jsonw_kstr(w, "name", r->events[i].name);
        write_text(w, "status", r->events[i].status);
        write_text(w, "reason", r->events[i].reason);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void write_command(struct jsonw *w, const struct op_record *r)
{
    const struct op_command *c = &r->command;
    write_text(w, "process_id", c->process_id);
    jsonw_kstr(w, "argv_sha256", c->argv_sha256);
    write_text(w, "termination", c->termination);
    if (c->has_exit_code)
        jsonw_kint(w, "exit_code", c->exit_code);
    if (c->signal != 0)
        jsonw_kint(w, "signal", c->signal);
    write_time(w, "started_at", c->started_ms);
    write_time(w, "ended_at", c->ended_ms);
    if (c->ended_ms != 0 && c->ended_ms >= c->started_ms)
        jsonw_kuint(w, "duration_ms", c->ended_ms - c->started_ms);
    if (c->denials != NULL) {
        jsonw_key(w, "denials");
        jsonw_raw(w, c->denials, strlen(c->denials));
    }
}

/* Whether revert_operation would look at it at all. */
static bool has_undo(const struct op_record *r)
{
    return r->kind != OP_COMMAND && r->status == OP_APPLIED && r->inverse_size > 0;
}

void operation_write_record(struct jsonw *w, const struct op_record *r, bool whole)
{
    jsonw_kstr(w, "operation_id", r->operation_id);
    jsonw_kstr(w, "status", op_status_name(r->status));
    jsonw_kstr(w, "kind", op_kind_name(r->kind));
    jsonw_kstr(w, "workspace_id", r->workspace_id);
    jsonw_kuint(w, "created_at", r->created_ms / 1000);
    write_time(w, "finished_at", r->finished_ms);
    write_text(w, "operation_key", r->key);
    write_text(w, "work_id", r->work_id);
    write_text(w, "approval_id", r->approval_id);
    write_text(w, "reverts", r->reverts);
    if (r->recovered)
        jsonw_kbool(w, "recovered", true);
    if (r->kind != OP_COMMAND)
        jsonw_kbool(w, "revertible", has_undo(r));
    if (r->kind == OP_COMMAND)
        write_command(w, r);
    if (r->rules != NULL) {
        jsonw_key(w, "rules");
        jsonw_raw(w, r->rules, strlen(r->rules));
    }
    write_reason(w, r);
    if (!whole)
        return;
    if (r->n_changes > 0)
        operation_write_changes(w, r->changes, r->n_changes);
    write_events(w, r);
}
