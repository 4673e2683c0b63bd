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
    uint64_t offset; /* the window */
    uint64_t limit;
    uint64_t end; /* stop here: the size when the file was opened */
    uint64_t size;
    struct buf content;
    char version[FILES_VERSION_LEN];
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

static int scan_whole(int fd, struct scan *s)
{
    char *to = buf_reserve(&s->content, s->end);
    size_t have = 0;
    while (have < s->end) {
        ssize_t n = read_some(fd, to + have, s->end - have);
        if (n < 0)
            return (int)n;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    buf_commit(&s->content, have);
    s->size = have;
    version_of(to, have, s->version);
    buf_consume(&s->content, s->offset < have ? s->offset : have);
    if (s->content.len > s->limit)
        buf_truncate(&s->content, s->limit);
    return 0;
}

static int scan_stream(int fd, struct scan *s)
{
    char chunk[CHUNK];
    struct version_hash h;
    version_begin(&h);
    int error = 0;
    while (s->size < s->end) {
        uint64_t left = s->end - s->size;
        ssize_t n = read_some(fd, chunk, left < CHUNK ? left : CHUNK);
        error = n < 0 ? (int)n : 0;
        if (n <= 0)
            break;
        version_add(&h, chunk, (size_t)n);
        keep_window(s, chunk, (size_t)n, s->size);
        s->size += (uint64_t)n;
    }
    version_end(&h, s->version);
    return error;
}

static int scan_file(int fd, const struct stat *st, struct scan *s)
{
    s->end = st->st_size > 0 ? (uint64_t)st->st_size : UNSIZED_MAX;
    return st->st_size > 0 && s->end <= WHOLE_MAX ? scan_whole(fd, s) : scan_stream(fd, s);
}

/* End the window before a character that it would cut, unless nothing would be left. */
static void trim_window(struct scan *s)
{
    if (s->offset + s->content.len >= s->size)
        return;
    size_t whole = utf8_whole_prefix(buf_bytes(&s->content), s->content.len);
    if (whole > 0)
        buf_truncate(&s->content, whole);
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

int files_read(const struct workspace *ws, const char *path, uint64_t offset, uint64_t limit,
               struct file_page *ret, struct err *e)
{
    char normal[PATH_LEN_MAX];
    if (files_check_limit(limit, FILES_READ_MAX, "FILES_READ_MAX", e) < 0 ||
        policy_check(ws, POLICY_READ, e) < 0 || files_resolve(ws, path, normal, e) < 0 ||
        policy_check_read_path(ws, normal, e) < 0)
        return -1;
    struct stat st;
    autofd int fd = path_open_regular(ws->root_fd, normal, &st);
    if (fd == -ENOENT && files_root_gone(ws))
        return files_root_error(ws, e);
    if (fd < 0)
        return files_error(e, fd, normal, "read");
    /* No file reaches so far; the sums above stay in range. */
    struct scan s = {.offset = offset < INT64_MAX ? offset : INT64_MAX, .limit = limit};
    int rc = scan_file(fd, &st, &s);
    if (rc < 0) {
        buf_fini(&s.content);
        return files_error(e, rc, normal, "read");
    }
    trim_window(&s);
    strcpy(ret->path, normal);
    memcpy(ret->version, s.version, sizeof(ret->version));
    ret->content = s.content;
    ret->offset = offset;
    ret->size = s.size;
    ret->truncated = offset < s.size && offset + s.content.len < s.size;
    ret->lossy = !utf8_valid(buf_bytes(&s.content), s.content.len);
    return 0;
}
