/* mcp/tool_files: read and find.
 *
 * A small file is read on the loop's thread: a hop to the pool and back costs more than the work
 * (some microseconds), and reads are what agents do most. Everything else that touches the disk
 * goes to the pool, so a slow walk or a large file holds nobody up.
 */
#include "base/utf8.h"
#include "core/files.h"
#include "mcp/session.h"
#include "mcp/tool.h"
#include "sys/path.h"

#include <json-c/json_object.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Reading and hashing so much takes about as long as the hop. */
#define READ_INLINE_MAX 65536
/* About the size of an ordinary page of paths. Not of the largest: slow walks must not keep other
 * calls from being read. */
#define FIND_ANSWER_BYTES 16384u
/* A walk gives its thread back after so long and queues again, so that many slow walks do not keep
 * a patch or a large read from the pool. */
#define FIND_TURN_MS 20u

/* ---- read ---- */

enum encoding { ENCODING_UTF8, ENCODING_BASE64 };

static const char *const encodings[] = {
    [ENCODING_UTF8] = "utf-8", [ENCODING_BASE64] = "base64", NULL};

struct read_call {
    const char *workspace_id;
    const char *path;
    uint64_t offset;
    uint64_t limit;
    uint64_t start_line, max_lines, tail_lines;
    int encoding;
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

/* Where the window is and how to go on. */
static void write_place(struct jsonw *w, const struct file_page *p)
{
    if (p->offset != 0)
        jsonw_kuint(w, "offset", p->offset);
    if (p->first_line != 0)
        jsonw_kuint(w, "start_line", p->first_line);
    if (p->n_lines != 0)
        jsonw_kuint(w, "line_count", p->n_lines);
    if (!p->truncated)
        return;
    jsonw_kuint(w, "next_offset", p->offset + p->content.len);
    const char *bytes = buf_bytes(&p->content);
    if (p->first_line != 0 && p->content.len > 0 && bytes[p->content.len - 1] == '\n')
        jsonw_kuint(w, "next_line", p->first_line + p->n_lines);
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
    jsonw_kuint(w, "byte_count", p->content.len);
    write_place(w, p);
    jsonw_kbool(w, "binary", p->binary);
    jsonw_kstr(w, "charset", p->encoding);
    jsonw_kstr(w, "encoding", encodings[x->encoding]);
    jsonw_kbool(w, "content_lossy", p->lossy && x->encoding == ENCODING_UTF8);
    jsonw_key(w, "content");
    if (x->encoding == ENCODING_BASE64)
        jsonw_base64(w, buf_bytes(&p->content), p->content.len);
    else
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
                                   .first_line = x->start_line,
                                   .n_lines = x->max_lines,
                                   .tail_lines = x->tail_lines,
                                   .exact = x->encoding == ENCODING_BASE64,
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
        x->limit = FILES_READ_DEFAULT;
    if (x->max_lines > 0 && x->start_line == 0)
        x->start_line = 1;
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

#define AT(member) offsetof(struct read_call, member)
static const struct json_field read_in[] = {
    {"workspace_id", JSON_STR, JSON_REQUIRED, AT(workspace_id), 0, 0, NULL,
     "The workspace, as workspace_info lists it.", NULL},
    {"path", JSON_STR, JSON_REQUIRED, AT(path), 0, 0, NULL,
     "The file, relative to the root of the workspace.", NULL},
    {"offset", JSON_U64, 0, AT(offset), 0, 0, NULL, "Byte to start at.", "0"},
    {"limit", JSON_U64, 0, AT(limit), 0, 0, NULL, "Most bytes to return, 1 to 1048576.", "65536"},
    {"start_line", JSON_U64, 0, AT(start_line), 1, 0, NULL,
     "Line to start at, from 1, instead of offset. The answer ends behind a whole line.", NULL},
    {"max_lines", JSON_U64, 0, AT(max_lines), 1, 0, NULL,
     "Most lines to return; limit still holds.", NULL},
    {"tail_lines", JSON_U64, 0, AT(tail_lines), 1, 0, NULL,
     "The last so many lines, instead of offset or start_line.", NULL},
    {"encoding", JSON_ENUM, 0, AT(encoding), 0, 0, encodings,
     "How content is written; base64 loses no byte.", "\"utf-8\""},
    TOOL_IGNORED_FIELDS,
};
#undef AT

static const struct output_field read_out[] = {
    {"path", OUTPUT_STR, true, NULL},
    {"content", OUTPUT_STR, true, "The bytes of the window, as text or base64."},
    {"version", OUTPUT_STR, true,
     "sha256 of the whole file; expected_versions of apply_patch takes it."},
    {"size", OUTPUT_INT, true, "Bytes of the whole file."},
    {"truncated", OUTPUT_BOOL, true, "More bytes follow; go on at next_offset or next_line."},
    {"offset", OUTPUT_INT, false, "Where the window starts; absent for 0."},
    {"byte_count", OUTPUT_INT, true, "Bytes of the file in this window."},
    {"start_line", OUTPUT_INT, false, "First line of the window, when lines were asked for."},
    {"line_count", OUTPUT_INT, false, "Lines in it, the last one whole or not."},
    {"content_lossy", OUTPUT_BOOL, true, "The window is not UTF-8; bytes were replaced."},
    {"binary", OUTPUT_BOOL, true, "It looks like no text; encoding: base64 gives every byte."},
    {"charset", OUTPUT_STR, true, "A guess: utf-8, utf-16le, utf-16be, binary or unknown."},
    {"encoding", OUTPUT_STR, true, "utf-8 or base64: how content is written."},
    {"next_offset", OUTPUT_INT, false, "Where to go on when truncated."},
    {"next_line", OUTPUT_INT, false, "The same as a line, when lines were asked for."},
};

const struct tool tool_read = {
    .name = "read",
    .title = "Read a file",
    .description =
        "Reads a file of a workspace: from the start, a window by byte offset and limit, lines "
        "from start_line on, or the last tail_lines. The answer carries the version (a hash of the "
        "whole file), and next_offset or next_line when more follows. Bytes that are no text come "
        "unchanged with encoding base64. Paths are relative; symbolic links and special files are "
        "refused.",
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
    uint64_t depth;
    struct json_object *kinds;
    bool details, ignore_files, ignore_case;
    const char *listing_version;
    struct find_walk *walk;
    struct find_page page;
    int status;
    struct err e;
};

static const char *const kind_names[] = {[FIND_FILE] = "file",
                                         [FIND_DIRECTORY] = "directory",
                                         [FIND_LINK] = "link",
                                         [FIND_OTHER] = "other"};

static void find_fini(struct request *rq)
{
    struct find_call *x = rq->state;
    files_find_free(x->walk);
    find_page_fini(&x->page);
}

static int take_kinds(struct find_call *x, unsigned *ret)
{
    size_t n = x->kinds != NULL ? json_object_array_length(x->kinds) : 0;
    for (size_t i = 0; i < n; i++) {
        const char *name = json_str(json_object_array_get_idx(x->kinds, i));
        size_t k = 0;
        while (k < ARRAY_LEN(kind_names) && strcmp(kind_names[k], name) != 0)
            k++;
        if (k == ARRAY_LEN(kind_names))
            return err_set(&x->e, ERR_INVALID_ARGUMENT,
                           "kinds[%zu]: \"%.40s\" is none; file, directory, link and other are", i,
                           name);
        *ret |= FIND_KIND(k);
    }
    return 0;
}

/* RFC 3339, in UTC. */
static void write_time(struct jsonw *w, const char *key, int64_t ns)
{
    char text[40];
    struct tm tm;
    time_t at = (time_t)(ns / 1000000000 - (ns % 1000000000 < 0));
    if (gmtime_r(&at, &tm) != NULL && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
        jsonw_kstr(w, key, text);
}

static void write_entry(struct jsonw *w, const char *path, const struct find_entry *f)
{
    char mode[8];
    size_t n = strlen(path);
    jsonw_object(w);
    jsonw_kstr(w, "path", path);
    if (!utf8_valid(path, n)) {
        jsonw_key(w, "path_base64");
        jsonw_base64(w, path, n);
    }
    if (f->known) {
        jsonw_kstr(w, "kind", kind_names[f->kind]);
        jsonw_kuint(w, "size", f->size);
        snprintf(mode, sizeof(mode), "%04o", f->mode & 07777);
        jsonw_kstr(w, "mode", mode);
        write_time(w, "modified", f->modified_ns);
    }
    jsonw_object_end(w);
}

static uint64_t count_lossy(const struct strv *paths)
{
    uint64_t n = 0;
    for (size_t i = 0; i < paths->len; i++)
        n += !utf8_valid(paths->items[i], strlen(paths->items[i]));
    return n;
}

static void write_paths(struct jsonw *w, const struct find_page *p, bool details)
{
    jsonw_key(w, "paths");
    jsonw_array(w);
    for (size_t i = 0; i < p->paths.len && !details; i++)
        jsonw_str(w, p->paths.items[i]);
    jsonw_array_end(w);
    if (!details)
        return;
    jsonw_key(w, "entries");
    jsonw_array(w);
    for (size_t i = 0; i < p->paths.len; i++)
        write_entry(w, p->paths.items[i], &p->entries[i]);
    jsonw_array_end(w);
}

static void find_answer(struct request *rq)
{
    struct find_call *x = rq->state;
    const struct find_page *p = &x->page;
    struct jsonw *w = request_answer(rq);
    write_paths(w, p, x->details);
    jsonw_kuint(w, "total", p->total);
    jsonw_kbool(w, "truncated", p->truncated);
    if (p->offset != 0)
        jsonw_kuint(w, "offset", p->offset);
    jsonw_kbool(w, "incomplete", p->incomplete);
    if (p->incomplete)
        jsonw_kstr(w, "incomplete_reason", p->reason);
    if (p->vcs_skipped > 0)
        jsonw_kuint(w, "vcs_skipped", p->vcs_skipped);
    if (p->ignored > 0)
        jsonw_kuint(w, "ignored", p->ignored);
    uint64_t lossy = count_lossy(&p->paths);
    if (lossy > 0)
        jsonw_kuint(w, "lossy_paths", lossy);
    jsonw_kstr(w, "listing_version", p->listing_version);
    if (p->truncated)
        jsonw_kuint(w, "next_offset", p->offset + p->paths.len);
}

static void find_work(struct request *rq)
{
    struct find_call *x = rq->state;
    x->status = files_find_step(x->walk, FIND_TURN_MS, &x->page, &x->e);
    if (x->status != 0)
        return;
    find_answer(rq);
    request_render(rq);
}

static void find_after(struct request *rq);

/* Also for another turn, whose answer is announced only once. */
static void queue_walk(struct request *rq)
{
    if (rq->session != NULL)
        rq->session->coming -= rq->coming;
    rq->coming = 0;
    request_pool(rq, FIND_ANSWER_BYTES, find_work, find_after);
}

static void find_after(struct request *rq)
{
    struct find_call *x = rq->state;
    if (x->status < 0)
        request_fail(rq, &x->e);
    else if (x->status > 0)
        queue_walk(rq);
    else
        request_finish(rq);
}

static int find_admit(struct request *rq)
{
    struct find_call *x = rq->state;
    const struct workspace *ws = registry_get(rq->server->registry, x->workspace_id, &x->e);
    struct find_request q = {.glob = x->glob,
                             .offset = x->offset,
                             .limit = x->limit,
                             .cancel = &rq->stop,
                             .max_depth = (unsigned)x->depth,
                             .fold_case = x->ignore_case,
                             .ignore_files = x->ignore_files,
                             .details = x->details,
                             .listing_version = x->listing_version};
    if (ws == NULL || take_kinds(x, &q.kinds) < 0)
        return -1;
    if (!request_given(rq, "limit")) {
        q.limit = FILES_FIND_MAX;
        q.max_bytes = FILES_FIND_DEFAULT_BYTES;
    }
    x->walk = files_find_begin(ws, &q, &x->e);
    return x->walk != NULL ? 0 : -1;
}

static void find_run(struct request *rq)
{
    struct find_call *x = rq->state;
    if (find_admit(rq) < 0)
        request_fail(rq, &x->e);
    else
        queue_walk(rq);
}

#define AT(member) offsetof(struct find_call, member)
static const struct json_field find_in[] = {
    {"workspace_id", JSON_STR, JSON_REQUIRED, AT(workspace_id), 0, 0, NULL,
     "The workspace, as workspace_info lists it.", NULL},
    {"glob", JSON_STR, 0, AT(glob), 0, PATH_LEN_MAX, NULL,
     "Which paths, e.g. \"*.c\" or \"src/**/test_*.py\"; without it all.", NULL},
    {"offset", JSON_U64, 0, AT(offset), 0, 0, NULL, "How many matching paths to skip.", "0"},
    {"limit", JSON_U64, 0, AT(limit), 0, 0, NULL,
     "Most paths to return, 1 to 10000; without it as many as make an answer of ordinary size.",
     NULL},
    {"depth", JSON_U64, 0, AT(depth), 1, FILES_WALK_DEPTH_MAX, NULL,
     "Most components of a path; 1 lists the root only.", NULL},
    {"kinds", JSON_STRV, 0, AT(kinds), 0, ARRAY_LEN(kind_names), NULL,
     "What to list: file, directory (with a / at the end), link, other.", "[\"file\"]"},
    {"details", JSON_BOOL, 0, AT(details), 0, 0, NULL,
     "Answer entries with kind, size, mode and time instead of paths.", "false"},
    {"ignore_files", JSON_BOOL, 0, AT(ignore_files), 0, 0, NULL,
     "Leave out what .gitignore and .ignore files say.", "false"},
    {"ignore_case", JSON_BOOL, 0, AT(ignore_case), 0, 0, NULL,
     "Letters of the glob match in either case (ASCII).", "false"},
    {"listing_version", JSON_STR, 0, AT(listing_version), 0, FILES_VERSION_LEN, NULL,
     "Of the page before: VERSION_CONFLICT if the listing is another one by now.", NULL},
    TOOL_IGNORED_FIELDS,
};
#undef AT

static const struct output_field find_out[] = {
    {"paths", OUTPUT_STRS, true, "Matching paths, sorted, relative to the root; not with details."},
    {"entries", OUTPUT_OBJS, false, "With details: path, kind, size, mode, modified."},
    {"total", OUTPUT_INT, true, "Matching paths in all."},
    {"truncated", OUTPUT_BOOL, true, "More matching paths follow; go on at next_offset."},
    {"offset", OUTPUT_INT, false, "Where the page starts; absent for 0."},
    {"incomplete", OUTPUT_BOOL, true, "The walk met a limit; there may be more files."},
    {"incomplete_reason", OUTPUT_STR, false, "Which limit."},
    {"vcs_skipped", OUTPUT_INT, false, "Directories such as .git that were not entered."},
    {"ignored", OUTPUT_INT, false, "Files and directories that ignore files left out."},
    {"lossy_paths", OUTPUT_INT, false,
     "Paths of this page that are not UTF-8; bytes were replaced."},
    {"listing_version", OUTPUT_STR, true, "Hash of the whole listing, the same for every page."},
    {"next_offset", OUTPUT_INT, false, "Where to go on when truncated."},
};

const struct tool tool_find = {
    .name = "find",
    .title = "Find files",
    .description =
        "Lists the files of a workspace whose path matches a glob (*, **, ?, [a-z], {a,b}), sorted "
        "and in pages. It looks at names; search looks at content. Hidden directories are "
        "included, "
        ".git and its like only when the glob names them; symbolic links are not followed.",
    .hints = TOOL_READS | TOOL_IDEMPOTENT,
    .in = find_in,
    .n_in = ARRAY_LEN(find_in),
    .out = find_out,
    .n_out = ARRAY_LEN(find_out),
    .state_size = sizeof(struct find_call),
    .run = find_run,
    .fini = find_fini,
};
