/* sandbox/protect: see protect.h. */
#include "sandbox/protect.h"

#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Protect `target` (canonical), and fix every directory between it and the writable bind around
 * it. */
static void fence(struct layout *l, const char *target)
{
    const struct layout_item *root = layout_writable(l, target);
    if (root == NULL || (strcmp(root->path, target) == 0 && root->rank != LAYOUT_RANK_FENCE))
        return;
    size_t from = strlen(root->path);
    autofree char *step = mem_strdup(target);
    for (char *slash = strchr(step + from, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (strlen(step) > from)
            layout_add(l, LAYOUT_BIND_RW, LAYOUT_RANK_FENCE, step, NULL);
        *slash = '/';
    }
    layout_add(l, LAYOUT_BIND, LAYOUT_RANK_PROTECTED, target, NULL);
}

/* The first line of a small regular file, or NULL. */
static char *read_line(const char *path)
{
    char text[PATH_MAX + 16];
    autofd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return NULL;
    text[n] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    return mem_strdup(text);
}

/* `path` as git reads it from a file in `dir`; canonical, or NULL when it is not there. */
static char *resolve(const char *dir, const char *path)
{
    autofree char *full = path[0] == '/' ? mem_strdup(path) : mem_printf("%s/%s", dir, path);
    return realpath(full, NULL);
}

/* `.git` as a file points to the real directory (worktrees, submodules), and that may point to the
 * one it shares with others. */
static void fence_git_directory(const char *workspace, const char *pointer, struct layout *l)
{
    autofree char *line = read_line(pointer);
    if (line == NULL || !str_starts(line, "gitdir:"))
        return;
    const char *target = line + strlen("gitdir:");
    autofree char *git_dir = resolve(workspace, target + strspn(target, " \t"));
    if (git_dir == NULL)
        return;
    fence(l, git_dir);
    autofree char *common_file = mem_printf("%s/commondir", git_dir);
    autofree char *common = read_line(common_file);
    autofree char *common_dir = common == NULL ? NULL : resolve(git_dir, common);
    if (common_dir != NULL)
        fence(l, common_dir);
}

static void guard(struct plan *p, const char *name, const char *link)
{
    strv_add(&p->guards, name);
    strv_add(&p->guards, link);
}

static void protect_link(const char *name, const char *path, struct layout *l, struct plan *p)
{
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n <= 0)
        return;
    target[n] = '\0';
    guard(p, name, target);
    autofree char *real = realpath(path, NULL);
    if (real != NULL)
        fence(l, real);
}

static void protect_name(const struct view *v, const char *name, struct layout *l, struct plan *p)
{
    struct stat st;
    autofree char *path = mem_printf("%s/%s", v->workspace, name);
    if (lstat(path, &st) < 0) {
        guard(p, name, "");
    } else if (S_ISLNK(st.st_mode)) {
        protect_link(name, path, l, p);
    } else {
        layout_add(l, LAYOUT_BIND, LAYOUT_RANK_PROTECTED, path, NULL);
        if (S_ISREG(st.st_mode) && str_eq(name, ".git"))
            fence_git_directory(v->workspace, path, l);
    }
}

void protect_add(const struct view *v, struct layout *l, struct plan *p)
{
    if (!v->workspace_writable)
        return;
    for (size_t i = 0; i < v->protect.len; i++)
        protect_name(v, v->protect.items[i], l, p);
}
