/* mcp/tool_search: search, regular expressions over the contents of a workspace.
 *
 * Theory. Ripgrep runs like a command of the workspace, through the runner and inside its sandbox,
 * never anywhere else: so it sees what commands see, and what the file tools hide is not there
 * (A27). The arguments are ours (core/search), the client gives a pattern, globs and a path, and
 * the view is read-only (server_searcher), so a workspace that runs no commands can be searched.
 * Both outputs are read while it runs and fed to core/search; when it has ended, the page is made
 * on a thread of the pool. The process is the gateway's own: no list shows it, and its record is
 * dropped when it was read.
 *
 * The first try is a quick one where it may be (core/search): it is ended after QUICK_MS, and then,
 * or when anything was odd about it, ripgrep is asked again in the ordinary way. Where a search
 * took longer the last time the next one is ordinary at once: what a look at each file costs is
 * little beside that.
 *
 * Must not: fall back to a search outside the sandbox, or believe a path that ripgrep prints.
 */
#include "base/utf8.h"
#include "core/files.h"
#include "core/policy.h"
#include "core/search.h"
#include "mcp/tool.h"
#include "sys/path.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* About 15,000 tokens: the lines of a page when no limit is named. */
#define DEFAULT_BYTES (48u << 10)
#define ANSWER_BYTES (128u << 10)
/* What ripgrep passes over is read at least so often, so that none of it is dropped. */
#define READ_WAIT_MS 200u
#define TIMEOUT_DEFAULT_MS 60000u
/* What a quick try gets: twice what 100,000 small files take. It bounds, too, how much of a line
 * without an end ripgrep reads, since a quick try knows no size of a file. */
#define QUICK_MS 600u

static const char *const cases[] = {[SEARCH_CASE_SENSITIVE] = "sensitive",
                                    [SEARCH_CASE_IGNORE] = "ignore",
                                    [SEARCH_CASE_SMART] = "smart",
                                    NULL};

struct search_call {
    const char *workspace_id;
    const char *pattern;
    const char *path;
    struct json_object *globs;
    bool literal, whole_words, multiline, ignore_files, binary;
    int letter_case;
    uint64_t context, before, after;
    uint64_t offset, limit, max_file_bytes, timeout_ms;

    const struct workspace *ws;
    struct search_request q;
    const char **glob_items;
    struct strv argv;
    struct search *search;
    uint64_t began_ms; /* this try */
    bool again;        /* it is to be thrown away */
    char *process_id;
    run_ticket ticket;
    uint64_t cursors[2]; /* of standard output and error */
    bool stopping;
    int exit_status;
    struct search_page page;
    int status;
    struct err e;
};

static void search_fini(struct request *rq)
{
    struct search_call *x = rq->state;
    search_page_fini(&x->page);
    search_free(x->search);
    strv_fini(&x->argv);
    free(x->glob_items);
    free(x->process_id);
}

/* ---- what is asked ---- */

/* What is named must be there, no link, and not hidden: the same verdict as that of read. */
static int check_path(struct search_call *x)
{
    char normal[PATH_LEN_MAX];
    if (x->path == NULL || x->path[0] == '\0' || strcmp(x->path, ".") == 0)
        return 0;
    if (files_resolve(x->ws, x->path, normal, &x->e) < 0 ||
        policy_check_read_path(x->ws, normal, &x->e) < 0)
        return -1;
    autofd int fd = path_open_beneath(x->ws->root_fd, normal, O_PATH, 0);
    return fd < 0 ? files_error(&x->e, -fd, normal, "search") : 0;
}

static void take_globs(struct search_call *x)
{
    size_t n = x->globs != NULL ? json_object_array_length(x->globs) : 0;
    x->glob_items = mem_zalloc(n + 1, sizeof(*x->glob_items));
    for (size_t i = 0; i < n; i++)
        x->glob_items[i] = json_str(json_object_array_get_idx(x->globs, i));
    x->q.globs = x->glob_items;
    x->q.n_globs = n;
}

static void take_request(struct request *rq)
{
    struct search_call *x = rq->state;
    bool has_limit = request_given(rq, "limit");
    x->q = (struct search_request){
        .pattern = x->pattern,
        .path = x->path,
        .literal = x->literal,
        .whole_words = x->whole_words,
        .multiline = x->multiline,
        .ignore_files = x->ignore_files,
        .binary = x->binary,
        .letter_case = (enum search_case)x->letter_case,
        .before = (unsigned)(request_given(rq, "before") ? x->before : x->context),
        .after = (unsigned)(request_given(rq, "after") ? x->after : x->context),
        .offset = x->offset,
        .limit = has_limit ? x->limit : SEARCH_PAGE_MAX,
        .max_bytes = has_limit ? 0 : DEFAULT_BYTES,
        .max_file_bytes = x->max_file_bytes,
    };
    take_globs(x);
    if (!request_given(rq, "timeout_ms"))
        x->timeout_ms = TIMEOUT_DEFAULT_MS;
}

static int search_admit(struct request *rq)
{
    struct search_call *x = rq->state;
    x->ws = registry_get(rq->server->registry, x->workspace_id, &x->e);
    if (x->ws == NULL || policy_check(x->ws, POLICY_READ, &x->e) < 0 || check_path(x) < 0)
        return -1;
    take_request(rq);
    x->q.quick =
        search_may_be_quick(&x->q) && map_get(&rq->server->slow_searches, x->ws->id) == NULL;
    return search_argv(&x->q, &x->argv, &x->e);
}

/* ---- the page ---- */

static void write_text(struct jsonw *w, const char *key, const char *bytes, size_t n)
{
    jsonw_key(w, key);
    jsonw_strn(w, bytes, n);
}

static void write_line(struct jsonw *w, const struct search_line *l)
{
    jsonw_object(w);
    if (l->number > 0)
        jsonw_kuint(w, "line", l->number);
    if (l->match)
        jsonw_kuint(w, "column", l->column);
    else
        jsonw_kbool(w, "context", true);
    if (l->hits > 1)
        jsonw_kuint(w, "hits", l->hits);
    write_text(w, "text", l->text, l->len);
    if (!utf8_valid(l->text, l->len))
        jsonw_kbool(w, "lossy", true);
    if (l->cut_front)
        jsonw_kbool(w, "cut_front", true);
    if (l->cut_back)
        jsonw_kbool(w, "cut_back", true);
    jsonw_object_end(w);
}

static void write_file(struct jsonw *w, const struct search_file *f)
{
    size_t n = strlen(f->path);
    jsonw_object(w);
    write_text(w, "path", f->path, n);
    if (!utf8_valid(f->path, n)) {
        jsonw_key(w, "path_base64");
        jsonw_base64(w, f->path, n);
    }
    jsonw_key(w, "lines");
    jsonw_array(w);
    for (size_t i = 0; i < f->n; i++)
        write_line(w, &f->lines[i]);
    jsonw_array_end(w);
    jsonw_object_end(w);
}

static void write_skipped(struct jsonw *w, const struct search_skipped *k)
{
    const struct {
        const char *name;
        uint64_t n;
    } rows[] = {{"binary", k->binary}, {"too_large", k->too_large}, {"ignored", k->ignored},
                {"hidden", k->hidden}, {"special", k->special},     {"unreadable", k->unreadable}};
    jsonw_key(w, "skipped");
    jsonw_object(w);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].n > 0)
            jsonw_kuint(w, rows[i].name, rows[i].n);
    }
    jsonw_object_end(w);
}

static void search_answer(struct request *rq)
{
    struct search_call *x = rq->state;
    const struct search_page *p = &x->page;
    struct jsonw *w = request_answer(rq);
    jsonw_key(w, "files");
    jsonw_array(w);
    for (size_t i = 0; i < p->n; i++) {
        /* The sandbox shows no such file; a second look costs nothing. */
        if (policy_check_read_path(x->ws, p->files[i].path, NULL) == 0)
            write_file(w, &p->files[i]);
    }
    jsonw_array_end(w);
    jsonw_kuint(w, "matches", p->matches);
    jsonw_kuint(w, "total", p->total);
    jsonw_kuint(w, "total_files", p->total_files);
    jsonw_kbool(w, "truncated", p->truncated);
    if (p->offset != 0)
        jsonw_kuint(w, "offset", p->offset);
    jsonw_kbool(w, "incomplete", p->incomplete);
    if (p->incomplete)
        jsonw_kstr(w, "incomplete_reason", p->reason);
    write_skipped(w, &p->skipped);
    if (p->truncated)
        jsonw_kuint(w, "next_offset", p->offset + p->matches);
}

static void finish_work(struct request *rq)
{
    struct search_call *x = rq->state;
    x->status = search_finish(x->search, x->exit_status, &x->page, &x->e);
    if (x->status < 0)
        return;
    search_answer(rq);
    request_render(rq);
}

static void finish_after(struct request *rq)
{
    struct search_call *x = rq->state;
    if (x->status < 0)
        request_fail(rq, &x->e);
    else
        request_finish(rq);
}

/* ---- ripgrep ---- */

static void ignore_done(void *user, const struct err *failure)
{
}

/* Ends it, or drops the record of one that has ended. */
static void end_process(struct request *rq)
{
    struct search_call *x = rq->state;
    if (x->process_id != NULL)
        runner_terminate(rq->server->runner, x->process_id, ignore_done, NULL);
}

static uint64_t try_ms(const struct request *rq)
{
    const struct search_call *x = rq->state;
    return uv_now(rq->server->loop) - x->began_ms;
}

static void end_if_not_quick(struct request *rq)
{
    struct search_call *x = rq->state;
    if (!x->q.quick || x->again || try_ms(rq) < QUICK_MS)
        return;
    x->again = true;
    end_process(rq);
}

static void search_start(struct request *rq);

/* The time of the quick try is part of the caller's. */
static void start_again(struct request *rq)
{
    struct search_call *x = rq->state;
    uint64_t used = try_ms(rq);
    search_free(steal(x->search));
    strv_fini(&x->argv);
    free(steal(x->process_id));
    x->cursors[0] = x->cursors[1] = 0;
    x->stopping = x->again = x->q.quick = false;
    x->timeout_ms = x->timeout_ms > used ? x->timeout_ms - used : 1;
    if (search_argv(&x->q, &x->argv, &x->e) < 0)
        request_fail(rq, &x->e);
    else
        search_start(rq);
}

/* How the next search of this workspace begins. */
static void remember_pace(struct request *rq)
{
    struct search_call *x = rq->state;
    bool slow = x->again || (!x->q.quick && try_ms(rq) > QUICK_MS);
    if (slow)
        map_set(&rq->server->slow_searches, x->ws->id, rq->server);
    else
        map_remove(&rq->server->slow_searches, x->ws->id);
}

#define NO_MEMORY(limit)                                                                           \
    "ripgrep needed more memory than " limit ", as for a very long line; use a smaller "           \
    "max_file_bytes, or a narrower path or glob"

/* By SIGABRT ends who is given no more memory. */
static const char *no_memory_text(const struct search_call *x)
{
    uint64_t own = x->ws->limits.data;
    return own != 0 && own < SEARCH_DATA_MAX ? NO_MEMORY("limits.data of the workspace allows")
                                             : NO_MEMORY("SEARCH_DATA_MAX (512 MiB)");
}

/* The end of a wrapper is not ripgrep's. */
static int exit_status_of(struct search_call *x, const struct run_status *s)
{
    if (s->termination == RUN_END_EXITED)
        return s->exit_code;
    if (s->termination == RUN_END_TIMEOUT)
        search_stopped(x->search, "the search was ended by its time limit (timeout_ms); use a "
                                  "narrower path or glob, or allow more");
    if (s->termination == RUN_END_SIGNALED && s->signal == SIGABRT)
        search_stopped(x->search, no_memory_text(x));
    if (s->termination == RUN_END_WRAPPER_FAILED || s->termination == RUN_END_LOST)
        err_set(&x->e, ERR_PROCESS_SPAWN_FAILED, "the sandbox of the search failed: %.400s",
                s->reason);
    return -1;
}

static void read_more(struct request *rq, bool errors);

static void stop_if_full(struct request *rq)
{
    struct search_call *x = rq->state;
    if (x->stopping || !search_is_full(x->search))
        return;
    x->stopping = true;
    x->again = x->q.quick; /* it may be full of what is dropped */
    search_stopped(x->search, "more was found than SEARCH_HELD_MAX (32 MiB) holds; use a narrower "
                              "pattern, path or glob");
    end_process(rq);
}

static void ended(struct request *rq, const struct run_status *s)
{
    struct search_call *x = rq->state;
    x->exit_status = exit_status_of(x, s);
    remember_pace(rq);
    end_process(rq);
    if (x->e.code == ERR_NONE && x->q.quick && s->termination != RUN_END_TIMEOUT &&
        (x->again || search_again(x->search, x->exit_status)))
        start_again(rq);
    else if (x->e.code != ERR_NONE)
        request_fail(rq, &x->e);
    else
        request_pool(rq, ANSWER_BYTES, finish_work, finish_after);
}

/* Told to end, it had ended already; so that was to drop its record, and nothing more of it can be
 * read. What it had found is thrown away, or was too much anyway. */
static bool is_dropped(const struct search_call *x, const struct err *failure)
{
    return failure != NULL && failure->code == ERR_PROCESS_NOT_FOUND && (x->again || x->stopping);
}

static void dropped(struct request *rq)
{
    struct search_call *x = rq->state;
    x->exit_status = -1;
    remember_pace(rq);
    if (x->again)
        start_again(rq);
    else
        request_pool(rq, ANSWER_BYTES, finish_work, finish_after);
}

static int feed(struct search_call *x, const struct run_page *page, bool errors)
{
    if (page->lost && !errors)
        search_lost(x->search);
    x->cursors[errors] = page->cursor;
    if (errors)
        search_feed_errors(x->search, page->bytes, page->len);
    else
        return search_feed_output(x->search, page->bytes, page->len, &x->e);
    return 0;
}

/* Standard output and error in turn, until both are read to the end. */
static void on_page(struct request *rq, const struct run_page *page, const struct err *failure,
                    bool errors)
{
    struct search_call *x = rq->state;
    x->ticket = 0;
    if (is_dropped(x, failure)) {
        dropped(rq);
        return;
    }
    if (failure != NULL || feed(x, page, errors) < 0) {
        struct err e = failure != NULL ? *failure : x->e;
        end_process(rq);
        request_fail(rq, &e);
        return;
    }
    stop_if_full(rq);
    end_if_not_quick(rq);
    uint64_t total = page->status.output_total;
    if (page->status.state == RUN_EXITED && x->cursors[0] >= total && x->cursors[1] >= total)
        ended(rq, &page->status);
    else
        read_more(rq, !errors);
}

static void on_output(void *user, const struct run_page *page, const struct err *failure)
{
    on_page(user, page, failure, false);
}

static void on_errors(void *user, const struct run_page *page, const struct err *failure)
{
    on_page(user, page, failure, true);
}

static void read_more(struct request *rq, bool errors)
{
    struct search_call *x = rq->state;
    const struct run_read read = {
        .process_id = x->process_id,
        .cursor = x->cursors[errors],
        .stream = errors ? RUN_STDERR : RUN_STDOUT,
        .max_bytes = RUN_PAGE_MAX,
        .wait_ms = errors ? 0 : READ_WAIT_MS,
    };
    run_ticket ticket = runner_read(rq->server->runner, &read, errors ? on_errors : on_output, rq);
    if (ticket != 0)
        x->ticket = ticket;
}

static bool is_missing(const struct err *failure)
{
    return failure->code == ERR_PROCESS_SPAWN_FAILED && failure->sys == ENOENT;
}

static void on_started(void *user, const char *process_id, const struct err *failure)
{
    struct request *rq = user;
    struct search_call *x = rq->state;
    x->ticket = 0;
    if (failure == NULL) {
        x->process_id = mem_strdup(process_id);
        read_more(rq, false);
        return;
    }
    if (!is_missing(failure)) {
        request_fail(rq, failure);
        return;
    }
    err_set(&x->e, ERR_PROCESS_SPAWN_FAILED,
            "search needs ripgrep, and no \"rg\" is on the PATH inside the sandbox of workspace "
            "\"%s\"; an operator installs it (apt-get install ripgrep), or adds its directory to "
            "the workspace's mounts and PATH. find and read work without it",
            x->ws->id);
    request_fail(rq, &x->e);
}

/* Only inside the sandbox. */
static int check_sandbox(struct request *rq, const struct workspace *searcher)
{
    struct search_call *x = rq->state;
    const struct facts *f = &rq->server->facts;
    if (facts_mode(f, searcher) == FACTS_SANDBOXED)
        return 0;
    return err_set(&x->e, ERR_SANDBOX_UNAVAILABLE,
                   "search runs ripgrep inside the workspace's sandbox only, and %s%s%s; find and "
                   "read work without it. To repair it: %s",
                   probe_cause_what(f->probe.cause), f->probe.detail[0] ? ": " : "",
                   f->probe.detail, probe_cause_remedy(f->probe.cause));
}

static void search_start(struct request *rq)
{
    struct search_call *x = rq->state;
    const struct workspace *searcher = server_searcher(rq->server, x->ws);
    if (check_sandbox(rq, searcher) < 0) {
        request_fail(rq, &x->e);
        return;
    }
    autofree char *id = str_new_id(RUN_OWN_PREFIX);
    const struct run_exec exec = {
        .ws = searcher,
        .argv = strv_array(&x->argv),
        .timeout_ms = x->timeout_ms,
        .stdin_data = "",
        .process_id = id,
    };
    x->search = search_new(&x->q);
    x->began_ms = uv_now(rq->server->loop);
    run_ticket ticket = runner_exec(rq->server->runner, &exec, on_started, rq);
    if (ticket != 0)
        x->ticket = ticket;
}

static void search_run(struct request *rq)
{
    struct search_call *x = rq->state;
    if (search_admit(rq) < 0)
        request_fail(rq, &x->e);
    else
        request_when_probed(rq, search_start);
}

static void search_cancel(struct request *rq)
{
    struct search_call *x = rq->state;
    if (rq->in_pool) /* it has ended */
        return;
    runner_cancel(rq->server->runner, x->ticket);
    end_process(rq);
}

#define AT(member) offsetof(struct search_call, member)
static const struct json_field in[] = {
    {"workspace_id", JSON_STR, JSON_REQUIRED, AT(workspace_id), 0, 0, NULL,
     "The workspace, as workspace_info lists it.", NULL},
    {"pattern", JSON_STR, JSON_REQUIRED, AT(pattern), 1, 0, NULL,
     "Regular expression, in ripgrep's language.", NULL},
    {"path", JSON_STR, 0, AT(path), 0, 0, NULL,
     "Directory or file to search in, relative to the workspace; without it all.", NULL},
    {"globs", JSON_STRV, 0, AT(globs), 0, SEARCH_GLOBS_MAX, NULL,
     "Which files, e.g. \"*.c\"; with a ! before it: not these.", NULL},
    {"literal", JSON_BOOL, 0, AT(literal), 0, 0, NULL, "pattern is plain text.", "false"},
    {"case", JSON_ENUM, 0, AT(letter_case), 0, 0, cases,
     "smart: letters match in either case unless pattern has a capital.", "\"sensitive\""},
    {"whole_words", JSON_BOOL, 0, AT(whole_words), 0, 0, NULL, "Not within a longer word.",
     "false"},
    {"multiline", JSON_BOOL, 0, AT(multiline), 0, 0, NULL, "A match may span lines.", "false"},
    {"context", JSON_U64, 0, AT(context), 0, SEARCH_CONTEXT_MAX, NULL,
     "Lines to show around each match.", "0"},
    {"before", JSON_U64, 0, AT(before), 0, SEARCH_CONTEXT_MAX, NULL, "Only before it.", NULL},
    {"after", JSON_U64, 0, AT(after), 0, SEARCH_CONTEXT_MAX, NULL, "Only behind it.", NULL},
    {"ignore_files", JSON_BOOL, 0, AT(ignore_files), 0, 0, NULL,
     "Leave out hidden files and what .gitignore and .ignore files say.", "false"},
    {"binary", JSON_BOOL, 0, AT(binary), 0, 0, NULL, "Show matches in binary files, too.", "false"},
    {"max_file_bytes", JSON_U64, 0, AT(max_file_bytes), 1, 0, NULL,
     "Larger files are not searched.", "67108864"},
    {"offset", JSON_U64, 0, AT(offset), 0, 0, NULL, "How many matches to skip.", "0"},
    {"limit", JSON_U64, 0, AT(limit), 0, 0, NULL,
     "Most matches to return, 1 to 2000; without it as many as make an answer of ordinary size.",
     NULL},
    {"timeout_ms", JSON_U64, 0, AT(timeout_ms), 1, RUN_WAIT_MAX_MS, NULL,
     "After this time the answer is what was found, marked incomplete.", "60000"},
    TOOL_IGNORED_FIELDS,
};
#undef AT

static const struct output_field out[] = {
    {"files", OUTPUT_OBJS, true,
     "Sorted by path; each with path and lines: line, column, text, hits, context, cut_front, "
     "cut_back, lossy (not UTF-8; bytes were replaced)."},
    {"matches", OUTPUT_INT, true, "Matching lines in this page."},
    {"total", OUTPUT_INT, true, "Matching lines in all."},
    {"total_files", OUTPUT_INT, true, "Files with matches in all."},
    {"truncated", OUTPUT_BOOL, true, "More matches follow; go on at next_offset."},
    {"offset", OUTPUT_INT, false, "Where the page starts; absent for 0."},
    {"incomplete", OUTPUT_BOOL, true, "Not everything was searched; there may be more."},
    {"incomplete_reason", OUTPUT_STR, false, "Why."},
    {"skipped", OUTPUT_OBJ, true,
     "How many files and directories were passed over, by reason: binary (with matches), "
     "too_large, ignored, hidden, special, unreadable."},
    {"next_offset", OUTPUT_INT, false, "Where to go on when truncated."},
};

const struct tool tool_search = {
    .name = "search",
    .title = "Search in files",
    .description =
        "Searches the contents of a workspace's files by regular expression, with line numbers and "
        "context, sorted by path and in pages. Hidden files are searched, too; nothing is left out "
        "silently: `skipped` counts what was, by reason. It runs ripgrep inside the sandbox.",
    .hints = TOOL_READS | TOOL_IDEMPOTENT | TOOL_WAITS,
    .in = in,
    .n_in = ARRAY_LEN(in),
    .out = out,
    .n_out = ARRAY_LEN(out),
    .state_size = sizeof(struct search_call),
    .run = search_run,
    .cancel = search_cancel,
    .fini = search_fini,
};
