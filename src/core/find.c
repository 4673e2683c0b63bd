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
#include "core/ignore.h"
#include "core/policy.h"
#include "sys/path.h"
#include "wire/glob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Bytes of directory entries that are read at a time. */
#define ENTRIES_CHUNK (32u << 10)

/* What the details of a path add to an answer, about. */
#define DETAILS_BYTES 100u

/* Stores of version control systems. */
static const char *const vcs_names[] = {".git", ".hg", ".svn", ".jj"};

struct find_walk {
    const struct workspace *ws;
    struct glob glob;
    struct find_request request;
    const struct find_request *q; /* the same */
    unsigned kinds;
    struct ignore ignore;
    size_t entries_cap;
    struct strv stack; /* paths still to visit, last first; see push_directory() */
    bool begun;        /* the root was entered */
    uint64_t seen;     /* names looked at */
    uint64_t bytes;    /* of the page's paths */
    bool full;         /* the page is */
    struct version_hash hash;
    bool hashed; /* it has ended */
    struct find_page page;
};

void find_page_fini(struct find_page *p)
{
    strv_fini(&p->paths);
    free(steal(p->entries));
}

__attribute__((format(printf, 2, 3))) static void cut_short(struct find_walk *w, const char *format,
                                                            ...)
{
    if (w->page.incomplete)
        return;
    va_list ap;
    va_start(ap, format);
    vsnprintf(w->page.reason, sizeof(w->page.reason), format, ap);
    va_end(ap);
    w->page.incomplete = true;
}

static bool cancelled(const struct find_walk *w)
{
    return w->q->cancel != NULL && atomic_load_explicit(w->q->cancel, memory_order_relaxed);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
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

/* The path as the pattern sees it: in lower case when case does not count. */
static const char *for_glob(const struct find_walk *w, const char *path, char folded[PATH_LEN_MAX])
{
    size_t i = 0;
    if (!w->q->fold_case)
        return path;
    for (; path[i] != '\0'; i++)
        folded[i] = path[i] >= 'A' && path[i] <= 'Z' ? (char)(path[i] - 'A' + 'a') : path[i];
    folded[i] = '\0';
    return folded;
}

static unsigned depth_of(const char *base)
{
    unsigned depth = 0;
    for (; *base != '\0'; base++)
        depth += *base == '/';
    return depth;
}

static bool wants_directory(struct find_walk *w, const char *path, const char *name)
{
    char folded[PATH_LEN_MAX];
    if (!glob_may_enter(&w->glob, for_glob(w, path, folded)) ||
        policy_check_read_path(w->ws, path, NULL) < 0)
        return false;
    if (is_vcs(name) && !glob_names(&w->glob, name)) {
        w->page.vcs_skipped++;
        return false;
    }
    return w->q->max_depth == 0 || depth_of(path) + 1 < w->q->max_depth;
}

/* Is it listed itself? */
static bool wants_entry(struct find_walk *w, const char *path, enum find_kind kind)
{
    char folded[PATH_LEN_MAX];
    return (w->kinds & FIND_KIND(kind)) != 0 && glob_match(&w->glob, for_glob(w, path, folded)) &&
           policy_check_read_path(w->ws, path, NULL) == 0;
}

static enum find_kind kind_of(unsigned char type)
{
    switch (type) {
    case DT_REG:
        return FIND_FILE;
    case DT_DIR:
        return FIND_DIRECTORY;
    case DT_LNK:
        return FIND_LINK;
    default:
        return FIND_OTHER;
    }
}

/* What the stack holds is a path to list, or with "//" at the end a directory to enter: so a
 * directory comes before what is in it. */
static void push_directory(struct find_walk *w, char path[PATH_LEN_MAX], const char *name,
                           struct strv *found)
{
    size_t n = strlen(path);
    bool entered = wants_directory(w, path, name);
    bool listed = wants_entry(w, path, FIND_DIRECTORY);
    strcpy(path + n, "/");
    if (listed)
        strv_add(found, path);
    strcpy(path + n, "//");
    if (entered)
        strv_add(found, path);
}

static void take_entry(struct find_walk *w, int dir, const char *base, const struct dirent64 *d,
                       struct strv *found)
{
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return;
    w->seen++;
    unsigned char type = entry_type(dir, d);
    enum find_kind kind = kind_of(type);
    if (kind != FIND_DIRECTORY && (w->kinds & FIND_KIND(kind)) == 0)
        return;
    char path[PATH_LEN_MAX];
    int n = snprintf(path, sizeof(path), "%s%s", base, d->d_name);
    if (n + 2 >= (int)sizeof(path)) {
        cut_short(w, "a path is longer than PATH_LEN_MAX (%d)", PATH_LEN_MAX);
        return;
    }
    if (w->q->ignore_files && ignore_match(&w->ignore, path, kind == FIND_DIRECTORY)) {
        w->page.ignored++;
        return;
    }
    if (kind == FIND_DIRECTORY)
        push_directory(w, path, d->d_name, found);
    else if (wants_entry(w, path, kind))
        strv_add(found, path);
}

/* Append what is wanted of the open directory. 0 or -errno. */
static int list_entries(struct find_walk *w, int dir, const char *base, struct strv *found)
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
static void enter(struct find_walk *w, const char *base)
{
    if (depth_of(base) > FILES_WALK_DEPTH_MAX) {
        cut_short(w, "directories nested deeper than FILES_WALK_DEPTH_MAX (%u)",
                  FILES_WALK_DEPTH_MAX);
        return;
    }
    autostrv found = {0};
    autofd int dir = open_directory(w->ws, base);
    if (dir >= 0 && w->q->ignore_files)
        ignore_enter(&w->ignore, dir, base);
    int error = dir < 0 ? dir : list_entries(w, dir, base, &found);
    if (error < 0 && !is_gone(error))
        cut_short(w, "%.80s could not be read: %s", *base ? base : "the root", strerror(-error));
    strv_sort(&found);
    for (size_t i = found.len; i-- > 0;)
        strv_add_take(&w->stack, steal(found.items[i]));
    found.len = 0;
}

/* ---- the walk ---- */

/* Ask about the path that was added last; its directory is opened beneath the root again. */
static void add_details(struct find_walk *w)
{
    struct find_page *p = &w->page;
    struct stat st;
    struct find_entry entry = {0};
    char path[PATH_LEN_MAX];
    const char *leaf = NULL;
    strcpy(path, p->paths.items[p->paths.len - 1]);
    size_t n = strlen(path);
    if (path[n - 1] == '/')
        path[n - 1] = '\0';
    autofd int dir = path_open_parent(w->ws->root_fd, path, &leaf);
    if (dir >= 0 && fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0)
        entry = (struct find_entry){kind_of((unsigned char)IFTODT(st.st_mode)), true,
                                    st.st_mode & 07777, (uint64_t)st.st_size,
                                    st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec};
    void *items = p->entries;
    mem_grow(&items, &w->entries_cap, p->paths.len, sizeof(entry));
    p->entries = items;
    p->entries[p->paths.len - 1] = entry;
}

/* Pages have no holes: what follows a path that did not fit belongs to the next one. */
static bool has_room(struct find_walk *w, size_t n)
{
    const struct find_page *p = &w->page;
    w->bytes += n + (w->q->details ? DETAILS_BYTES : 0);
    if (p->paths.len >= w->q->limit ||
        (w->q->max_bytes > 0 && w->bytes > w->q->max_bytes && p->paths.len > 0))
        w->full = true;
    return !w->full;
}

static void emit(struct find_walk *w, char *path)
{
    struct find_page *p = &w->page;
    size_t n = strlen(path) + 1;
    version_add(&w->hash, path, n);
    if (p->total >= p->offset && has_room(w, n)) {
        strv_add_take(&p->paths, path);
        if (w->q->details)
            add_details(w);
    } else {
        free(path);
    }
    p->total++;
}

/* False when the time is over and there is more to visit. */
static bool visit_for(struct find_walk *w, uint64_t budget_ms)
{
    uint64_t until = now_ms() + budget_ms;
    if (!w->begun)
        enter(w, "");
    w->begun = true;
    while (w->stack.len > 0 && !cancelled(w)) {
        char *path = w->stack.items[--w->stack.len];
        size_t n = strlen(path);
        if (n < 2 || path[n - 1] != '/' || path[n - 2] != '/') {
            emit(w, path);
            continue;
        }
        path[n - 1] = '\0';
        enter(w, path);
        free(path);
        if (now_ms() >= until && w->stack.len > 0)
            return false;
    }
    return true;
}

static void end_listing(struct find_walk *w)
{
    struct find_page *p = &w->page;
    if (w->ignore.cut)
        cut_short(w,
                  "an ignore file was left out: IGNORE_FILE_MAX (%u bytes), IGNORE_RULES_MAX (%u)",
                  IGNORE_FILE_MAX, IGNORE_RULES_MAX);
    const char *marker = p->incomplete ? "incomplete" : "complete";
    version_add(&w->hash, marker, strlen(marker));
    version_end(&w->hash, p->listing_version);
    w->hashed = true;
    p->truncated = p->offset + p->paths.len < p->total;
}

static int check_listing(const struct find_walk *w, struct err *e)
{
    const char *asked = w->q->listing_version;
    if (asked == NULL || strcmp(asked, w->page.listing_version) == 0)
        return 0;
    return err_set(e, ERR_VERSION_CONFLICT,
                   "the listing has changed: it is %s now, not %.80s; start again at offset 0",
                   w->page.listing_version, asked);
}

int files_find_step(struct find_walk *w, uint64_t budget_ms, struct find_page *ret, struct err *e)
{
    if (!visit_for(w, budget_ms))
        return 1;
    if (cancelled(w))
        return err_set(e, ERR_CANCELLED, "find was cancelled after %" PRIu64 " names", w->seen);
    end_listing(w);
    if (check_listing(w, e) < 0)
        return -1;
    *ret = w->page;
    w->page = (struct find_page){0};
    return 0;
}

void files_find_free(struct find_walk *w)
{
    if (w == NULL)
        return;
    if (!w->hashed)
        version_end(&w->hash, w->page.listing_version);
    strv_fini(&w->stack);
    ignore_fini(&w->ignore);
    find_page_fini(&w->page);
    glob_fini(&w->glob);
    free(w);
}

static int compile_glob(const struct find_request *q, struct glob *g, struct err *e)
{
    autofree char *folded = q->glob != NULL && q->fold_case ? mem_strdup(q->glob) : NULL;
    for (char *c = folded; c != NULL && *c != '\0'; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    return glob_compile(folded != NULL ? folded : q->glob, g, e);
}

struct find_walk *files_find_begin(const struct workspace *ws, const struct find_request *q,
                                   struct err *e)
{
    struct glob g = {0};
    if (files_check_limit(q->limit, FILES_FIND_MAX, "FILES_FIND_MAX", e) < 0 ||
        policy_check(ws, POLICY_READ, e) < 0)
        return NULL;
    if (files_root_gone(ws)) {
        files_root_error(ws, e);
        return NULL;
    }
    if (compile_glob(q, &g, e) < 0)
        return NULL;
    struct find_walk *w = mem_new(struct find_walk);
    w->ws = ws;
    w->glob = g;
    w->request = *q;
    w->q = &w->request;
    w->kinds = q->kinds != 0 ? q->kinds : FIND_KIND(FIND_FILE);
    w->page.offset = q->offset;
    version_begin(&w->hash);
    return w;
}

int files_find_request(const struct workspace *ws, const struct find_request *q,
                       struct find_page *ret, struct err *e)
{
    struct find_walk *w = files_find_begin(ws, q, e);
    int rc = 1;
    if (w == NULL)
        return -1;
    while (rc > 0)
        rc = files_find_step(w, UINT32_MAX, ret, e);
    files_find_free(w);
    return rc;
}

int files_find(const struct workspace *ws, const char *glob, uint64_t offset, uint64_t limit,
               const atomic_bool *cancel, struct find_page *ret, struct err *e)
{
    struct find_request q = {.glob = glob, .offset = offset, .limit = limit, .cancel = cancel};
    return files_find_request(ws, &q, ret, e);
}
