/* mcp/tool_files: read and find.
 *
 * A small file is read on the loop's thread: a hop to the pool and back costs more than the work
 * (some microseconds), and reads are what agents do most. Everything else that touches the disk
 * goes to the pool, so a slow walk or a large file holds nobody up.
 */
#include "core/files.h"
#include "mcp/tool.h"
#include "sys/path.h"

/* Reading and hashing so much takes about as long as the hop. */
#define READ_INLINE_MAX 65536
/* About the size of an ordinary page of paths. Not of the largest: slow walks must not keep other
 * calls from being read. */
#define FIND_ANSWER_BYTES 16384u

/* ---- read ---- */

struct read_call {
    const char *workspace_id;
    const char *path;
    uint64_t offset;
    uint64_t limit;
    const struct workspace *ws;
    struct file_page page;
    int status;
    struct err e;
};

static void read_fini(struct request *rq)
{
    struct read_call *x = rq->state;
    file_page_fini(&x->page);
}

static void read_answer(struct request *rq)
{
    struct read_call *x = rq->state;
    const struct file_page *p = &x->page;
    /* For the structure and the text, so that a large file's buffer does not grow by copies. */
    buf_reserve(&rq->out, 3 * p->content.len + 1024);
    struct jsonw *w = request_answer(rq);
    jsonw_kstr(w, "path", p->path);
    jsonw_kstr(w, "version", p->version);
    jsonw_kuint(w, "size", p->size);
    jsonw_kbool(w, "truncated", p->truncated);
    if (x->offset != 0)
        jsonw_kuint(w, "offset", x->offset);
    jsonw_kuint(w, "byte_count", p->content.len);
    jsonw_kbool(w, "content_lossy", p->lossy);
    if (p->truncated)
        jsonw_kuint(w, "next_offset", p->offset + p->content.len);
    jsonw_key(w, "content");
    jsonw_strn(w, buf_bytes(&p->content), p->content.len);
}

static void render_if_read(struct request *rq)
{
    struct read_call *x = rq->state;
    if (x->status != 0)
        return;
    read_answer(rq);
    request_render(rq);
}

static int read_file(struct request *rq, uint64_t quick_max)
{
    struct read_call *x = rq->state;
    const struct read_request q = {.path = x->path,
                                   .offset = x->offset,
                                   .limit = x->limit,
                                   .quick_max = quick_max,
                                   .cache = rq->server->versions,
                                   .cancel = &rq->stop};
    return files_read_request(x->ws, &q, &x->page, &x->e);
}

static void read_work(struct request *rq)
{
    struct read_call *x = rq->state;
    x->status = read_file(rq, 0);
    render_if_read(rq);
}

static void read_after(struct request *rq)
{
    struct read_call *x = rq->state;
    if (x->status < 0)
        request_fail(rq, &x->e);
    else
        request_finish(rq);
}

static void read_run(struct request *rq)
{
    struct read_call *x = rq->state;
    x->ws = registry_get(rq->server->registry, x->workspace_id, &x->e);
    if (x->ws == NULL) {
        request_fail(rq, &x->e);
        return;
    }
    if (!request_given(rq, "limit"))
        x->limit = FILES_READ_MAX;
    x->status = read_file(rq, READ_INLINE_MAX);
    if (x->status <= 0) {
        render_if_read(rq);
        read_after(rq);
        return;
    }
    uint64_t window = x->page.size < FILES_READ_MAX ? x->page.size : FILES_READ_MAX;
    if (window > x->limit)
        window = x->limit;
    request_pool(rq, 2 * window, read_work, read_after); /* structure and text */
}

static const struct json_field read_in[] = {
    {"workspace_id", JSON_STR, JSON_REQUIRED, offsetof(struct read_call, workspace_id), 0, 0, NULL,
     "The workspace, as workspace_info lists it.", NULL},
    {"path", JSON_STR, JSON_REQUIRED, offsetof(struct read_call, path), 0, 0, NULL,
     "The file, relative to the root of the workspace.", NULL},
    {"offset", JSON_U64, 0, offsetof(struct read_call, offset), 0, 0, NULL, "Byte to start at.",
     "0"},
    {"limit", JSON_U64, 0, offsetof(struct read_call, limit), 0, 0, NULL,
     "Most bytes to return, 1 to 1048576.", "1048576"},
    TOOL_IGNORED_FIELDS,
};

static const struct output_field read_out[] = {
    {"path", OUTPUT_STR, true, NULL},
    {"content", OUTPUT_STR, true, "The bytes of the window as text."},
    {"version", OUTPUT_STR, true,
     "sha256 of the whole file; expected_versions of apply_patch takes it."},
    {"size", OUTPUT_INT, true, "Bytes of the whole file."},
    {"truncated", OUTPUT_BOOL, true, "More bytes follow; go on at next_offset."},
    {"offset", OUTPUT_INT, false, "Where the window starts; absent for 0."},
    {"byte_count", OUTPUT_INT, true, "Bytes of the file in this window."},
    {"content_lossy", OUTPUT_BOOL, true, "The window is not UTF-8; bytes were replaced."},
    {"next_offset", OUTPUT_INT, false, "Where to go on when truncated."},
};

const struct tool tool_read = {
    .name = "read",
    .title = "Read a file",
    .description =
        "Reads a file of a workspace, or a window of it by byte offset and limit. The answer "
        "carries the version (a hash of the whole file) and next_offset when more follows. Paths "
        "are relative; symbolic links and special files are refused.",
    .hints = TOOL_READS | TOOL_IDEMPOTENT,
    .in = read_in,
    .n_in = ARRAY_LEN(read_in),
    .out = read_out,
    .n_out = ARRAY_LEN(read_out),
    .state_size = sizeof(struct read_call),
    .run = read_run,
    .fini = read_fini,
};

/* ---- find ---- */

struct find_call {
    const char *workspace_id;
    const char *glob;
    uint64_t offset;
    uint64_t limit;
    const struct workspace *ws;
    struct find_page page;
    int status;
    struct err e;
};

static void find_fini(struct request *rq)
{
    struct find_call *x = rq->state;
    find_page_fini(&x->page);
}

static void find_answer(struct request *rq)
{
    struct find_call *x = rq->state;
    const struct find_page *p = &x->page;
    struct jsonw *w = request_answer(rq);
    jsonw_key(w, "paths");
    jsonw_array(w);
    for (size_t i = 0; i < p->paths.len; i++)
        jsonw_str(w, p->paths.items[i]);
    jsonw_array_end(w);
    jsonw_kuint(w, "total", p->total);
    jsonw_kbool(w, "truncated", p->truncated);
    if (p->offset != 0)
        jsonw_kuint(w, "offset", p->offset);
    jsonw_kbool(w, "incomplete", p->incomplete);
    if (p->incomplete)
        jsonw_kstr(w, "incomplete_reason", p->reason);
    if (p->vcs_skipped > 0)
        jsonw_kuint(w, "vcs_skipped", p->vcs_skipped);
    jsonw_kstr(w, "listing_version", p->listing_version);
    if (p->truncated)
        jsonw_kuint(w, "next_offset", p->offset + p->paths.len);
}

static void find_work(struct request *rq)
{
    struct find_call *x = rq->state;
    x->status = files_find(x->ws, x->glob, x->offset, x->limit, &rq->stop, &x->page, &x->e);
    if (x->status < 0)
        return;
    find_answer(rq);
    request_render(rq);
}

static void find_after(struct request *rq)
{
    struct find_call *x = rq->state;
    if (x->status < 0)
        request_fail(rq, &x->e);
    else
        request_finish(rq);
}

static void find_run(struct request *rq)
{
    struct find_call *x = rq->state;
    x->ws = registry_get(rq->server->registry, x->workspace_id, &x->e);
    if (x->ws == NULL) {
        request_fail(rq, &x->e);
        return;
    }
    if (!request_given(rq, "limit"))
        x->limit = FILES_FIND_MAX;
    request_pool(rq, FIND_ANSWER_BYTES, find_work, find_after);
}

static const struct json_field find_in[] = {
    {"workspace_id", JSON_STR, JSON_REQUIRED, offsetof(struct find_call, workspace_id), 0, 0, NULL,
     "The workspace, as workspace_info lists it.", NULL},
    {"glob", JSON_STR, 0, offsetof(struct find_call, glob), 0, PATH_LEN_MAX, NULL,
     "Which paths, e.g. \"*.c\" or \"src/**/test_*.py\"; without it all.", NULL},
    {"offset", JSON_U64, 0, offsetof(struct find_call, offset), 0, 0, NULL,
     "How many matching paths to skip.", "0"},
    {"limit", JSON_U64, 0, offsetof(struct find_call, limit), 0, 0, NULL,
     "Most paths to return, 1 to 10000.", "10000"},
    TOOL_IGNORED_FIELDS,
};

static const struct output_field find_out[] = {
    {"paths", OUTPUT_STRS, true, "Matching regular files, sorted, relative to the root."},
    {"total", OUTPUT_INT, true, "Matching paths in all."},
    {"truncated", OUTPUT_BOOL, true, "More matching paths follow; go on at next_offset."},
    {"offset", OUTPUT_INT, false, "Where the page starts; absent for 0."},
    {"incomplete", OUTPUT_BOOL, true, "The walk met a limit; there may be more files."},
    {"incomplete_reason", OUTPUT_STR, false, "Which limit."},
    {"vcs_skipped", OUTPUT_INT, false, "Directories such as .git that were not entered."},
    {"listing_version", OUTPUT_STR, true, "Hash of the whole listing, the same for every page."},
    {"next_offset", OUTPUT_INT, false, "Where to go on when truncated."},
};

const struct tool tool_find = {
    .name = "find",
    .title = "Find files",
    .description =
        "Lists the files of a workspace whose path matches a glob, sorted and in pages. It looks "
        "at names, not at content. Hidden directories are included, .git and its like only when "
        "the glob names them; symbolic links are neither followed nor listed.",
    .hints = TOOL_READS | TOOL_IDEMPOTENT,
    .in = find_in,
    .n_in = ARRAY_LEN(find_in),
    .out = find_out,
    .n_out = ARRAY_LEN(find_out),
    .state_size = sizeof(struct find_call),
    .run = find_run,
    .fini = find_fini,
};
