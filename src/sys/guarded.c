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

/* `dir` as path_open_parent() gave it. Only what says that nothing is there counts as absent: a
 * directory that was closed to us, or no descriptor left, says nothing. */
static bool is_right_at(int dir, const char *leaf, const char *link)
{
    char target[PATH_MAX];
    bool planned = link[0] != '\0';
    if (dir < 0)
        return (dir == -ENOENT || dir == -ENOTDIR) && !planned;
    ssize_t n = readlinkat(dir, leaf, target, sizeof(target) - 1);
    if (n < 0)
        return errno == ENOENT && !planned;
    target[n] = '\0';
    return planned && strcmp(target, link) == 0;
}

/* *ret_dir is the directory that holds the path, or -errno of path_open_parent(); *ret_leaf points
 * into `path`. */
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

static bool is_there(int dir, const char *leaf)
{
    struct stat st;
    return fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int put_right(int root_fd, const char *path, const char *link, unsigned passes, bool force,
                     bool *ret_touched)
{
    const char *leaf;
    autofd int dir = -1;
    if (look(root_fd, path, link, &dir, &leaf))
        return 0;
    if (dir == -ELOOP || dir == -ENOENT || dir == -ENOTDIR)
        return take_link_away(root_fd, path, ret_touched);
    if (dir < 0)
        return dir;
    if (!is_there(dir, leaf) && errno == EACCES)
        return -EACCES;
    *ret_touched = true;
    return force ? replace_anyway(dir, leaf, link, passes) : replace(dir, leaf, link, passes);
}

/* ---- directories on the way that were closed ---- */

struct opened {
    size_t len; /* of the directory's path */
    mode_t mode;
};

static int set_mode(int root_fd, const char *dir, mode_t mode, mode_t *ret_before)
{
    struct stat st;
    autofd int fd = path_open_beneath(root_fd, dir, O_PATH | O_DIRECTORY, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    *ret_before = st.st_mode & 07777;
    autofree char *self = mem_printf("/proc/self/fd/%d", fd);
    return *ret_before == mode ? 0 : chmod(self, mode);
}

/* What does not let us in and is not ours did not let the command in either. */
static bool open_one(int root_fd, const char *dir, struct opened *ret)
{
    struct stat st;
    autofd int fd = path_open_beneath(root_fd, dir, O_PATH | O_DIRECTORY, 0);
    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_mode & S_IXUSR) != 0)
        return false;
    ret->len = strlen(dir);
    return set_mode(root_fd, dir, (st.st_mode & 07777) | S_IRWXU, &ret->mode) == 0;
}

static size_t open_way(int root_fd, const char *path, struct opened *ret)
{
    size_t n = open_one(root_fd, "", ret);
    autofree char *dir = mem_strdup(path);
    for (char *slash = strchr(dir, '/'); slash != NULL && n < PATH_COMPONENTS_MAX;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        n += open_one(root_fd, dir, &ret[n]);
        *slash = '/';
    }
    return n;
}

static void close_way(int root_fd, const char *path, const struct opened *way, size_t n)
{
    while (n-- > 0) {
        mode_t before;
        autofree char *dir = mem_dup(path, way[n].len);
        (void)set_mode(root_fd, dir, way[n].mode, &before);
    }
}

int guarded_put_right(int root_fd, const char *path, const char *link, unsigned passes, bool force,
                      bool *ret_touched)
{
    int rc = put_right(root_fd, path, link, passes, force, ret_touched);
    if (rc != -EACCES || !force)
        return rc == -EACCES && !*ret_touched ? 0 : rc;
    autofree struct opened *way = mem_zalloc(PATH_COMPONENTS_MAX, sizeof(*way));
    size_t n = open_way(root_fd, path, way);
    rc = put_right(root_fd, path, link, passes, force, ret_touched);
    close_way(root_fd, path, way, n);
    return rc == -EACCES && !*ret_touched ? 0 : rc;
}

bool guarded_is_closed(int root_fd, const char *path)
{
    const char *leaf;
    struct stat st;
    autofd int dir = path_open_parent(root_fd, path, &leaf);
    if (dir < 0)
        return dir == -EACCES;
    return fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == EACCES;
}

bool guarded_is_out_of_reach(int root_fd, const char *path)
{
    struct stat around = {.st_uid = geteuid()};
    autofree char *prefix = mem_strdup(path);
    for (char *slash = prefix; slash != NULL;) {
        slash = strchr(slash + 1, '/');
        if (slash != NULL)
            *slash = '\0';
        autofd int fd = path_open_beneath(root_fd, prefix, O_PATH, 0);
        if (fd < 0 || fstat(fd, &around) < 0)
            return fd == -EACCES && around.st_uid != geteuid();
        if (slash != NULL)
            *slash = '/';
    }
    return false;
}
