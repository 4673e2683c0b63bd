/* sys/path: see path.h. The two ways to open, openat2 and the walk, give the same verdicts; the
 * table in the unit test runs through both.
 *
 * The walk holds one directory at a time as an O_PATH descriptor and opens the next component from
 * it with O_NOFOLLOW. Each step is atomic, so a directory that is swapped for a link meanwhile is
 * met as a link and refused.
 */
#include "sys/path.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* openat2 answers EAGAIN when a rename anywhere disturbed the look-up; each try is independent. */
#define TRIES_MAX 64

static atomic_bool walk_forced;

void path_force_walk(void)
{
    atomic_store(&walk_forced, true);
}

/* ---- the lexical rule ---- */

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

static size_t component_len(const char *s)
{
    size_t n = 0;
    while (s[n] != '\0' && !is_separator(s[n]))
        n++;
    return n;
}

/* The length of `out` without its last component. */
static size_t drop_last(const char *out, size_t len)
{
    while (len > 0 && out[len - 1] != '/')
        len--;
    return len > 0 ? len - 1 : 0;
}

int path_normalise(const char *path, char *out, size_t cap)
{
    size_t len = 0;
    size_t depth = 0;
    if (cap == 0)
        return -ENAMETOOLONG;
    if (path[0] == '\0')
        return -EINVAL;
    if (is_separator(path[0]))
        return -EXDEV;
    for (const char *s = path; *s != '\0';) {
        size_t n = component_len(s);
        if (n == 2 && memcmp(s, "..", 2) == 0) {
            if (depth == 0)
                return -EXDEV;
            depth--;
            len = drop_last(out, len);
        } else if (n > 0 && !(n == 1 && s[0] == '.')) {
            size_t slash = len > 0 ? 1 : 0;
            if (++depth > PATH_COMPONENTS_MAX || len + slash + n >= cap ||
                len + slash + n >= PATH_LEN_MAX)
                return -ENAMETOOLONG;
            if (slash)
                out[len++] = '/';
            memcpy(out + len, s, n);
            len += n;
        }
        s += n;
        while (is_separator(*s))
            s++;
    }
    out[len] = '\0';
    return 0;
}

/* ---- opening ---- */

/* O_PATH takes only these beside it; openat2 refuses others instead of ignoring them. O_NOFOLLOW is
 * left to the walk: to openat2 it would turn ELOOP into ENOTDIR for O_DIRECTORY, and let O_PATH
 * open the link itself. */
static int open_flags(int flags)
{
    if (flags & O_PATH)
        return (flags & (O_PATH | O_DIRECTORY)) | O_CLOEXEC;
    return flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
}

static int open_by_kernel(int root_fd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)flags,
        .mode = flags & (O_CREAT | O_TMPFILE) & ~O_DIRECTORY ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = -1;
    for (int i = 0; i < TRIES_MAX; i++) {
        fd = syscall(SYS_openat2, root_fd, *path ? path : ".", &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return fd >= 0 ? (int)fd : -errno;
}

/* Tell a symbolic link from what else gives ENOTDIR. */
static int not_a_directory(int dir_fd, const char *name)
{
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
        return -ELOOP;
    return -ENOTDIR;
}

/* Open one component; -ELOOP for a link whatever the flags are. */
static int open_component(int dir_fd, const char *name, int flags, mode_t mode)
{
    int fd = -1;
    do {
        fd = openat(dir_fd, name, flags | O_NOFOLLOW, mode);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno == ENOTDIR ? not_a_directory(dir_fd, name) : -errno;
    struct stat st;
    if ((flags & O_PATH) && (fstat(fd, &st) < 0 || S_ISLNK(st.st_mode))) {
        close(fd);
        return -ELOOP;
    }
    return fd;
}

static int open_step(int dir_fd, const char *name)
{
    return open_component(dir_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

/* Copy the next component of *s to `name` and move *s behind it. 0 at the end, or its length. */
static int next_component(const char **s, char name[PATH_LEN_MAX])
{
    while (**s == '/')
        (*s)++;
    size_t n = strcspn(*s, "/");
    if (n >= PATH_LEN_MAX)
        return -ENAMETOOLONG;
    memcpy(name, *s, n);
    name[n] = '\0';
    *s += n;
    if (strcmp(name, "..") == 0)
        return -EXDEV;
    return (int)n;
}

static int open_by_walk(int root_fd, const char *path, int flags, mode_t mode)
{
    if (path[0] == '/')
        return -EXDEV;
    if (path[0] == '\0')
        return open_component(root_fd, ".", flags, mode);
    autofd int dir = -1;
    char name[PATH_LEN_MAX];
    for (const char *s = path;;) {
        int n = next_component(&s, name);
        if (n < 0)
            return n;
        int from = dir >= 0 ? dir : root_fd;
        if (*s == '\0')
            return open_component(from, name, flags, mode);
        int next = open_step(from, name);
        if (next < 0)
            return next;
        if (dir >= 0)
            close(dir);
        dir = next;
    }
}

int path_open_beneath(int root_fd, const char *path, int flags, mode_t mode)
{
    flags = open_flags(flags);
    if (!atomic_load_explicit(&walk_forced, memory_order_relaxed)) {
        int fd = open_by_kernel(root_fd, path, flags, mode);
        /* EPERM may be a filter's or the file's; the walk tells them apart by its own answer. */
        if (fd >= 0 || (fd != -ENOSYS && fd != -EPERM))
            return fd;
    }
    return open_by_walk(root_fd, path, flags, mode);
}

int path_open_regular(int root_fd, const char *path, struct stat *ret_st)
{
    autofd int fd = path_open_beneath(root_fd, path, O_RDONLY, 0);
    if (fd < 0)
        return fd;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode))
        return -ENXIO;
    *ret_st = st;
    return steal_fd(&fd);
}

/* ---- parents ---- */

static const char *leaf_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

int path_open_parent(int root_fd, const char *path, const char **ret_leaf)
{
    char dir[PATH_LEN_MAX];
    const char *leaf = leaf_of(path);
    size_t len = leaf > path ? (size_t)(leaf - path - 1) : 0;
    if (*leaf == '\0')
        return -EINVAL;
    if (len >= sizeof(dir))
        return -ENAMETOOLONG;
    memcpy(dir, path, len);
    dir[len] = '\0';
    int fd = path_open_beneath(root_fd, dir, O_PATH | O_DIRECTORY, 0);
    if (fd >= 0)
        *ret_leaf = leaf;
    return fd;
}

/* Open `name`, making it when it is missing; *ret_made says whether we did. */
static int make_step(int dir_fd, const char *name, mode_t mode, bool *ret_made)
{
    *ret_made = false;
    int fd = open_step(dir_fd, name);
    if (fd != -ENOENT)
        return fd;
    if (mkdirat(dir_fd, name, mode) == 0)
        *ret_made = true;
    else if (errno != EEXIST)
        return -errno;
    return open_step(dir_fd, name);
}

int path_make_directory(int root_fd, const char *path, mode_t mode, size_t *ret_existing)
{
    *ret_existing = strlen(path);
    autofd int dir = path_open_beneath(root_fd, "", O_PATH | O_DIRECTORY, 0);
    char name[PATH_LEN_MAX];
    for (const char *s = path; dir >= 0 && *s != '\0';) {
        size_t before = (size_t)(s - path);
        int n = next_component(&s, name);
        if (n < 0)
            return n;
        bool made = false;
        int next = make_step(dir, name, mode, &made);
        if (made && before < *ret_existing)
            *ret_existing = before;
        if (next < 0)
            return next;
        close(dir);
        dir = next;
    }
    return steal_fd(&dir);
}
