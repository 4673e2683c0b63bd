/* core/find: the tool `find`: walk, match, page (files_find() of core/files.h).
 *
 * Theory. The result is sorted by bytes without being collected first. A directory's entries are
 * sorted among themselves with a '/' behind the names of directories, which is exactly the order of
 * the full paths, and are pushed on a stack of paths; popping gives the next path in order. So only
 * the page is kept, the listing's version is hashed on the way, and one descriptor is open at a
 * time: each directory is opened beneath the root by its path, which no swapped link can lead
 * astray. A directory that vanished or turned into something else meanwhile is passed over.
 *
 * Must not: stop silently. Whatever was not looked at makes the page `incomplete` with a reason.
 */
#include "base/mem.h"
#include "core/files.h"
#include "core/glob.h"
#include "core/policy.h"
#include "sys/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Bytes of directory entries that are read at a time. */
#define ENTRIES_CHUNK (32u << 10)

/* Stores of version control systems. */
static const char *const vcs_names[] = {".git", ".hg", ".svn", ".jj"};

struct walk {
    const struct workspace *ws;
    const struct glob *glob;
    const atomic_bool *cancel;
    struct strv stack; /* paths still to visit, last first; a directory ends in '/' */
    uint64_t seen;     /* names looked at */
    uint64_t limit;
    struct version_hash hash;
    struct find_page page;
};

void find_page_fini(struct find_page *p)
{
    strv_fini(&p->paths);
}

__attribute__((format(printf, 2, 3))) static void cut_short(struct walk *w, const char *format, ...)
{
    if (w->page.incomplete)
        return;
    va_list ap;
    va_start(ap, format);
    vsnprintf(w->page.reason, sizeof(w->page.reason), format, ap);
    va_end(ap);
    w->page.incomplete = true;
}

static bool cancelled(const struct walk *w)
{
    return w->cancel != NULL && atomic_load_explicit(w->cancel, memory_order_relaxed);
}

/* ---- one directory ---- */

static bool is_vcs(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(vcs_names); i++) {
        if (strcmp(name, vcs_names[i]) == 0)
            return true;
    }
    return false;
}

/* DT_REG, DT_DIR, or something that is not listed. */
static unsigned char entry_type(int dir, const struct dirent64 *d)
{
    struct stat st;
    if (d->d_type != DT_UNKNOWN)
        return d->d_type;
    if (fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return DT_UNKNOWN;
    return IFTODT(st.st_mode);
}

static bool wants_directory(struct walk *w, const char *path, const char *name)
{
    if (!glob_may_enter(w->glob, path) || policy_check_read_path(w->ws, path, NULL) < 0)
        return false;
    if (is_vcs(name) && !glob_names(w->glob, name)) {
        w->page.vcs_skipped++;
        return false;
    }
    return true;
}

static void take_entry(struct walk *w, int dir, const char *base, const struct dirent64 *d,
                       struct strv *found)
{
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return;
    w->seen++;
    unsigned char type = entry_type(dir, d);
    if (type != DT_REG && type != DT_DIR)
        return;
    char path[PATH_LEN_MAX];
    int n = snprintf(path, sizeof(path), "%s%s", base, d->d_name);
    if (n + 1 >= (int)sizeof(path)) {
        cut_short(w, "a path is longer than PATH_LEN_MAX (%d)", PATH_LEN_MAX);
        return;
    }
    if (type == DT_DIR && wants_directory(w, path, d->d_name)) {
        strcpy(path + n, "/");
        strv_add(found, path);
    }
    if (type == DT_REG && glob_match(w->glob, path) &&
        policy_check_read_path(w->ws, path, NULL) == 0)
        strv_add(found, path);
}

/* Append what is wanted of the open directory. 0 or -errno. */
static int list_entries(struct walk *w, int dir, const char *base, struct strv *found)
{
    _Alignas(struct dirent64) char chunk[ENTRIES_CHUNK];
    ssize_t n = 0;
    while ((n = getdents64(dir, chunk, sizeof(chunk))) > 0) {
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *d = (const void *)(chunk + at);
            if (w->seen >= FILES_WALK_ENTRIES_MAX) {
                cut_short(w, "more than FILES_WALK_ENTRIES_MAX (%u) names; use a narrower glob",
                          FILES_WALK_ENTRIES_MAX);
                return 0;
            }
            take_entry(w, dir, base, d, found);
            at += d->d_reclen;
        }
        if (cancelled(w))
            return 0;
    }
    return n < 0 ? -errno : 0;
}

static unsigned depth_of(const char *base)
{
    unsigned depth = 0;
    for (; *base != '\0'; base++)
        depth += *base == '/';
    return depth;
}

static int open_directory(const struct workspace *ws, const char *base)
{
    char path[PATH_LEN_MAX];
    size_t n = strlen(base);
    memcpy(path, base, n + 1);
    if (n > 0)
        path[n - 1] = '\0';
    return path_open_beneath(ws->root_fd, path, O_RDONLY | O_DIRECTORY, 0);
}

/* Changed between being listed and being opened: not an error, and not incomplete. */
static bool is_gone(int error)
{
    return error == -ENOENT || error == -ENOTDIR || error == -ELOOP;
}

/* Push what is wanted of the directory `base` ("" or ending in '/'). */
static void enter(struct walk *w, const char *base)
{
    if (depth_of(base) > FILES_WALK_DEPTH_MAX) {
        cut_short(w, "directories nested deeper than FILES_WALK_DEPTH_MAX (%u)",
                  FILES_WALK_DEPTH_MAX);
        return;
    }
    autostrv found = {0};
    autofd int dir = open_directory(w->ws, base);
    int error = dir < 0 ? dir : list_entries(w, dir, base, &found);
    if (error < 0 && !is_gone(error))
        cut_short(w, "%.80s could not be read: %s", *base ? base : "the root", strerror(-error));
    strv_sort(&found);
    for (size_t i = found.len; i-- > 0;)
        strv_add_take(&w->stack, steal(found.items[i]));
    found.len = 0;
}

/* ---- the walk ---- */

static void emit(struct walk *w, char *path)
{
    struct find_page *p = &w->page;
    version_add(&w->hash, path, strlen(path) + 1);
    if (p->total >= p->offset && p->paths.len < w->limit)
        strv_add_take(&p->paths, path);
    else
        free(path);
    p->total++;
}

static void visit_all(struct walk *w)
{
    enter(w, "");
    while (w->stack.len > 0 && !cancelled(w)) {
        char *path = w->stack.items[--w->stack.len];
        if (path[strlen(path) - 1] != '/') {
            emit(w, path);
            continue;
        }
        enter(w, path);
        free(path);
    }
}

static int run_walk(struct walk *w, struct find_page *ret, struct err *e)
{
    version_begin(&w->hash);
    visit_all(w);
    const char *marker = w->page.incomplete ? "incomplete" : "complete";
    version_add(&w->hash, marker, strlen(marker));
    version_end(&w->hash, w->page.listing_version);
    strv_fini(&w->stack);
    if (cancelled(w)) {
        find_page_fini(&w->page);
        return err_set(e, ERR_CANCELLED, "find was cancelled after %" PRIu64 " names", w->seen);
    }
    w->page.truncated = w->page.offset + w->page.paths.len < w->page.total;
    *ret = w->page;
    return 0;
}

int files_find(const struct workspace *ws, const char *glob, uint64_t offset, uint64_t limit,
               const atomic_bool *cancel, struct find_page *ret, struct err *e)
{
    if (files_check_limit(limit, FILES_FIND_MAX, "FILES_FIND_MAX", e) < 0 ||
        policy_check(ws, POLICY_READ, e) < 0)
        return -1;
    if (files_root_gone(ws))
        return files_root_error(ws, e);
    struct glob g = {0};
    if (glob_compile(glob, &g, e) < 0)
        return -1;
    struct walk w = {
        .ws = ws, .glob = &g, .cancel = cancel, .limit = limit, .page = {.offset = offset}};
    int rc = run_walk(&w, ret, e);
    glob_fini(&g);
    return rc;
}
