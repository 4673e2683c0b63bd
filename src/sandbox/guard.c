/* sandbox/guard: see guard.h. */
#include "sandbox/guard.h"

#include "base/mem.h"
#include "sys/path.h"
#include "sys/rmtree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* Passes over a tree that is being removed: while the command lives it may refill it for ever, so
 * we soon turn to other events; at the end only its depth counts. */
#define PASSES_LIVE 64
#define PASSES_END 1000000

static const char *path_of(const struct guard *g, size_t i)
{
    return g->paths->items[2 * i];
}

static const char *link_of(const struct guard *g, size_t i)
{
    return g->paths->items[2 * i + 1];
}

static size_t count(const struct guard *g)
{
    return g->paths->len / 2;
}

/* Whether pair i is as it was planned: absent, or that very link. *ret_dir is the directory that
 * holds it (-1 = there is none), or that holds a link in the place of one of its directories;
 * *ret_name what stands there. */
static bool is_right(const struct guard *g, size_t i, int *ret_dir, char *ret_name)
{
    char target[PATH_MAX];
    const char *leaf;
    bool planned = link_of(g, i)[0] != '\0';
    int dir = path_open_parent(g->root_fd, path_of(g, i) + 1, &leaf);
    *ret_dir = dir;
    if (dir < 0)
        return dir != -ELOOP && !planned;
    snprintf(ret_name, NAME_MAX + 1, "%s", leaf);
    ssize_t n = readlinkat(dir, leaf, target, sizeof(target) - 1);
    if (n < 0)
        return errno == ENOENT && !planned;
    target[n] = '\0';
    return planned && strcmp(target, link_of(g, i)) == 0;
}

/* The first component of `path` that is a link: the directory that holds it, or -1. */
static int find_link(const struct guard *g, const char *path, char *ret_name)
{
    autofree char *prefix = mem_strdup(path + 1);
    for (char *slash = strchr(prefix, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        const char *leaf;
        struct stat st;
        *slash = '\0';
        autofd int dir = path_open_parent(g->root_fd, prefix, &leaf);
        if (dir < 0)
            return -1;
        if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)) {
            snprintf(ret_name, NAME_MAX + 1, "%s", leaf);
            return steal_fd(&dir);
        }
        *slash = '/';
    }
    return -1;
}

int guard_init(struct guard *g, const struct strv *paths, struct err *e)
{
    *g = (struct guard){.paths = paths, .root_fd = -1, .watch_fd = -1};
    if (paths->len == 0)
        return 0;
    g->touched = mem_zalloc(count(g), sizeof(*g->touched));
    g->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < count(g); i++) {
        char name[NAME_MAX + 1];
        autofd int dir = -1;
        if (!is_right(g, i, &dir, name))
            return err_set(e, ERR_PATH_PROTECTED,
                           "%s changed after the plan was made; prepare it again", path_of(g, i));
    }
    return 0;
}

/* Watch the deepest directory on the way that is there. The same one twice is one watch. */
static void watch_path(struct guard *g, const char *path)
{
    autofree char *dir = mem_strdup(path);
    for (char *slash = strrchr(dir, '/'); slash != NULL && slash != dir;
         slash = strrchr(dir, '/')) {
        *slash = '\0';
        if (inotify_add_watch(g->watch_fd, dir,
                              IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR |
                                  IN_DONT_FOLLOW) >= 0)
            return;
    }
}

void guard_watch(struct guard *g)
{
    if (g->paths->len == 0)
        return;
    g->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    guard_on_event(g);
}

void guard_fini(struct guard *g)
{
    mem_cleanup_fd(&g->root_fd);
    mem_cleanup_fd(&g->watch_fd);
    g->root_fd = g->watch_fd = -1;
    free(steal(g->touched));
}

static int put_right(const struct guard *g, size_t i, int dir, const char *name, unsigned passes)
{
    int rc = rmtree(dir, name, passes);
    if (rc == 0 && link_of(g, i)[0] != '\0' && symlinkat(link_of(g, i), dir, name) < 0)
        rc = -errno;
    return rc;
}

/* The command has made a link of a directory on the way. It counts when something is behind it. */
static int take_link_away(struct guard *g, size_t i)
{
    char name[NAME_MAX + 1];
    struct stat st;
    if (lstat(path_of(g, i), &st) < 0)
        return 0;
    autofd int dir = find_link(g, path_of(g, i), name);
    g->touched[i] = true;
    return dir < 0 || unlinkat(dir, name, 0) == 0 ? 0 : -errno;
}

/* A command may have taken our permission to change its own directory. */
static int put_right_anyway(const struct guard *g, size_t i, int dir, const char *name)
{
    struct stat st;
    int rc = put_right(g, i, dir, name, PASSES_END);
    if ((rc != -EACCES && rc != -EPERM) || fstat(dir, &st) < 0)
        return rc;
    autofree char *path = mem_printf("/proc/self/fd/%d", dir);
    if (chmod(path, (st.st_mode & 07777) | S_IRWXU) < 0)
        return rc;
    rc = put_right(g, i, dir, name, PASSES_END);
    chmod(path, st.st_mode & 07777);
    return rc;
}

static int check(struct guard *g, size_t i, bool end)
{
    char name[NAME_MAX + 1];
    int dir = -1;
    bool right = is_right(g, i, &dir, name);
    int rc = 0;
    if (!right && dir < 0) {
        rc = take_link_away(g, i);
    } else if (!right) {
        g->touched[i] = true;
        rc = end ? put_right_anyway(g, i, dir, name) : put_right(g, i, dir, name, PASSES_LIVE);
    }
    if (dir >= 0)
        close(dir);
    return rc;
}

void guard_on_event(struct guard *g)
{
    char events[4096];
    while (read(g->watch_fd, events, sizeof(events)) > 0)
        continue;
    for (size_t i = 0; i < count(g); i++) {
        watch_path(g, path_of(g, i));
        check(g, i, false);
    }
}

int guard_sweep(struct guard *g, struct err *e)
{
    for (size_t i = 0; i < count(g); i++) {
        int rc = check(g, i, true);
        if (rc < 0)
            return err_sys(e, ERR_FILE_OPERATION_FAILED, rc,
                           "%s was created by the command and could not be taken away",
                           path_of(g, i));
    }
    return 0;
}
