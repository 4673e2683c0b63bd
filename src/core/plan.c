/* core/plan: see plan.h. The table of files and what they hold; core/plan_sections carries out. */
#include "core/plan.h"

#include "base/mem.h"
#include "core/files.h"
#include "core/policy.h"
#include "core/spread.h"
#include "sys/filemeta.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static void free_file(struct plan_file *f)
{
    if (f == NULL)
        return;
    buf_fini(&f->content);
    buf_fini(&f->content_before);
    free(f->path);
    free(f);
}

void plan_fini(struct plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        free_file(p->files[i]);
    for (size_t i = 0; i < p->n_ahead; i++)
        free_file(p->ahead[i]);
    free(p->files);
    free(p->ahead);
    map_fini(&p->by_path);
    map_fini(&p->ahead_by_path);
    *p = (struct plan){0};
}

bool plan_changes(const struct plan_file *f)
{
    return f->touched && (f->existed || f->exists);
}

mode_t plan_mode(const struct plan_file *f, const struct stat *st)
{
    mode_t mode = st->st_mode & 07777;
    if (f->mode == PATCH_MODE_PLAIN)
        return mode & ~(mode_t)0111;
    return f->mode == PATCH_MODE_EXECUTABLE ? mode | (mode & 0444) >> 2 : mode;
}

bool plan_changes_mode(const struct plan_file *f)
{
    const struct plan_file *meta = f->origin != NULL ? f->origin : f;
    if (!f->exists || !meta->existed)
        return f->exists && f->mode == PATCH_MODE_EXECUTABLE;
    return plan_mode(f, &meta->st) != (meta->st.st_mode & 07777);
}

/* ---- looking at the disk ---- */

/* Up to this size the first look keeps the content; it is most likely wanted. */
#define LOOK_MAX (1u << 20)
/* And when many are looked at ahead: PATCH_FILES_MAX of them are PATCH_TOTAL_MAX together. */
#define LOOK_AHEAD_MAX (PATCH_TOTAL_MAX / PATCH_FILES_MAX)

static int changed_meanwhile(const struct plan_file *f, struct err *e)
{
    return err_set(e, ERR_VERSION_CONFLICT,
                   "%s was changed by somebody else while the patch was planned; nothing was "
                   "written, read the file and try again",
                   f->path);
}

/* Read the file as it was when it was looked at. */
static int read_content(struct plan *p, struct plan_file *f, int fd, struct err *e)
{
    size_t size = (size_t)f->st.st_size;
    char *to = buf_reserve(&f->content, size + 1);
    size_t have = 0;
    ssize_t n = 0;
    do {
        n = read(fd, to + have, size + 1 - have);
        have += n > 0 ? (size_t)n : 0;
    } while ((n > 0 && have < size) || (n < 0 && errno == EINTR));
    if (n < 0)
        return files_error(e, errno, f->path, "read");
    /* One that grew has another size now, so nothing has to be read to see its end. */
    struct stat now;
    if (have != size || fstat(fd, &now) < 0 || !filemeta_same(&f->st, &now))
        return changed_meanwhile(f, e);
    buf_commit(&f->content, size);
    f->loaded = true;
    p->held += size;
    return 0;
}

int plan_check_sizes(const struct plan *p, const struct plan_file *f, uint64_t size, struct err *e)
{
    if (size > PATCH_FILE_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "%s has %llu bytes, more than PATCH_FILE_MAX (%u); edit it with a command",
                       f->path, (unsigned long long)size, PATCH_FILE_MAX);
    if (p->held + size > PATCH_TOTAL_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "the files of the patch have more than PATCH_TOTAL_MAX (%u) bytes together; "
                       "send several patches",
                       PATCH_TOTAL_MAX);
    return 0;
}

/* One of more than `content_max` bytes is left for later: 1. */
static int look_at_content(struct plan *p, struct plan_file *f, int fd, off_t content_max,
                           struct err *e)
{
    if (f->st.st_size > content_max)
        return 1;
    if (plan_check_sizes(p, f, (uint64_t)f->st.st_size, e) < 0 || read_content(p, f, fd, e) < 0)
        return -1;
    version_of(buf_bytes(&f->content), f->content.len, f->before);
    return 0;
}

static int look_at_disk(struct plan *p, struct plan_file *f, struct err *e)
{
    autofd int fd = path_open_regular(p->ws->root_fd, f->path, &f->st);
    if (fd == -ENOENT && files_root_gone(p->ws))
        return files_root_error(p->ws, e);
    if (fd == -ENOENT)
        return 0;
    if (fd < 0)
        return files_error(e, fd, f->path, "open");
    f->existed = f->exists = true;
    f->plain = filemeta_is_plain(fd);
    int rc = look_at_content(p, f, fd, (off_t)LOOK_MAX, e);
    if (rc <= 0)
        return rc;
    rc = version_of_fd(fd, f->before);
    return rc < 0 ? files_error(e, rc, f->path, "read") : 0;
}

/* What cannot be had at once, for whatever reason, is for plan_look(): NULL. */
static int look_ahead_one(void *user, size_t i)
{
    struct plan *p = user;
    struct plan_file *f = p->ahead[i];
    struct plan alone = {.ws = p->ws};
    autofd int fd = path_open_regular(p->ws->root_fd, f->path, &f->st);
    bool done = false;
    if (fd >= 0) {
        f->existed = f->exists = true;
        f->plain = filemeta_is_plain(fd);
        done = look_at_content(&alone, f, fd, (off_t)LOOK_AHEAD_MAX, NULL) == 0;
    }
    if (!done) {
        free_file(f);
        p->ahead[i] = NULL;
    }
    return 0;
}

void plan_look_ahead(struct plan *p, const char *const *paths, size_t n)
{
    size_t failed = 0;
    ensure(p->ahead == NULL);
    n = n < PATCH_FILES_MAX ? n : PATCH_FILES_MAX;
    p->ahead = mem_zalloc(n, sizeof(*p->ahead));
    for (size_t i = 0; i < n; i++) {
        char normal[PATH_LEN_MAX];
        if (files_resolve(p->ws, paths[i], normal, NULL) < 0 ||
            policy_check_write_path(p->ws, normal, NULL) < 0 ||
            map_get(&p->by_path, normal) != NULL || map_get(&p->ahead_by_path, normal) != NULL)
            continue;
        struct plan_file *f = mem_new(struct plan_file);
        f->path = mem_strdup(normal);
        p->ahead[p->n_ahead++] = f;
        map_set(&p->ahead_by_path, normal, (void *)(uintptr_t)p->n_ahead);
    }
    (void)spread(p->n_ahead, look_ahead_one, p, &failed);
}

/* The file as it was looked at ahead, or NULL. */
static struct plan_file *take_ahead(struct plan *p, const char *normal)
{
    uintptr_t known = (uintptr_t)map_get(&p->ahead_by_path, normal);
    return known > 0 ? steal(p->ahead[known - 1]) : NULL;
}

static void add_file(struct plan *p, struct plan_file *f)
{
    void *items = p->files;
    mem_grow(&items, &p->cap, p->n + 1, sizeof(*p->files));
    p->files = items;
    p->files[p->n++] = f;
    map_set(&p->by_path, f->path, f);
}

static struct plan_file *look_first(struct plan *p, const char *normal, struct err *e)
{
    struct plan_file *f = take_ahead(p, normal);
    if (f != NULL) {
        add_file(p, f);
        if (plan_check_sizes(p, f, f->content.len, e) < 0)
            return NULL;
        p->held += f->content.len;
        return f;
    }
    f = mem_new(struct plan_file);
    f->path = mem_strdup(normal);
    add_file(p, f);
    return look_at_disk(p, f, e) < 0 ? NULL : f;
}

int plan_load(struct plan *p, struct plan_file *f, struct err *e)
{
    if (f->loaded)
        return 0;
    struct stat st;
    if (plan_check_sizes(p, f, (uint64_t)f->st.st_size, e) < 0)
        return -1;
    autofd int fd = path_open_regular(p->ws->root_fd, f->path, &st);
    if (fd < 0)
        return files_error(e, fd, f->path, "open");
    if (!filemeta_same(&st, &f->st))
        return changed_meanwhile(f, e);
    if (read_content(p, f, fd, e) < 0)
        return -1;
    version_of(buf_bytes(&f->content), f->content.len, f->before);
    return 0;
}

int plan_load_before(struct plan *p, struct plan_file *f, struct err *e)
{
    if (!f->existed || f->has_before)
        return 0;
    struct plan_file disk = {.path = f->path, .st = f->st};
    int rc = plan_load(p, &disk, e);
    f->content_before = disk.content;
    f->has_before = rc == 0;
    return rc;
}

static bool wants_before(const struct plan *p, const struct plan_file *f)
{
    return p->keep_before && f->existed && f->loaded && !f->changed && !f->has_before;
}

void plan_drop(struct plan *p, struct plan_file *f)
{
    if (wants_before(p, f)) {
        f->content_before = f->content;
        f->content = (struct buf)BUF_INIT;
        f->has_before = true;
    } else {
        p->held -= f->loaded ? f->content.len : 0;
        buf_fini(&f->content);
    }
    f->loaded = false;
    f->changed = true;
}

void plan_take(struct plan *p, struct plan_file *f, struct buf *content)
{
    plan_drop(p, f);
    f->content = *content;
    *content = (struct buf)BUF_INIT;
    f->loaded = true;
    p->held += f->content.len;
}

void plan_give(struct plan *p, struct plan_file *f, struct buf *ret)
{
    buf_fini(ret);
    if (wants_before(p, f))
        buf_put(ret, buf_bytes(&f->content), f->content.len);
    else {
        p->held -= f->content.len;
        *ret = f->content;
        f->content = (struct buf)BUF_INIT;
        f->loaded = false;
    }
    plan_drop(p, f);
}

struct plan_file *plan_look(struct plan *p, const char *path, bool write, struct err *e)
{
    char normal[PATH_LEN_MAX];
    if (files_resolve(p->ws, path, normal, e) < 0 ||
        (write ? policy_check_write_path(p->ws, normal, e)
               : policy_check_read_path(p->ws, normal, e)) < 0)
        return NULL;
    struct plan_file *f = map_get(&p->by_path, normal);
    if (f == NULL)
        f = look_first(p, normal, e);
    if (f != NULL)
        f->touched |= write;
    return f;
}

/* ---- expectations ---- */

static int expect_one(struct plan *p, const struct patch_expect *x, struct err *e)
{
    bool absent = strcmp(x->version, "absent") == 0;
    if (!absent && !version_valid(x->version))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the expected version of %s is \"%.80s\", which is neither \"absent\" nor "
                       "\"sha256:\" and 64 lower-case hex digits",
                       x->path, x->version);
    struct plan_file *f = plan_look(p, x->path, false, e);
    if (f == NULL)
        return -1;
    const char *have = f->existed ? f->before : "absent";
    if (strcmp(have, x->version) == 0)
        return 0;
    return err_set(e, ERR_VERSION_CONFLICT,
                   "%s is at version %s, not at the expected %s; read it again and send a patch "
                   "against what it holds now",
                   f->path, have, x->version);
}

int plan_expect(struct plan *p, const struct patch_expect *expect, size_t n, struct err *e)
{
    if (n > PATCH_FILES_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "more expected versions (%zu) than PATCH_FILES_MAX (%u)", n,
                       PATCH_FILES_MAX);
    for (size_t i = 0; i < n; i++) {
        if (expect_one(p, &expect[i], e) < 0)
            return -1;
    }
    return 0;
}
