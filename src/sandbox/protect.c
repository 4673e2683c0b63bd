/* sandbox/protect: see protect.h. */
#include "sandbox/protect.h"

#include "base/mem.h"
#include "base/str.h"
#include "sandbox/gitdir.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* False when it is there already. */
static bool guard(struct plan *p, const char *path, const char *link)
{
    for (size_t i = 0; i < p->guards.len; i += 2) {
        if (str_eq(p->guards.items[i], path))
            return false;
    }
    strv_add(&p->guards, path);
    strv_add(&p->guards, link);
    return true;
}

/* The text of the link at `path`, as an absolute path that is not resolved; NULL when it is none.
 */
static char *link_text(const char *path, char target[PATH_MAX])
{
    ssize_t n = readlink(path, target, PATH_MAX - 1);
    if (n <= 0)
        return NULL;
    target[n] = '\0';
    return target[0] == '/' ? mem_strdup(target)
                            : mem_printf("%.*s/%s", (int)(strrchr(path, '/') - path), path, target);
}

static void guard_way(const char *text, struct layout *l, struct plan *p);

/* A link on the way to what is protected stays as it is; what it leads to is on the way as well. */
static void guard_link(const char *path, struct layout *l, struct plan *p)
{
    char target[PATH_MAX];
    autofree char *text = link_text(path, target);
    if (text == NULL || layout_writable(l, path) == NULL || !guard(p, path, target))
        return;
    layout_fence(l, path);
    guard_way(text, l, p);
}

/* Every link among the directories of `text`: somebody could let it lead elsewhere. */
static void guard_way(const char *text, struct layout *l, struct plan *p)
{
    autofree char *prefix = mem_strdup(text);
    for (char *slash = strchr(prefix + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        struct stat st;
        *slash = '\0';
        autofree char *place = protect_place(prefix);
        if (place != NULL && lstat(place, &st) == 0 && S_ISLNK(st.st_mode))
            guard_link(place, l, p);
        *slash = '/';
    }
}

char *protect_place(const char *text)
{
    autofree char *full = mem_strdup(text);
    char *leaf = strrchr(full, '/');
    *leaf++ = '\0';
    autofree char *dir = realpath(full[0] == '\0' ? "/" : full, NULL);
    if (dir == NULL || leaf[0] == '\0' || str_eq(leaf, ".") || str_eq(leaf, ".."))
        return NULL;
    return mem_printf("%s/%s", str_eq(dir, "/") ? "" : dir, leaf);
}

char *protect_link(const char *path, struct layout *l, struct plan *p)
{
    char target[PATH_MAX];
    autofree char *text = link_text(path, target);
    if (text == NULL || !guard(p, path, target))
        return NULL;
    layout_fence(l, path);
    guard_way(text, l, p);
    autofree char *place = protect_place(text);
    /* A link that nobody inside can change leads where it leads. */
    if (place != NULL && layout_writable(l, place) != NULL)
        return steal(place);
    return realpath(text, NULL);
}

void protect_path(const char *path, struct layout *l, struct plan *p)
{
    struct stat st;
    if (layout_writable(l, path) == NULL)
        return;
    layout_fence(l, path);
    if (lstat(path, &st) < 0)
        guard(p, path, "");
    else if (S_ISLNK(st.st_mode)) {
        autofree char *next = protect_link(path, l, p);
        if (next != NULL)
            protect_path(next, l, p);
    } else
        layout_add(l, LAYOUT_BIND, LAYOUT_RANK_PROTECTED, path, NULL);
}

static void protect_in(const struct view *v, const char *dir, const char *name, struct layout *l,
                       struct plan *p)
{
    autofree char *path = mem_printf("%s/%s", dir, name);
    if (str_eq(strrchr(path, '/') + 1, ".git"))
        gitdir_protect(v, path, l, p);
    else
        protect_path(path, l, p);
}

static void protect_mounts(const struct view *v, struct layout *l, struct plan *p)
{
    struct stat st;
    for (size_t i = 0; i < v->n_mounts; i++) {
        const struct view_mount *m = &v->mounts[i];
        if (!m->writable || !m->protect || lstat(m->path, &st) < 0 || !S_ISDIR(st.st_mode))
            continue;
        for (size_t j = 0; view_protected[j] != NULL; j++)
            protect_in(v, m->path, view_protected[j], l, p);
    }
}

void protect_add(const struct view *v, struct layout *l, struct plan *p)
{
    protect_mounts(v, l, p);
    if (!v->workspace_writable)
        return;
    for (size_t i = 0; i < v->protect.len; i++)
        protect_in(v, v->workspace, v->protect.items[i], l, p);
    if (strv_has(&v->protect, ".git"))
        gitdir_protect_nested(v, l, p);
}
