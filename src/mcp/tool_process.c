/* mcp/tool_process: the tools that speak to a running command by its handle: write_stdin,
 * process_status, process_resize, terminate_process, signal_process. (read_process is in
 * tool_read_process.c, list_processes in tool_list.c.)
 *
 * A handle is all they need: workspace and profile were checked when the command was started, and
 * whoever may talk to this server may end what was started through it.
 *
 * signal_process stands apart from terminate_process because the two promise different things: an
 * end takes the whole tree and comes to KILL, a signal is delivered once and what it does is the
 * command's business. Clients grant permissions by the name of a tool, so the harmless one does not
 * hide in an argument of the other.
 */
#include "core/exec_limits.h"
#include "mcp/signal_arg.h"
#include "mcp/status.h"
#include "mcp/tool.h"

/* One state for all: the arguments are few and mostly the same. */
struct process_call {
    const char *process_id;
    struct json_bytes data;
    bool eof;
    uint64_t rows, cols;
    const char *signal;
    uint64_t grace_ms;
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

/* Lost is not failed: say how to find out. */
static void fail(struct request *rq, const struct err *failure)
{
    const struct process_call *x = rq->state;
    if (failure->code != ERR_RUNNER_LOST) {
        request_fail(rq, failure);
        return;
    }
    struct err e;
    err_set(&e, failure->code, "%.700s; process_status of %.64s tells what became of it",
            failure->message, x->process_id);
    request_fail(rq, &e);
}

static void on_ok(void *user, const struct err *failure)
{
    struct request *rq = user;
    if (failure != NULL) {
        fail(rq, failure);
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

/* ---- process_status ---- */

static void on_status(void *user, const struct run_status *s, const struct err *failure)
{
    struct request *rq = user;
    if (failure != NULL) {
        fail(rq, failure);
        return;
    }
    status_write_all(request_answer(rq), s);
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
    {"command", OUTPUT_STR, false, "The beginning of its argv, for people."},
    STATUS_END_ROWS(true),
    {"output_total", OUTPUT_INT, true, "Bytes of output so far."},
    {"output_retained_from", OUTPUT_INT, true, "First byte of output that is kept."},
    {"eof", OUTPUT_BOOL, true, "No more output will come."},
    {"sandbox", OUTPUT_STR, true,
     "linux-sandbox or none: what is really around it; unknown when it was lost before that was "
     "told."},
    {"network_scope", OUTPUT_STR, true,
     "command: its loopback is its own. workspace: shared with other commands of the workspace. "
     "host: no sandbox. unknown: as for sandbox."},
    {"tty", OUTPUT_BOOL, true, NULL},
    {"timeout_ms", OUTPUT_INT, true, "Its time limit."},
    {"idle_timeout_ms", OUTPUT_INT, false, "How long it may be silent."},
    {"started_at_ms", OUTPUT_INT, true, "Milliseconds since 1970; 0 when it is not known."},
    {"ended_at_ms", OUTPUT_INT, false, "The same of its end."},
};

const struct tool tool_process_status = {
    .name = "process_status",
    .title = "State of a command",
    .description =
        "Tells whether a command still runs, how it ended, how much output there is and what is "
        "around it. Ended commands stay known for 15 minutes. After an answer with dispatch_status "
        "unknown, or RUNNER_LOST, this tells what is known; nothing is ever guessed.",
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
        fail(rq, failure);
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
    struct run_terminate how = {.has_grace = request_given(rq, "grace_ms"),
                                .grace_ms = x->grace_ms};
    struct err e;
    if (x->signal != NULL && signal_arg_read_end(x->signal, &how.signal, &e) < 0) {
        request_fail(rq, &e);
        return;
    }
    keep_ticket(x, runner_terminate_by(rq->server->runner, x->process_id, &how, on_ok, rq));
}

static const struct json_field terminate_in[] = {
    PROCESS_ID_FIELD,
    {"signal", JSON_STR, 0, AT(signal), 1, 32, NULL,
     "The first one: TERM, INT, HUP, KILL and so on. KILL leaves no grace.", "\"TERM\""},
    {"grace_ms", JSON_U64, 0, AT(grace_ms), 0, RUN_GRACE_MAX_MS, NULL,
     "From that signal to SIGKILL.", "500"},
    TOOL_IGNORED_FIELDS,
};

const struct tool tool_terminate_process = {
    .name = "terminate_process",
    .title = "End a command",
    .description =
        "Ends a command and everything it started: one signal first (TERM), SIGKILL grace_ms "
        "later. Answers at once; ending an ended command is fine, and ends what it left with "
        "background: keep. To send a signal and nothing more: signal_process.",
    .hints = TOOL_DESTROYS | TOOL_IDEMPOTENT,
    .in = terminate_in,
    .n_in = ARRAY_LEN(terminate_in),
    .out = ok_out,
    .n_out = ARRAY_LEN(ok_out),
    .state_size = sizeof(struct process_call),
    .run = terminate_run,
    .cancel = process_cancel,
};

/* ---- signal_process ---- */

static void signal_run(struct request *rq)
{
    struct process_call *x = rq->state;
    struct err e;
    int signal;
    if (signal_arg_read(x->signal, &signal, &e) < 0) {
        request_fail(rq, &e);
        return;
    }
    keep_ticket(x, runner_signal(rq->server->runner, x->process_id, signal, on_ok, rq));
}

static const struct json_field signal_in[] = {
    PROCESS_ID_FIELD,
    {"signal", JSON_STR, JSON_REQUIRED, AT(signal), 1, 32, NULL,
     "INT (as Ctrl-C), STOP, CONT, HUP, USR1, TERM and so on.", NULL},
    TOOL_IGNORED_FIELDS,
};

const struct tool tool_signal_process = {
    .name = "signal_process",
    .title = "Send a signal to a command",
    .description =
        "Sends one signal to a running command (its process group; what it does is the command's "
        "business): INT interrupts, STOP pauses, CONT goes on, HUP and USR1 are what the program "
        "makes of them. To be sure that a command ends: terminate_process.",
    .hints = TOOL_DESTROYS,
    .in = signal_in,
    .n_in = ARRAY_LEN(signal_in),
    .out = ok_out,
    .n_out = ARRAY_LEN(ok_out),
    .state_size = sizeof(struct process_call),
    .run = signal_run,
    .cancel = process_cancel,
};
