/* mcp/tool_read_process: read_process.
 *
 * A read begins at a byte (cursor), at a line, or so many bytes or lines before the end; at one of
 * them, because two would contradict each other. Whatever it begins with, the answer's cursor goes
 * on from there in bytes.
 */
#include "base/utf8.h"
#include "mcp/status.h"
#include "mcp/tool.h"

enum encoding { ENCODING_UTF8, ENCODING_BASE64 };

static const char *const streams[] = {[RUN_COMBINED] = "combined",
                                      [RUN_STDOUT] = "stdout",
                                      [RUN_STDERR] = "stderr",
                                      [RUN_STDERR + 1] = NULL};
static const char *const encodings[] = {
    [ENCODING_UTF8] = "utf-8", [ENCODING_BASE64] = "base64", NULL};

struct read_call {
    const char *process_id;
    uint64_t cursor, line, tail_bytes, tail_lines;
    uint64_t limit, wait_ms;
    int stream, encoding;
    bool clean;
    enum run_from from;
    run_ticket ticket;
};

static void read_cancel(struct request *rq)
{
    struct read_call *x = rq->state;
    runner_cancel(rq->server->runner, x->ticket);
}

static void write_chunk(struct jsonw *w, const struct read_call *x, const struct run_page *page)
{
    jsonw_kstr(w, "encoding", encodings[x->encoding]);
    jsonw_key(w, "chunk");
    if (x->encoding == ENCODING_BASE64)
        jsonw_base64(w, page->bytes, page->len);
    else
        jsonw_strn(w, page->bytes, page->len);
    if (x->encoding == ENCODING_UTF8 && !utf8_valid(page->bytes, page->len))
        jsonw_kbool(w, "chunk_lossy", true);
}

static void read_answer(struct request *rq, const struct run_page *page)
{
    const struct read_call *x = rq->state;
    const struct run_status *s = &page->status;
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "process_id", s->process_id);
    jsonw_kuint(w, "cursor", page->cursor);
    write_chunk(w, x, page);
    jsonw_kbool(w, "eof", s->eof && page->cursor >= s->output_total);
    jsonw_kbool(w, "output_lost", page->lost);
    jsonw_kuint(w, "retained_from", page->retained_from);
    jsonw_kuint(w, "start", page->start);
    if (page->len > 0 && page->time_ms > 0)
        jsonw_kuint(w, "written_at_ms", page->time_ms);
    status_write_end(w, s);
    request_finish(rq);
}

static void on_page(void *user, const struct run_page *page, const struct err *failure)
{
    struct request *rq = user;
    const struct read_call *x = rq->state;
    struct err e;
    if (failure != NULL) {
        request_fail(rq, failure);
        return;
    }
    bool read_to_end = x->from == RUN_FROM_OFFSET && x->cursor >= page->status.output_total;
    if (page->status.termination != RUN_END_TIMEOUT || !read_to_end) {
        read_answer(rq, page);
        return;
    }
    err_set(&e, ERR_TIMEOUT,
            "the command was ended by its time limit and all of its output was read; "
            "process_status tells more, timeout_ms of exec_command allows more");
    request_fail(rq, &e);
}

/* Where it begins; at most one of the four may say so. */
static int take_beginning(struct request *rq, struct run_read *read, struct err *e)
{
    struct read_call *x = rq->state;
    const struct {
        const char *name;
        enum run_from from;
        uint64_t value;
    } rows[] = {
        {"cursor", RUN_FROM_OFFSET, x->cursor},
        {"line", RUN_FROM_LINE, x->line - 1},
        {"tail_bytes", RUN_FROM_TAIL_BYTES, x->tail_bytes},
        {"tail_lines", RUN_FROM_TAIL_LINES, x->tail_lines},
    };
    const char *given = NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!request_given(rq, rows[i].name))
            continue;
        if (given != NULL)
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "%s, %s: a read begins at one of cursor, line, tail_bytes and "
                           "tail_lines; leave the others out, and go on with the cursor of the "
                           "answer",
                           given, rows[i].name);
        given = rows[i].name;
        x->from = read->from = rows[i].from;
        read->cursor = rows[i].value;
    }
    return 0;
}

static int check(struct request *rq, struct run_read *read, struct err *e)
{
    const struct read_call *x = rq->state;
    if (request_given(rq, "limit") && (x->limit == 0 || x->limit > RUN_PAGE_MAX))
        return err_set(e, ERR_OUTPUT_LIMIT, "limit: 1 to RUN_PAGE_MAX (%u) is accepted",
                       RUN_PAGE_MAX);
    if (x->clean && x->encoding == ENCODING_BASE64)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "clean, encoding: cleaned output is text, and base64 is for the bytes as "
                       "they are; leave one of them out");
    return take_beginning(rq, read, e);
}

static void read_run(struct request *rq)
{
    struct read_call *x = rq->state;
    struct run_read read = {.process_id = x->process_id,
                            .stream = (enum run_stream)x->stream,
                            .max_bytes = x->limit,
                            .wait_ms = x->wait_ms,
                            .whole_chars = x->encoding == ENCODING_UTF8,
                            .clean = x->clean};
    struct err e;
    if (check(rq, &read, &e) < 0) {
        request_fail(rq, &e);
        return;
    }
    run_ticket ticket = runner_read(rq->server->runner, &read, on_page, rq);
    if (ticket != 0) /* 0: answered already, and the call is gone */
        x->ticket = ticket;
}

#define AT(member) offsetof(struct read_call, member)
static const struct json_field in[] = {
    {"process_id", JSON_STR, JSON_REQUIRED, AT(process_id), 0, 0, NULL,
     "The handle that exec_command gave.", NULL},
    {"cursor", JSON_U64, 0, AT(cursor), 0, 0, NULL,
     "Where to go on, as the last answer said. Counts the bytes of both streams.", "0"},
    {"line", JSON_U64, 0, AT(line), 1, 0, NULL,
     "Begin at this line instead (from 1, lines of both streams together).", NULL},
    {"tail_bytes", JSON_U64, 0, AT(tail_bytes), 0, 0, NULL,
     "Begin so many bytes before the end instead.", NULL},
    {"tail_lines", JSON_U64, 0, AT(tail_lines), 0, 0, NULL,
     "Begin so many lines before the end instead.", NULL},
    {"stream", JSON_ENUM, 0, AT(stream), 0, 0, streams, "Which output.", "\"combined\""},
    {"encoding", JSON_ENUM, 0, AT(encoding), 0, 0, encodings,
     "How chunk is written; base64 loses no byte.", "\"utf-8\""},
    {"clean", JSON_BOOL, 0, AT(clean), 0, 0, NULL,
     "As a terminal would show it: without escape sequences, a progress bar only in its last "
     "state.",
     "false"},
    {"limit", JSON_U64, 0, AT(limit), 0, 0, NULL, "Most bytes to return, 1 to 524288.", "32768"},
    {"wait_ms", JSON_U64, 0, AT(wait_ms), 0, RUN_WAIT_MAX_MS, NULL,
     "Wait so long for output or the end when there is none yet.", "0"},
    TOOL_IGNORED_FIELDS,
};
#undef AT

static const struct output_field out[] = {
    {"process_id", OUTPUT_STR, true, NULL},
    {"cursor", OUTPUT_INT, true, "Where the next read goes on."},
    {"encoding", OUTPUT_STR, true, "utf-8 or base64."},
    {"chunk", OUTPUT_STR, true, "The output."},
    {"chunk_lossy", OUTPUT_BOOL, false, "The chunk is not UTF-8; bytes were replaced."},
    {"eof", OUTPUT_BOOL, true, "All output was read and no more will come."},
    {"output_lost", OUTPUT_BOOL, true, "Output between the cursor and this chunk was dropped."},
    {"retained_from", OUTPUT_INT, true, "First byte of output that is kept."},
    {"start", OUTPUT_INT, true, "Offset of the first byte of the chunk."},
    {"written_at_ms", OUTPUT_INT, false, "When that byte came, milliseconds since 1970."},
    STATUS_END_ROWS(true),
};

const struct tool tool_read_process = {
    .name = "read_process",
    .title = "Read a command's output",
    .description =
        "Reads output of a command and tells its state: from a cursor on, from a line on, or the "
        "last bytes or lines. With wait_ms it waits for output or the end instead of answering "
        "with nothing. clean gives what a terminal would show. An eof is not a success: look at "
        "exit_code.",
    .hints = TOOL_READS | TOOL_IDEMPOTENT | TOOL_WAITS,
    .in = in,
    .n_in = ARRAY_LEN(in),
    .out = out,
    .n_out = ARRAY_LEN(out),
    .state_size = sizeof(struct read_call),
    .run = read_run,
    .cancel = read_cancel,
};
