/* core/plan: see plan.h. */
#include "core/plan.h"

#include "base/mem.h"
#include "core/files.h"
#include "core/policy.h"
#include "sys/filemeta.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void plan_fini(struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        buf_fini(&p->files[i]->content);
        free(p->files[i]->path);
        free(p->files[i]);
    }
    free(p->files);
    map_fini(&p->by_path);
    *p = (struct plan){0};
}

bool plan_changes(const struct plan_file *f)
{
    return f->touched && (f->existed || f->exists);
}

/* ---- looking at the disk ---- */

/* Up to this size the first look keeps the content; it is most likely wanted. */
#define LOOK_MAX (1u << 20)

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
    } while ((n > 0 && have <= size) || (n < 0 && errno == EINTR));
    if (n < 0)
        return files_error(e, errno, f->path, "read");
    struct stat now;
    if (have != size || fstat(fd, &now) < 0 || !filemeta_same(&f->st, &now))
        return changed_meanwhile(f, e);
    buf_commit(&f->content, size);
    f->loaded = true;
    p->held += size;
    return 0;
}

static int check_sizes(const struct plan *p, const struct plan_file *f, uint64_t size,
                       struct err *e)
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
    if (f->st.st_size > (off_t)LOOK_MAX) {
        int rc = version_of_fd(fd, f->before);
        return rc < 0 ? files_error(e, rc, f->path, "read") : 0;
    }
    if (check_sizes(p, f, (uint64_t)f->st.st_size, e) < 0 || read_content(p, f, fd, e) < 0)
        return -1;
    version_of(buf_bytes(&f->content), f->content.len, f->before);
    return 0;
}

/* Have the content in memory: large files are looked at without. */
static int load(struct plan *p, struct plan_file *f, struct err *e)
{
    if (f->loaded)
        return 0;
    struct stat st;
    if (check_sizes(p, f, (uint64_t)f->st.st_size, e) < 0)
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

static void drop_content(struct plan *p, struct plan_file *f)
{
    p->held -= f->loaded ? f->content.len : 0;
    buf_fini(&f->content);
    f->loaded = false;
}

static void take_content(struct plan *p, struct plan_file *f, struct buf *content)
{
    drop_content(p, f);
    f->content = *content;
    *content = (struct buf)BUF_INIT;
    f->loaded = true;
    p->held += f->content.len;
}

/* The entry of a path as it was written. `write`: the patch wants to change it. */
static struct plan_file *look(struct plan *p, const char *path, bool write, struct err *e)
{
    char normal[PATH_LEN_MAX];
    if (files_resolve(p->ws, path, normal, e) < 0 ||
        (write ? policy_check_write_path(p->ws, normal, e)
               : policy_check_read_path(p->ws, normal, e)) < 0)
        return NULL;
    struct plan_file *f = map_get(&p->by_path, normal);
    if (f == NULL) {
        f = mem_new(struct plan_file);
        f->path = mem_strdup(normal);
        void *items = p->files;
        mem_grow(&items, &p->cap, p->n + 1, sizeof(*p->files));
        p->files = items;
        p->files[p->n++] = f;
        map_set(&p->by_path, normal, f);
        if (look_at_disk(p, f, e) < 0)
            return NULL;
    }
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
    struct plan_file *f = look(p, x->path, false, e);
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

/* ---- sections ---- */

static int must_exist(const struct plan_file *f, const char *what, struct err *e)
{
    if (f->exists)
        return 0;
    return err_set(e, ERR_FILE_NOT_FOUND, "%s %s: no such file in the workspace%s", what, f->path,
                   f->existed ? " (the patch removed it further up)" : "");
}

static int do_add(struct plan *p, const struct patch_section *s, struct err *e)
{
    struct plan_file *f = look(p, s->path, true, e);
    if (f == NULL)
        return -1;
    if (f->exists)
        return err_set(e, ERR_ADD_FILE_EXISTS,
                       "add %s: the file exists; use \"*** Update File\", or delete it first",
                       f->path);
    if (check_sizes(p, f, s->content.len, e) < 0)
        return -1;
    struct buf copy = BUF_INIT;
    buf_put(&copy, buf_bytes(&s->content), s->content.len);
    take_content(p, f, &copy);
    f->exists = true;
    return 0;
}

static int do_delete(struct plan *p, const struct patch_section *s, struct err *e)
{
    struct plan_file *f = look(p, s->path, true, e);
    if (f == NULL || must_exist(f, "delete", e) < 0)
        return -1;
    drop_content(p, f);
    f->exists = false;
    return 0;
}

static int do_update(struct plan *p, const struct patch_section *s, struct plan_file **ret,
                     struct err *e)
{
    struct plan_file *f = look(p, s->path, true, e);
    if (f == NULL || must_exist(f, "update", e) < 0 || load(p, f, e) < 0)
        return -1;
    *ret = f;
    if (s->n == 0)
        return 0;
    autobuf out = BUF_INIT;
    bool fuzzy = false;
    if (hunks_apply(f->path, buf_bytes(&f->content), f->content.len, s->hunks, s->n, &out, &p->work,
                    &fuzzy, e) < 0)
        return -1;
    if (check_sizes(p, f, out.len, e) < 0)
        return -1;
    take_content(p, f, &out);
    f->fuzzy |= fuzzy;
    return 0;
}

static int do_move(struct plan *p, const struct patch_section *s, struct err *e)
{
    struct plan_file *from = NULL;
    if (do_update(p, s, &from, e) < 0)
        return -1;
    struct plan_file *to = look(p, s->move_to, true, e);
    if (to == NULL)
        return -1;
    if (to == from)
        return 0;
    if (to->exists)
        return err_set(e, ERR_MOVE_DESTINATION_EXISTS,
                       "move %s to %s: the target exists; delete it first", from->path, to->path);
    take_content(p, to, &from->content);
    to->exists = true;
    to->moved = true;
    to->fuzzy = from->fuzzy;
    to->origin = from->origin != NULL ? from->origin : from;
    p->held -= from->loaded ? to->content.len : 0;
    from->loaded = false;
    from->exists = false;
    return 0;
}

static int do_section(struct plan *p, const struct patch_section *s, struct err *e)
{
    struct plan_file *f = NULL;
    switch (s->kind) {
    case PATCH_ADD:
        return do_add(p, s, e);
    case PATCH_DELETE:
        return do_delete(p, s, e);
    case PATCH_UPDATE:
        return do_update(p, s, &f, e);
    default:
        return do_move(p, s, e);
    }
}

/* No file may come out below another one that comes out as a file. */
static int check_ancestors(const struct plan *p, const struct plan_file *f, struct err *e)
{
    char dir[PATH_LEN_MAX];
    strcpy(dir, f->path);
    for (char *slash = strrchr(dir, '/'); slash != NULL; slash = strrchr(dir, '/')) {
        *slash = '\0';
        const struct plan_file *above = map_get(&p->by_path, dir);
        if (above != NULL && above->exists)
            return err_set(e, ERR_PATH_NOT_DIRECTORY,
                           "%s: %s is a file of this patch and cannot be a directory too", f->path,
                           dir);
    }
    return 0;
}

int plan_sections(struct plan *p, const struct patch_doc *doc, struct err *e)
{
    for (size_t i = 0; i < doc->n; i++) {
        if (do_section(p, &doc->sections[i], e) < 0)
            return -1;
    }
    for (size_t i = 0; i < p->n; i++) {
        if (p->files[i]->touched && p->files[i]->exists && check_ancestors(p, p->files[i], e) < 0)
            return -1;
    }
    return 0;
}
