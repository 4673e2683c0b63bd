/* sys/guarded: see guarded.h. */
#include "sys/guarded.h"

#include "base/mem.h"
#include "sys/path.h"
#include "sys/rmtree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `dir` as path_open_parent() gave it. */
static bool is_right_at(int dir, const char *leaf, const char *link)
{
    char target[PATH_MAX];
    bool planned = link[0] != '\0';
    if (dir < 0)
        return dir != -ELOOP && !planned;
    ssize_t n = readlinkat(dir, leaf, target, sizeof(target) - 1);
    if (n < 0)
        return errno == ENOENT && !planned;
    target[n] = '\0';
    return planned && strcmp(target, link) == 0;
}

/* *ret_dir is the directory that holds the path (-1 = there is none, or a link is on the way);
 * *ret_leaf points into `path`. */
static bool look(int root_fd, const char *path, const char *link, int *ret_dir,
                 const char **ret_leaf)
{
    *ret_leaf = path;
    *ret_dir = path_open_parent(root_fd, path, ret_leaf);
    return is_right_at(*ret_dir, *ret_leaf, link);
}

static bool is_sibling(const char *a, const char *b)
{
    size_t n = (size_t)(strrchr(a, '/') - a);
    return (size_t)(strrchr(b, '/') - b) == n && memcmp(a, b, n) == 0;
}

size_t guarded_find_wrong(int root_fd, const struct strv *pairs, size_t from)
{
    autofd int dir = -1;
    size_t i = from;
    for (; i < pairs->len / 2; i++) {
        const char *path = pairs->items[2 * i];
        const char *leaf = strrchr(path, '/') + 1;
        if (dir < 0 || !is_sibling(path, pairs->items[2 * (i - 1)])) {
            mem_cleanup_fd(&dir);
            dir = path_open_parent(root_fd, path + 1, &leaf);
        }
        if (!is_right_at(dir, leaf, pairs->items[2 * i + 1]))
            break;
    }
    return i;
}

/* The first component of `path` that is a link: the directory that holds it, or -1. */
static int find_link(int root_fd, const char *path, char ret_name[NAME_MAX + 1])
{
    autofree char *prefix = mem_strdup(path);
    for (char *slash = strchr(prefix, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        const char *leaf;
        struct stat st;
        *slash = '\0';
        autofd int dir = path_open_parent(root_fd, prefix, &leaf);
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

/* It counts when something is behind it. */
static int take_link_away(int root_fd, const char *path, bool *ret_touched)
{
    char name[NAME_MAX + 1];
    struct stat st;
    if (fstatat(root_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    autofd int dir = find_link(root_fd, path, name);
    *ret_touched = true;
    return dir < 0 || unlinkat(dir, name, 0) == 0 ? 0 : -errno;
}

static int replace(int dir, const char *leaf, const char *link, unsigned passes)
{
    int rc = rmtree(dir, leaf, passes);
    if (rc == 0 && link[0] != '\0' && symlinkat(link, dir, leaf) < 0)
        rc = -errno;
    return rc;
}

/* A command may have taken our permission to change its own directory. */
static int replace_anyway(int dir, const char *leaf, const char *link, unsigned passes)
{
    struct stat st;
    int rc = replace(dir, leaf, link, passes);
    if ((rc != -EACCES && rc != -EPERM) || fstat(dir, &st) < 0)
        return rc;
    autofree char *path = mem_printf("/proc/self/fd/%d", dir);
    if (chmod(path, (st.st_mode & 07777) | S_IRWXU) < 0)
        return rc;
    rc = replace(dir, leaf, link, passes);
    chmod(path, st.st_mode & 07777);
    return rc;
}

int guarded_put_right(int root_fd, const char *path, const char *link, unsigned passes, bool force,
                      bool *ret_touched)
{
    const char *leaf;
    autofd int dir = -1;
    if (look(root_fd, path, link, &dir, &leaf))
        return 0;
    if (dir < 0)
        return take_link_away(root_fd, path, ret_touched);
    *ret_touched = true;
    return force ? replace_anyway(dir, leaf, link, passes) : replace(dir, leaf, link, passes);
}
