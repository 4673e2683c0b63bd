/* mcp/tool_exec: exec_command.
 *
 * Two steps at the runner: start, and with wait_ms one read that waits for the end (which the start
 * announces, so that a worker can answer both at once). The record of the command is held over the
 * wait: most commands end in it, and then nobody else has to ask for the end. Everything that can
 * be wrong with the arguments is found before the first, so that an error means: nothing ran. A
 * call cancelled between its start and its answer takes the process with it, because nobody was
 * told its id yet.
 *
 * When the worker is lost between the two, or the answer is, nobody knows whether the command runs:
 * then the answer is no error but `dispatch_status: unknown` with the id that the command would
 * have, and what to do with it. Once the start is known, nothing that goes wrong with the wait
 * takes the id out of the answer.
 */
#include "base/utf8.h"
#include "core/exec_limits.h"
#include "core/files.h"
#include "core/operations_store.h"
#include "core/policy.h"
#include "mcp/command_record.h"
#include "mcp/session.h"
#include "mcp/status.h"
#include "mcp/tool.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

struct exec_call {
    const char *workspace_id;
    struct json_object *command;
    bool tty;
    const char *cwd;
    struct json_object *env;
    struct json_bytes stdin_data;
    uint64_t timeout_ms;
    uint64_t rows, cols;
    uint64_t wait_ms;
    uint64_t idle_timeout_ms;
    int background;
    bool exclusive;
    uint64_t exclusive_wait_ms;

    bool waits;
    const struct workspace *ws;
    char dir[PATH_LEN_MAX];
    struct strv argv;
    struct strv env_items;
    size_t total; /* bytes of arguments and variables */
    char *process_id;
    const char *operation_key;
    struct command_record *record; /* from the claim to the start, or to the end of the wait */
    struct run_read read;          /* the wait */
    char *operation_id;
    bool replayed;
    run_ticket ticket;
    struct err e;
};

static void exec_fini(struct request *rq)
{
    struct exec_call *x = rq->state;
    strv_fini(&x->argv);
    strv_fini(&x->env_items);
    free(x->process_id);
    free(x->operation_id);
}

/* ---- what is asked ---- */

static int count_bytes(struct exec_call *x, const char *what, size_t n)
{
    if (n > EXEC_STRING_MAX)
        return err_set(&x->e, ERR_INVALID_COMMAND,
                       "%s: %zu bytes; one argument or variable may have EXEC_STRING_MAX (%u), "
                       "because the kernel takes no longer one. Put a long script into a file, or "
                       "send it as `stdin` to a shell",
                       what, n, EXEC_STRING_MAX);
    x->total += n + 1 + sizeof(char *);
    if (x->total > EXEC_TOTAL_MAX)
        return err_set(&x->e, ERR_INVALID_COMMAND,
                       "%s: arguments and variables together are larger than EXEC_TOTAL_MAX (%u "
                       "bytes); pass long lists in a file or as `stdin`",
                       what, EXEC_TOTAL_MAX);
    return 0;
}

static int take_argv(struct exec_call *x)
{
    size_t n = json_object_array_length(x->command);
    for (size_t i = 0; i < n; i++) {
        const char *arg = json_str(json_object_array_get_idx(x->command, i));
        char what[40];
        snprintf(what, sizeof(what), "command[%zu]", i);
        if (count_bytes(x, what, strlen(arg)) < 0)
            return -1;
        strv_add(&x->argv, arg);
    }
    if (n == 0 || x->argv.items[0][0] == '\0')
        return err_set(&x->e, ERR_INVALID_COMMAND,
                       "command: must name a program and its arguments, such as [\"ls\", \"-l\"]; "
                       "it is not a shell line");
    return 0;
}

static int take_env(struct exec_call *x)
{
    if (x->env == NULL)
        return 0;
    json_object_object_foreach(x->env, name, value)
    {
        const char *text = json_str(value);
        char what[96];
        if (policy_check_env_name(name, &x->e) < 0)
            return -1;
        snprintf(what, sizeof(what), "env.%.64s", name);
        if (count_bytes(x, what, strlen(name) + 1 + strlen(text)) < 0)
            return -1;
        strv_addf(&x->env_items, "%s=%s", name, text);
    }
    return 0;
}

/* The directory must exist now, so that a typing error is an error here and not a failed start. */
static int take_cwd(struct exec_call *x)
{
    if (x->cwd == NULL || x->cwd[0] == '\0')
        return 0;
    if (files_resolve(x->ws, x->cwd, x->dir, &x->e) < 0)
        return err_wrap(&x->e, "cwd");
    if (policy_check_read_path(x->ws, x->dir, &x->e) < 0)
        return err_wrap(&x->e, "cwd");
    autofd int fd = path_open_beneath(x->ws->root_fd, x->dir, O_PATH | O_DIRECTORY, 0);
    if (fd < 0) {
        files_error(&x->e, -fd, x->dir, "open the directory");
        return err_wrap(&x->e, "cwd");
    }
    return 0;
}

/* All that can be refused before anything starts. */
static int exec_admit(struct request *rq)
{
    struct exec_call *x = rq->state;
    x->ws = registry_get(rq->server->registry, x->workspace_id, &x->e);
    if (x->ws == NULL || policy_check(x->ws, POLICY_EXEC, &x->e) < 0)
        return -1;
    if (!x->tty && (x->rows != 0 || x->cols != 0))
        return err_set(&x->e, ERR_INVALID_ARGUMENT,
                       "rows, cols: are of a terminal; set tty to true, or leave them out");
    if (take_argv(x) < 0 || take_env(x) < 0 || take_cwd(x) < 0)
        return -1;
    x->waits = rq->session->patient || request_given(rq, "wait_ms");
    if (rq->session->patient)
        x->wait_ms = RUN_WAIT_MAX_MS;
    x->read = (struct run_read){.wait_ms = x->wait_ms, .until_exit = true, .whole_chars = true};
    return 0;
}

/* ---- what happened ---- */

static void write_output(struct jsonw *w, const struct run_page *page)
{
    const struct run_status *s = &page->status;
    jsonw_kstr(w, "sandbox", status_sandbox(s));
    jsonw_kstr(w, "network_scope", status_network_scope(s));
    jsonw_key(w, "output");
    jsonw_strn(w, page->bytes, page->len);
    if (!utf8_valid(page->bytes, page->len))
        jsonw_kbool(w, "output_lossy", true);
    jsonw_kuint(w, "cursor", page->cursor);
    jsonw_kbool(w, "eof", s->eof && page->cursor >= s->output_total);
    jsonw_kbool(w, "truncated", page->cursor < s->output_total);
    jsonw_kbool(w, "output_lost", page->lost);
    jsonw_kuint(w, "retained_from", page->retained_from);
}

static void write_record(struct jsonw *w, const struct exec_call *x)
{
    if (x->operation_id != NULL)
        jsonw_kstr(w, "operation_id", x->operation_id);
    if (x->replayed)
        jsonw_kbool(w, "replayed", true);
}

/* The id, and what is known of the start; `hint` NULL = there is nothing to say. */
static void answer_id(struct request *rq, const char *process_id, const char *dispatch,
                      const char *hint)
{
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "process_id", process_id);
    jsonw_kstr(w, "dispatch_status", dispatch);
    write_record(w, rq->state);
    if (hint != NULL)
        jsonw_kstr(w, "hint", hint);
    request_finish(rq);
}

static void answer_unknown(struct request *rq, const char *process_id, const struct err *failure)
{
    autofree char *hint = mem_printf(
        "%s. Do not simply repeat it: ask process_status for this process_id (or list_processes) "
        "first. PROCESS_NOT_FOUND means that it did not start; termination lost means that its "
        "end is not known, so look at what it would have changed",
        failure->message);
    answer_id(rq, process_id, "unknown", hint);
}

/* It was started; only the wait for it failed. */
static void answer_unwaited(struct request *rq, const struct err *failure)
{
    const struct exec_call *x = rq->state;
    autofree char *hint =
        mem_printf("it was started, and the wait for its end failed (%s: %s); process_status and "
                   "read_process tell what is known",
                   err_info(failure->code)->name, failure->message);
    answer_id(rq, x->process_id, "confirmed", hint);
}

static void await_end(struct request *rq);

/* Nobody here waits for the end any more. */
static void follow_record(struct exec_call *x)
{
    if (x->record != NULL)
        command_record_started(steal(x->record));
}

static void on_waited(void *user, const struct run_page *page, const struct err *failure)
{
    struct request *rq = user;
    struct exec_call *x = rq->state;
    if (failure != NULL) {
        follow_record(x);
        answer_unwaited(rq, failure);
        return;
    }
    x->ticket = 0;
    if (rq->session != NULL && rq->session->patient && page->status.state == RUN_RUNNING) {
        await_end(rq);
        return;
    }
    if (x->record != NULL && page->status.state == RUN_EXITED)
        command_record_ended(steal(x->record), &page->status);
    follow_record(x);
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "process_id", x->process_id);
    jsonw_kstr(w, "dispatch_status", "confirmed");
    write_record(w, x);
    status_write_end(w, &page->status);
    write_output(w, page);
    request_finish(rq);
}

static void go_on(struct request *rq, const char *process_id);

static void on_started(void *user, const char *process_id, const struct err *failure)
{
    struct request *rq = user;
    struct exec_call *x = rq->state;
    x->ticket = 0;
    if (failure != NULL && failure->code == ERR_RUNNER_LOST && process_id != NULL) {
        command_record_unknown(steal(x->record), failure->message);
        answer_unknown(rq, process_id, failure);
        return;
    }
    if (failure != NULL) {
        command_record_refused(steal(x->record), failure);
        request_fail_operation(rq, failure, x->operation_id);
        return;
    }
    go_on(rq, process_id);
}

/* It was started under this id: by this call, or by an earlier one with its key. */
static void go_on(struct request *rq, const char *process_id)
{
    struct exec_call *x = rq->state;
    if (!x->waits) {
        follow_record(x);
        answer_id(rq, process_id, "confirmed", NULL);
        return;
    }
    x->process_id = mem_strdup(process_id);
    await_end(rq);
}

static void await_end(struct request *rq)
{
    struct exec_call *x = rq->state;
    x->read.process_id = x->process_id;
    run_ticket ticket = runner_read(rq->server->runner, &x->read, on_waited, rq);
    if (ticket != 0) /* 0: answered already, and the call is gone */
        x->ticket = ticket;
}

static void exec_known(struct request *rq, const char *process_id, const char *unknown)
{
    struct exec_call *x = rq->state;
    struct err e;
    x->replayed = true;
    if (unknown == NULL) {
        go_on(rq, process_id);
        return;
    }
    err_set(&e, ERR_RUNNER_LOST, "an earlier call with this operation_key: %.800s", unknown);
    answer_unknown(rq, process_id, &e);
}

static void exec_start(struct request *rq, struct command_record *record)
{
    struct exec_call *x = rq->state;
    x->record = record;
    x->operation_id = mem_strdup(command_record_operation(record));
    struct run_exec exec = {
        .ws = x->ws,
        .argv = strv_array(&x->argv),
        .cwd = x->dir[0] != '\0' ? x->dir : NULL,
        .env = x->env_items.len > 0 ? strv_array(&x->env_items) : NULL,
        .tty = x->tty,
        .rows = (uint16_t)x->rows,
        .cols = (uint16_t)x->cols,
        .timeout_ms = x->timeout_ms,
        .stdin_data = request_given(rq, "stdin") ? x->stdin_data.data : NULL,
        .stdin_len = x->stdin_data.len,
        .idle_timeout_ms = x->idle_timeout_ms,
        .background = (enum run_background)x->background,
        .exclusive = x->exclusive,
        .exclusive_wait_ms = x->exclusive_wait_ms,
        .process_id = command_record_process(record),
        .first = x->waits ? &x->read : NULL,
    };
    run_ticket ticket = runner_exec(rq->server->runner, &exec, on_started, rq);
    if (ticket != 0)
        x->ticket = ticket;
}

static void exec_claim(struct request *rq)
{
    struct exec_call *x = rq->state;
    const struct command_claim claim = {.ws = x->ws,
                                        .argv = strv_array(&x->argv),
                                        .operation_key = x->operation_key,
                                        .start = exec_start,
                                        .known = exec_known};
    command_claim(rq, &claim);
}

static void exec_run(struct request *rq)
{
    struct exec_call *x = rq->state;
    if (exec_admit(rq) < 0)
        request_fail(rq, &x->e);
    else
        request_when_probed(rq, exec_claim);
}

static void ignore_done(void *user, const struct err *failure)
{
}

static void exec_cancel(struct request *rq)
{
    struct exec_call *x = rq->state;
    runner_cancel(rq->server->runner, x->ticket);
    if (x->process_id != NULL)
        follow_record(x);
    if (x->record != NULL)
        command_record_unknown(steal(x->record), "the call was cancelled while it started");
    if (x->process_id != NULL && !x->replayed)
        runner_terminate(rq->server->runner, x->process_id, ignore_done, NULL);
}

static void describe(const struct server *s, struct buf *out)
{
    buf_putc(out, ' ');
    facts_exec_summary(&s->facts, s->registry, out);
}

static const char *const backgrounds[] = {
    [RUN_BACKGROUND_KILL] = "kill", [RUN_BACKGROUND_KEEP] = "keep", NULL};

#define AT(member) offsetof(struct exec_call, member)
static const struct json_field in[] = {
    {"workspace_id", JSON_STR, JSON_REQUIRED, AT(workspace_id), 0, 0, NULL,
     "The workspace, as workspace_info lists it.", NULL},
    {"command", JSON_STRV, JSON_REQUIRED, AT(command), 0, EXEC_ARGV_MAX, NULL,
     "Program and arguments; no shell is involved. For one: [\"bash\", \"-c\", \"...\"].", NULL},
    {"tty", JSON_BOOL, 0, AT(tty), 0, 0, NULL, "Run on a terminal.", "false"},
    {"cwd", JSON_STR, 0, AT(cwd), 0, 0, NULL,
     "Directory to run in, relative to the workspace; without it the root.", NULL},
    {"env", JSON_STRMAP, 0, AT(env), 0, EXEC_ENV_MAX, NULL,
     "Variables on top of the clean environment.", NULL},
    {"stdin", JSON_BYTES, 0, AT(stdin_data), 0, RUN_STDIN_MAX, NULL,
     "Standard input, whole, then end of file. Without it stdin stays open for write_stdin.", NULL},
    {"timeout_ms", JSON_U64, 0, AT(timeout_ms), 1, RUN_TIMEOUT_MAX_MS, NULL,
     "The command and all it started are ended after this time.", NULL},
    {"idle_timeout_ms", JSON_U64, 0, AT(idle_timeout_ms), 0, RUN_TIMEOUT_MAX_MS, NULL,
     "End it after so long without output and without input; 0 = never.", "0"},
    {"background", JSON_ENUM, 0, AT(background), 0, 0, backgrounds,
     "What becomes of processes that it leaves behind: kill ends them with it; keep lets them run "
     "until timeout_ms or terminate_process, under this process_id.",
     "\"kill\""},
    {"exclusive", JSON_BOOL, 0, AT(exclusive), 0, 0, NULL,
     "Wait until no other command runs in this workspace's directory, and let none run beside it.",
     "false"},
    {"exclusive_wait_ms", JSON_U64, 0, AT(exclusive_wait_ms), 1, RUN_TURN_MAX_MS, NULL,
     "Wait so long for its turn, its own or another command's exclusive one; then WORKSPACE_BUSY.",
     "30000"},
    {"rows", JSON_U64, 0, AT(rows), 1, EXEC_TERMINAL_MAX, NULL, "Rows of the terminal.", "24"},
    {"cols", JSON_U64, 0, AT(cols), 1, EXEC_TERMINAL_MAX, NULL, "Columns of the terminal.", "80"},
    {"operation_key", JSON_STR, 0, AT(operation_key), 1, OPSTORE_KEY_MAX, NULL,
     "A key of yours for this request: sent again, it does not run again but finds the process.",
     NULL},
    {"wait_ms", JSON_U64, 0, AT(wait_ms), 0, RUN_WAIT_MAX_MS, NULL,
     "Wait so long for the end and answer with status and output. Without it the answer is only "
     "the process_id.",
     NULL},
    TOOL_IGNORED_FIELDS,
};
#undef AT

static const struct output_field out[] = {
    {"process_id", OUTPUT_STR, true, "Handle for the process tools."},
    {"dispatch_status", OUTPUT_STR, true,
     "confirmed (it was started) or unknown (perhaps: see hint)."},
    {"hint", OUTPUT_STR, false, "What to do when something is not known."},
    {"operation_id", OUTPUT_STR, false, "Of its record: operation_status, list_operations."},
    {"replayed", OUTPUT_BOOL, false, "An earlier request with this operation_key started it."},
    STATUS_END_ROWS(false),
    {"output", OUTPUT_STR, false, "stdout and stderr in order, from the start."},
    {"output_lossy", OUTPUT_BOOL, false,
     "The output is not UTF-8; read_process gives it as base64."},
    {"cursor", OUTPUT_INT, false, "Where read_process goes on."},
    {"eof", OUTPUT_BOOL, false, "No output after this will come."},
    {"truncated", OUTPUT_BOOL, false, "More output is there; read_process from cursor."},
    {"output_lost", OUTPUT_BOOL, false, "The beginning of the output was dropped."},
    {"retained_from", OUTPUT_INT, false, "First byte of output that is kept."},
    {"sandbox", OUTPUT_STR, false,
     "linux-sandbox or none: what was really around it; unknown when it was lost before that was "
     "told."},
    {"network_scope", OUTPUT_STR, false,
     "command: its loopback is its own. workspace: shared with other commands of the workspace. "
     "host: no sandbox. unknown: as for sandbox."},
};

const struct tool tool_exec_command = {
    .name = "exec_command",
    .title = "Run a command",
    .description =
        "Runs a command in a workspace. With wait_ms the answer carries exit status and output, "
        "which is one call for most commands; without it, or when the time is over first, the "
        "command goes on and process_id is its handle for read_process, process_status, "
        "write_stdin, signal_process and terminate_process; list_processes finds it again. A "
        "command that fails shows in its exit_code, not as an error of this call. A long-lived "
        "server is started as a command of its own, or left by a script with background: keep.",
    .describe = describe,
    .hints = TOOL_DESTROYS | TOOL_WAITS | TOOL_TASKS,
    .in = in,
    .n_in = ARRAY_LEN(in),
    .out = out,
    .n_out = ARRAY_LEN(out),
    .state_size = sizeof(struct exec_call),
    .run = exec_run,
    .cancel = exec_cancel,
    .fini = exec_fini,
};
