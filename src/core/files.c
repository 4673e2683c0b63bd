/* core/files: see files.h. Reading; finding is in core/find.c.
 *
 * A read is a snapshot of the length that the file had when it was opened: what is appended
 * meanwhile is not part of it, so a file that grows faster than we read ends too. A small file is
 * read whole in one system call, and its version and its window come from the same bytes. A large
 * one streams through the hash in one pass and only the window is kept.
 */
#include "core/files.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "core/policy.h"
#include "sys/filemeta.h"
#include "sys/path.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Up to this size a file is read whole. */
#define WHOLE_MAX FILES_READ_MAX
/* Piece of a large one. */
#define CHUNK (64u << 10)
/* Files of /proc say that they are empty; they are read to their end, up to this. */
#define UNSIZED_MAX (16u << 20)

void file_page_fini(struct file_page *p)
{
    buf_fini(&p->content);
}

void files_version(const void *bytes, size_t n, char ret[FILES_VERSION_LEN])
{
    version_of(bytes, n, ret);
}

/* ---- errors ---- */

static const struct {
    int errnum;
    enum err_code code;
    const char *why;
} error_table[] = {
    {ENOENT, ERR_FILE_NOT_FOUND, "no such file in the workspace"},
    {ENOTDIR, ERR_PATH_NOT_DIRECTORY, "a component of the path is not a directory"},
    {ELOOP, ERR_SYMLINK_REJECTED,
     "a component of the path is a symbolic link; name the file it points to by its own path"},
    {EXDEV, ERR_PATH_ESCAPE, "paths are relative to the workspace root and do not leave it"},
    {EISDIR, ERR_SPECIAL_FILE_REJECTED, "is a directory, not a regular file"},
    {ENXIO, ERR_SPECIAL_FILE_REJECTED, "is a FIFO, socket or device, not a regular file"},
    {ENAMETOOLONG, ERR_LIMIT_EXCEEDED,
     "the path or one of its components is too long (PATH_LEN_MAX 4096, PATH_COMPONENTS_MAX 256)"},
};

int files_error(struct err *e, int errnum, const char *path, const char *doing)
{
    errnum = errnum < 0 ? -errnum : errnum;
    path = *path != '\0' ? path : "."; /* the root's normal name is empty */
    for (size_t i = 0; i < ARRAY_LEN(error_table); i++) {
        if (error_table[i].errnum == errnum) {
            err_set(e, error_table[i].code, "%s %s: %s", doing, path, error_table[i].why);
            if (e != NULL)
                e->sys = errnum;
            return -1;
        }
    }
    return err_sys(e, ERR_FILE_OPERATION_FAILED, errnum, "%s %s", doing, path);
}

bool files_root_gone(const struct workspace *ws)
{
    struct stat st;
    return fstat(ws->root_fd, &st) < 0 || st.st_nlink == 0;
}

int files_root_error(const struct workspace *ws, struct err *e)
{
    return err_set(e, ERR_FILE_OPERATION_FAILED,
                   "the root directory of workspace %s was deleted; an operator has to make it "
                   "again and restart the server",
                   ws->id);
}

/* ---- reading ---- */

struct scan {
    int fd;
    struct stat st;
    uint64_t offset; /* the window */
    uint64_t limit;
    uint64_t end; /* stop here: the size when the file was opened */
    uint64_t size;
    const struct read_request *q;
    struct buf content;
    char version[FILES_VERSION_LEN];
    bool known; /* `version` is */
    unsigned char first[4];
};

/* Keep what of the n bytes at `at` lies in the window. */
static void keep_window(struct scan *s, const char *bytes, size_t n, uint64_t at)
{
    uint64_t window_end = s->offset + s->limit;
    uint64_t from = at > s->offset ? at : s->offset;
    uint64_t to = at + n < window_end ? at + n : window_end;
    if (from < to)
        buf_put(&s->content, bytes + (from - at), to - from);
}

/* read() that is not interrupted; 0 at the end, -errno. */
static ssize_t read_some(int fd, void *to, size_t n)
{
    ssize_t got = -1;
    do {
        got = read(fd, to, n);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

/* The same from a place; fewer bytes only at the end. */
static ssize_t read_at(int fd, char *to, size_t n, uint64_t at)
{
    size_t have = 0;
    while (have < n) {
        ssize_t got = pread(fd, to + have, n - have, (off_t)(at + have));
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0)
            break;
        have += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)have;
}

static bool is_cancelled(const struct scan *s)
{
    return s->q->cancel != NULL && atomic_load_explicit(s->q->cancel, memory_order_relaxed);
}

/* All of a small file: its version and its window come from the same bytes. */
static int scan_whole(struct scan *s)
{
    char *to = buf_reserve(&s->content, s->end);
    size_t have = 0;
    while (have < s->end) {
        ssize_t n = read_some(s->fd, to + have, s->end - have);
        if (n < 0)
            return (int)n;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    buf_commit(&s->content, have);
    s->size = have;
    memcpy(s->first, to, have < sizeof(s->first) ? have : sizeof(s->first));
    version_of(to, have, s->version);
    buf_consume(&s->content, s->offset < have ? s->offset : have);
    if (s->content.len > s->limit)
        buf_truncate(&s->content, s->limit);
    return 0;
}

static int scan_stream(struct scan *s)
{
    char chunk[CHUNK];
    struct version_hash h;
    version_begin(&h);
    int error = 0;
    while (s->size < s->end && error == 0) {
        uint64_t left = s->end - s->size;
        ssize_t n = read_some(s->fd, chunk, left < CHUNK ? left : CHUNK);
        error = n < 0 ? (int)n : is_cancelled(s) ? -ECANCELED : 0;
        if (n <= 0)
            break;
        if (s->size == 0)
            memcpy(s->first, chunk, (size_t)n < sizeof(s->first) ? (size_t)n : sizeof(s->first));
        version_add(&h, chunk, (size_t)n);
        keep_window(s, chunk, (size_t)n, s->size);
        s->size += (uint64_t)n;
    }
    version_end(&h, s->version);
    return error;
}

/* The version is known: only the window is read. */
static int scan_window(struct scan *s)
{
    s->size = s->end;
    uint64_t left = s->offset < s->end ? s->end - s->offset : 0;
    size_t want = left < s->limit ? left : s->limit;
    ssize_t n = read_at(s->fd, buf_reserve(&s->content, want + 1), want, s->offset);
    if (n < 0)
        return (int)n;
    buf_commit(&s->content, (size_t)n);
    if (s->offset == 0 && (size_t)n >= sizeof(s->first)) {
        memcpy(s->first, buf_bytes(&s->content), sizeof(s->first));
        return 0;
    }
    n = read_at(s->fd, (char *)s->first, sizeof(s->first), 0);
    return n < 0 ? (int)n : 0;
}

static void remember(struct scan *s)
{
    struct stat now;
    if (s->q->cache != NULL && s->size == (uint64_t)s->st.st_size && fstat(s->fd, &now) == 0 &&
        filemeta_same(&now, &s->st))
        version_cache_put(s->q->cache, &now, s->version);
}

static int scan_file(struct scan *s)
{
    if (s->known)
        return scan_window(s);
    bool small = s->st.st_size > 0 && s->end <= WHOLE_MAX;
    int rc = small ? scan_whole(s) : scan_stream(s);
    if (rc == 0)
        remember(s);
    return rc;
}

/* End the window before a character that it would cut, unless nothing would be left. */
static void trim_window(struct scan *s)
{
    if (s->q->exact || s->offset + s->content.len >= s->size)
        return;
    size_t whole = utf8_whole_prefix(buf_bytes(&s->content), s->content.len);
    if (whole > 0)
        buf_truncate(&s->content, whole);
}

/* ---- lines ---- */

/* The offset behind the n-th LF from `from` on, or the end. */
static int skip_lines(struct scan *s, uint64_t from, uint64_t n, uint64_t *ret)
{
    char chunk[CHUNK];
    uint64_t at = from;
    while (n > 0 && at < s->end) {
        size_t want = s->end - at < CHUNK ? s->end - at : CHUNK;
        ssize_t got = read_at(s->fd, chunk, want, at);
        if (got < 0 || is_cancelled(s))
            return got < 0 ? (int)got : -ECANCELED;
        if (got == 0)
            break;
        const char *p = chunk;
        const char *end = chunk + got;
        while (n > 0 && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
            p++;
            n--;
        }
        at += (uint64_t)(p != NULL ? p - chunk : got);
    }
    *ret = at;
    return 0;
}

/* The offset of the n-th line from the end, but not so far that the rest exceeds the limit. */
static int find_tail(struct scan *s, uint64_t n, uint64_t *ret)
{
    char chunk[CHUNK];
    uint64_t lowest = s->end > s->limit ? s->end - s->limit : 0;
    uint64_t at = s->end;
    uint64_t found = s->end;
    while (at > lowest) {
        size_t want = at - lowest < CHUNK ? at - lowest : CHUNK;
        at -= want;
        ssize_t got = read_at(s->fd, chunk, want, at);
        if (got < 0 || is_cancelled(s))
            return got < 0 ? (int)got : -ECANCELED;
        for (size_t i = (size_t)got; i-- > 0;) {
            if (chunk[i] != '\n' || at + i + 1 == s->end)
                continue;
            found = at + i + 1;
            if (--n == 0) {
                *ret = found;
                return 0;
            }
        }
    }
    *ret = lowest == 0 || found == s->end ? lowest : found;
    return 0;
}

/* Turn what was asked for in lines into a window of bytes. */
static int place_lines(struct scan *s)
{
    const struct read_request *q = s->q;
    int rc = 0;
    /* A file that says that it is empty has to be read to know its end. */
    if (q->tail_lines > 0 && s->st.st_size == 0)
        rc = skip_lines(s, 0, UINT64_MAX, &s->end);
    if (q->tail_lines > 0)
        return rc < 0 ? rc : find_tail(s, q->tail_lines, &s->offset);
    if (q->first_line == 0)
        return 0;
    uint64_t end = s->end;
    rc = skip_lines(s, 0, q->first_line - 1, &s->offset);
    if (rc == 0 && q->n_lines > 0)
        rc = skip_lines(s, s->offset, q->n_lines, &end);
    if (end - s->offset < s->limit)
        s->limit = end - s->offset;
    return rc;
}

/* A window of lines ends behind a line, if it holds one. */
static void trim_lines(struct scan *s, struct file_page *p)
{
    bool by_lines = s->q->first_line > 0 || s->q->tail_lines > 0;
    const char *bytes = buf_bytes(&s->content);
    if (!by_lines)
        return;
    const char *lf = memrchr(bytes, '\n', s->content.len);
    if (s->offset + s->content.len < s->size && lf != NULL)
        buf_truncate(&s->content, (size_t)(lf - bytes) + 1);
    const char *end = bytes + s->content.len;
    for (const char *at = bytes; at < end; p->n_lines++) {
        lf = memchr(at, '\n', (size_t)(end - at));
        at = lf != NULL ? lf + 1 : end;
    }
    p->first_line = s->q->tail_lines > 0 ? 0 : s->q->first_line;
}

/* ---- what it is ---- */

static const char *encoding_of(const struct scan *s, bool lossy, bool binary)
{
    if (s->first[0] == 0xff && s->first[1] == 0xfe)
        return "utf-16le";
    if (s->first[0] == 0xfe && s->first[1] == 0xff)
        return "utf-16be";
    return binary ? "binary" : lossy ? "unknown" : "utf-8";
}

int files_check_limit(uint64_t limit, uint64_t max, const char *name, struct err *e)
{
    if (limit == 0 || limit > max)
        return err_set(e, ERR_OUTPUT_LIMIT,
                       "limit %" PRIu64 " is out of range; 1 to %" PRIu64 " (%s) is accepted",
                       limit, max, name);
    return 0;
}

int files_resolve(const struct workspace *ws, const char *path, char ret[PATH_LEN_MAX],
                  struct err *e)
{
    int rc = path_normalise(path, ret, PATH_LEN_MAX);
    if (rc == -EINVAL)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the path is empty; name a file relative to the workspace root");
    return rc < 0 ? files_error(e, rc, path, "path") : 0;
}

static int check_forms(const struct read_request *q, struct err *e)
{
    bool lines = q->first_line > 0 || q->n_lines > 0;
    if ((lines && q->tail_lines > 0) || (q->offset > 0 && (lines || q->tail_lines > 0)))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "ask for bytes (offset), for lines (start_line, max_lines) or for the last "
                       "lines (tail_lines), not for several of them");
    return 0;
}

static void fill_page(struct scan *s, const char *normal, struct file_page *ret)
{
    *ret = (struct file_page){0};
    trim_lines(s, ret);
    trim_window(s);
    const char *bytes = buf_bytes(&s->content);
    size_t n = s->content.len;
    strcpy(ret->path, normal);
    memcpy(ret->version, s->version, sizeof(ret->version));
    ret->content = s->content;
    ret->offset = s->offset;
    ret->size = s->size;
    ret->truncated = s->offset < s->size && s->offset + n < s->size;
    ret->lossy = !utf8_valid(bytes, n);
    ret->binary = memchr(bytes, '\0', n) != NULL;
    ret->encoding = encoding_of(s, ret->lossy, ret->binary);
    ret->binary = ret->binary && strcmp(ret->encoding, "binary") == 0;
}

static int scan_and_fill(struct scan *s, const char *normal, struct file_page *ret, struct err *e)
{
    const struct read_request *q = s->q;
    s->end = s->st.st_size > 0 ? (uint64_t)s->st.st_size : UNSIZED_MAX;
    s->known = q->cache != NULL && version_cache_get(q->cache, &s->st, s->version);
    int rc = place_lines(s);
    if (rc == 0)
        rc = scan_file(s);
    if (rc == 0) {
        fill_page(s, normal, ret);
        return 0;
    }
    buf_fini(&s->content);
    if (rc == -ECANCELED)
        return err_set(e, ERR_CANCELLED, "reading %s was cancelled", normal);
    return files_error(e, rc, normal, "read");
}

int files_read_request(const struct workspace *ws, const struct read_request *q,
                       struct file_page *ret, struct err *e)
{
    char normal[PATH_LEN_MAX];
    if (files_check_limit(q->limit, FILES_READ_MAX, "FILES_READ_MAX", e) < 0 ||
        check_forms(q, e) < 0 || policy_check(ws, POLICY_READ, e) < 0 ||
        files_resolve(ws, q->path, normal, e) < 0 || policy_check_read_path(ws, normal, e) < 0)
        return -1;
    /* No file reaches so far; sums stay in range. */
    struct scan s = {
        .q = q, .offset = q->offset < INT64_MAX ? q->offset : INT64_MAX, .limit = q->limit};
    autofd int fd = path_open_regular(ws->root_fd, normal, &s.st);
    if (fd == -ENOENT && files_root_gone(ws))
        return files_root_error(ws, e);
    if (fd < 0)
        return files_error(e, fd, normal, "read");
    if (q->quick_max > 0 && (uint64_t)s.st.st_size > q->quick_max) {
        ret->size = (uint64_t)s.st.st_size;
        return 1;
    }
    s.fd = fd;
    return scan_and_fill(&s, normal, ret, e);
}

int files_read(const struct workspace *ws, const char *path, uint64_t offset, uint64_t limit,
               struct file_page *ret, struct err *e)
{
    struct read_request q = {.path = path, .offset = offset, .limit = limit};
    if (files_read_request(ws, &q, ret, e) < 0)
        return -1;
    ret->offset = offset;
    return 0;
}
