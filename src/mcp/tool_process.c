/* mcp/tool_process: the tools that speak to a running command by its handle: write_stdin,
 * read_process, process_status, process_resize, terminate_process.
 *
 * A handle is all they need: it is random and never given to anybody but who started the command,
 * and workspace and profile were checked then.
 */
#include "base/utf8.h"
#include "core/exec_limits.h"
#include "mcp/status.h"
#include "mcp/tool.h"

#include <string.h>

enum encoding { ENCODING_UTF8, ENCODING_BASE64 };

static const char *const streams[] = {[RUN_COMBINED] = "combined",
                                      [RUN_STDOUT] = "stdout",
                                      [RUN_STDERR] = "stderr",
                                      [RUN_STDERR + 1] = NULL};
static const char *const encodings[] = {
    [ENCODING_UTF8] = "utf-8", [ENCODING_BASE64] = "base64", NULL};

/* One state for all five: the arguments are few and mostly the same. */
struct process_call {
    const char *process_id;
    struct json_bytes data;
    bool eof;
    uint64_t rows, cols;
    uint64_t cursor, limit, wait_ms;
    int stream, encoding;
    run_ticket ticket;
};

static void keep_ticket(struct process_call *x, run_ticket ticket)
{
    if (ticket != 0) /* 0: answered already, and the call is gone */
        x->ticket = ticket;
}

static void process_cancel(struct request *rq)
{
    struct process_call *x = rq->state;
    runner_cancel(rq->server->runner, x->ticket);
}

static void refuse(struct request *rq, enum err_code code, const char *message)
{
    struct err e;
    err_set(&e, code, "%s", message);
    request_fail(rq, &e);
}

static void on_ok(void *user, const struct err *failure)
{
    struct request *rq = user;
    if (failure != NULL) {
        request_fail(rq, failure);
        return;
    }
    jsonw_kbool(request_answer(rq), "ok", true);
    request_finish(rq);
}

#define AT(member) offsetof(struct process_call, member)
#define PROCESS_ID_FIELD                                                                           \
    {                                                                                              \
        "process_id", JSON_STR, JSON_REQUIRED, AT(process_id), 0, 0, NULL,                         \
            "The handle that exec_command gave.", NULL                                             \
    }

static const struct output_field ok_out[] = {{"ok", OUTPUT_BOOL, true, NULL}};

/* ---- write_stdin ---- */

static void write_run(struct request *rq)
{
    struct process_call *x = rq->state;
    if (!request_given(rq, "data") && !x->eof) {
        refuse(rq, ERR_INVALID_ARGUMENT,
               "data: is required (a string), unless eof is true and only ends the input");
        return;
    }
    keep_ticket(x, runner_write(rq->server->runner, x->process_id, x->data.data, x->data.len,
                                x->eof, on_ok, rq));
}

static const struct json_field write_in[] = {
    PROCESS_ID_FIELD,
    {"data", JSON_BYTES, 0, AT(data), 0, RUN_STDIN_MAX, NULL, "Text to write.", NULL},
    {"eof", JSON_BOOL, 0, AT(eof), 0, 0, NULL, "End the input after it.", "false"},
    TOOL_IGNORED_FIELDS,
};

const struct tool tool_write_stdin = {
    .name = "write_stdin",
    .title = "Write to a command",
    .description =
        "Writes text to the standard input of a running command, and with eof ends it. Answers "
        "when the bytes were taken over. On a terminal, control characters work (\\u0003 is "
        "Ctrl-C).",
    .hints = TOOL_DESTROYS | TOOL_WAITS,
    .in = write_in,
    .n_in = ARRAY_LEN(write_in),
    .out = ok_out,
    .n_out = ARRAY_LEN(ok_out),
    .state_size = sizeof(struct process_call),
    .run = write_run,
    .cancel = process_cancel,
};

/* ---- read_process ---- */

static void read_answer(struct request *rq, const struct run_page *page)
{
    const struct process_call *x = rq->state;
    const struct run_status *s = &page->status;
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "process_id", s->process_id);
    jsonw_kuint(w, "cursor", page->cursor);
    jsonw_kstr(w, "encoding", encodings[x->encoding]);
    jsonw_key(w, "chunk");
    if (x->encoding == ENCODING_BASE64)
        jsonw_base64(w, page->bytes, page->len);
    else
        jsonw_strn(w, page->bytes, page->len);
    if (x->encoding == ENCODING_UTF8 && !utf8_valid(page->bytes, page->len))
        jsonw_kbool(w, "chunk_lossy", true);
    jsonw_kbool(w, "eof", s->eof && page->cursor >= s->output_total);
    jsonw_kbool(w, "output_lost", page->lost);
    jsonw_kuint(w, "retained_from", page->retained_from);
    status_write_end(w, s);
    request_finish(rq);
}

static void on_page(void *user, const struct run_page *page, const struct err *failure)
{
    struct request *rq = user;
    const struct process_call *x = rq->state;
    if (failure != NULL)
        request_fail(rq, failure);
    else if (page->status.termination == RUN_END_TIMEOUT && x->cursor >= page->status.output_total)
        refuse(rq, ERR_TIMEOUT,
               "the command was ended by its time limit and all of its output was read; "
               "process_status tells more, timeout_ms of exec_command allows more");
    else
        read_answer(rq, page);
}

static void read_run(struct request *rq)
{
    struct process_call *x = rq->state;
    if (request_given(rq, "limit") && (x->limit == 0 || x->limit > RUN_PAGE_MAX)) {
        struct err e;
        err_set(&e, ERR_OUTPUT_LIMIT, "limit: 1 to RUN_PAGE_MAX (%u) is accepted", RUN_PAGE_MAX);
        request_fail(rq, &e);
        return;
    }
    struct run_read read = {.process_id = x->process_id,
                            .cursor = x->cursor,
                            .stream = (enum run_stream)x->stream,
                            .max_bytes = x->limit,
                            .wait_ms = x->wait_ms,
                            .whole_chars = x->encoding == ENCODING_UTF8};
    keep_ticket(x, runner_read(rq->server->runner, &read, on_page, rq));
}

static const struct json_field read_in[] = {
    PROCESS_ID_FIELD,
    {"cursor", JSON_U64, 0, AT(cursor), 0, 0, NULL,
     "Where to go on, as the last answer said. Counts the bytes of both streams.", "0"},
    {"stream", JSON_ENUM, 0, AT(stream), 0, 0, streams, "Which output.", "\"combined\""},
    {"encoding", JSON_ENUM, 0, AT(encoding), 0, 0, encodings,
     "How chunk is written; base64 loses no byte.", "\"utf-8\""},
    {"limit", JSON_U64, 0, AT(limit), 0, 0, NULL, "Most bytes to return, 1 to 262144.", "32768"},
    {"wait_ms", JSON_U64, 0, AT(wait_ms), 0, RUN_WAIT_MAX_MS, NULL,
     "Wait so long for output or the end when there is none yet.", "0"},
    TOOL_IGNORED_FIELDS,
};

static const struct output_field read_out[] = {
    {"process_id", OUTPUT_STR, true, NULL},
    {"cursor", OUTPUT_INT, true, "Where the next read goes on."},
    {"encoding", OUTPUT_STR, true, "utf-8 or base64."},
    {"chunk", OUTPUT_STR, true, "The output."},
    {"chunk_lossy", OUTPUT_BOOL, false, "The chunk is not UTF-8; bytes were replaced."},
    {"eof", OUTPUT_BOOL, true, "All output was read and no more will come."},
    {"output_lost", OUTPUT_BOOL, true, "Output between the cursor and this chunk was dropped."},
    {"retained_from", OUTPUT_INT, true, "First byte of output that is kept."},
    {"state", OUTPUT_STR, true, "running or exited."},
    {"exit_code", OUTPUT_INT, false, "Only when it exited by itself."},
    {"signal", OUTPUT_OBJ, false, "number and name, when a signal ended it."},
    {"termination", OUTPUT_STR, false, "How it ended."},
    {"reason", OUTPUT_STR, false, "More about the end."},
    {"background", OUTPUT_INT, false, "Processes it left behind, which were ended."},
    {"removed", OUTPUT_STRS, false, "Protected names it created, which were taken away."},
    {"duration_ms", OUTPUT_INT, false, NULL},
};

const struct tool tool_read_process = {
    .name = "read_process",
    .title = "Read a command's output",
    .description =
        "Reads output of a command from a cursor on, and tells its state. With wait_ms it waits "
        "for output or the end instead of answering with nothing. An eof is not a success: look "
        "at exit_code.",
    .hints = TOOL_READS | TOOL_IDEMPOTENT | TOOL_WAITS,
    .in = read_in,
    .n_in = ARRAY_LEN(read_in),
    .out = read_out,
    .n_out = ARRAY_LEN(read_out),
    .state_size = sizeof(struct process_call),
    .run = read_run,
    .cancel = process_cancel,
};

/* ---- process_status ---- */

static void on_status(void *user, const struct run_status *s, const struct err *failure)
{
    struct request *rq = user;
    if (failure != NULL) {
        request_fail(rq, failure);
        return;
    }
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "process_id", s->process_id);
    jsonw_kstr(w, "workspace_id", s->workspace_id);
    status_write_end(w, s);
    jsonw_kuint(w, "output_total", s->output_total);
    jsonw_kuint(w, "output_retained_from", s->output_retained_from);
    jsonw_kbool(w, "eof", s->eof);
    jsonw_kstr(w, "sandbox", status_sandbox(s));
    jsonw_kbool(w, "tty", s->tty);
    jsonw_kuint(w, "timeout_ms", s->timeout_ms);
    jsonw_kuint(w, "started_at_ms", s->started_ms);
    if (s->cpu_us > 0)
        jsonw_kuint(w, "cpu_us", s->cpu_us);
    if (s->max_rss_kib > 0)
        jsonw_kuint(w, "max_rss_kib", s->max_rss_kib);
    request_finish(rq);
}

static void status_run(struct request *rq)
{
    struct process_call *x = rq->state;
    keep_ticket(x, runner_status(rq->server->runner, x->process_id, on_status, rq));
}

static const struct json_field status_in[] = {
    PROCESS_ID_FIELD,
    TOOL_IGNORED_FIELDS,
};

static const struct output_field status_out[] = {
    {"process_id", OUTPUT_STR, true, NULL},
    {"workspace_id", OUTPUT_STR, true, NULL},
    {"state", OUTPUT_STR, true, "running or exited."},
    {"exit_code", OUTPUT_INT, false, "Only when it exited by itself."},
    {"termination", OUTPUT_STR, false, "How it ended."},
    {"signal", OUTPUT_OBJ, false, "number and name, when a signal ended it."},
    {"reason", OUTPUT_STR, false, "More about the end."},
    {"background", OUTPUT_INT, false, "Processes it left behind, which were ended."},
    {"removed", OUTPUT_STRS, false, "Protected names it created, which were taken away."},
    {"duration_ms", OUTPUT_INT, false, NULL},
    {"output_total", OUTPUT_INT, true, "Bytes of output so far."},
    {"output_retained_from", OUTPUT_INT, true, "First byte of output that is kept."},
    {"eof", OUTPUT_BOOL, true, "No more output will come."},
    {"sandbox", OUTPUT_STR, true, "linux-sandbox or none: what is really around it."},
    {"tty", OUTPUT_BOOL, true, NULL},
    {"timeout_ms", OUTPUT_INT, true, "Its time limit."},
    {"started_at_ms", OUTPUT_INT, true, "Milliseconds since 1970."},
    {"cpu_us", OUTPUT_INT, false, "Processor time of the whole command."},
    {"max_rss_kib", OUTPUT_INT, false, "Largest resident memory."},
};

const struct tool tool_process_status = {
    .name = "process_status",
    .title = "State of a command",
    .description =
        "Tells whether a command still runs, how it ended, how much output there is and what is "
        "around it. Ended commands stay known for 15 minutes.",
    .hints = TOOL_READS | TOOL_IDEMPOTENT,
    .in = status_in,
    .n_in = ARRAY_LEN(status_in),
    .out = status_out,
    .n_out = ARRAY_LEN(status_out),
    .state_size = sizeof(struct process_call),
    .run = status_run,
    .cancel = process_cancel,
};

/* ---- process_resize ---- */

static void on_resized(void *user, const struct err *failure)
{
    struct request *rq = user;
    const struct process_call *x = rq->state;
    if (failure != NULL) {
        request_fail(rq, failure);
        return;
    }
    struct jsonw *w = request_answer(rq);
    jsonw_kbool(w, "ok", true);
    jsonw_kuint(w, "rows", x->rows);
    jsonw_kuint(w, "cols", x->cols);
    request_finish(rq);
}

/* The contract: the size is checked before the handle, with INVALID_COMMAND. */
static void resize_run(struct request *rq)
{
    struct process_call *x = rq->state;
    if (x->rows == 0 || x->cols == 0 || x->rows > EXEC_TERMINAL_MAX ||
        x->cols > EXEC_TERMINAL_MAX) {
        refuse(rq, ERR_INVALID_COMMAND, "rows, cols: 1 to 1000 each is accepted");
        return;
    }
    keep_ticket(x, runner_resize(rq->server->runner, x->process_id, (uint16_t)x->rows,
                                 (uint16_t)x->cols, on_resized, rq));
}

static const struct json_field resize_in[] = {
    PROCESS_ID_FIELD,
    {"rows", JSON_U64, JSON_REQUIRED, AT(rows), 0, 0, NULL, "1 to 1000.", NULL},
    {"cols", JSON_U64, JSON_REQUIRED, AT(cols), 0, 0, NULL, "1 to 1000.", NULL},
    TOOL_IGNORED_FIELDS,
};

static const struct output_field resize_out[] = {
    {"ok", OUTPUT_BOOL, true, NULL},
    {"rows", OUTPUT_INT, true, NULL},
    {"cols", OUTPUT_INT, true, NULL},
};

const struct tool tool_process_resize = {
    .name = "process_resize",
    .title = "Resize a command's terminal",
    .description = "Sets the size of the terminal of a command that was started with tty.",
    .hints = TOOL_IDEMPOTENT,
    .in = resize_in,
    .n_in = ARRAY_LEN(resize_in),
    .out = resize_out,
    .n_out = ARRAY_LEN(resize_out),
    .state_size = sizeof(struct process_call),
    .run = resize_run,
    .cancel = process_cancel,
};

/* ---- terminate_process ---- */

static void terminate_run(struct request *rq)
{
    struct process_call *x = rq->state;
    keep_ticket(x, runner_terminate(rq->server->runner, x->process_id, on_ok, rq));
}

static const struct json_field terminate_in[] = {
    PROCESS_ID_FIELD,
    TOOL_IGNORED_FIELDS,
};

const struct tool tool_terminate_process = {
    .name = "terminate_process",
    .title = "End a command",
    .description =
        "Ends a command and everything it started: SIGTERM first, SIGKILL half a second later. "
        "Answers at once; ending an ended command is fine.",
    .hints = TOOL_DESTROYS | TOOL_IDEMPOTENT,
    .in = terminate_in,
    .n_in = ARRAY_LEN(terminate_in),
    .out = ok_out,
    .n_out = ARRAY_LEN(ok_out),
    .state_size = sizeof(struct process_call),
    .run = terminate_run,
    .cancel = process_cancel,
};
