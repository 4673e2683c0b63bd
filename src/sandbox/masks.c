/* sandbox/masks: see masks.h. */
#include "sandbox/masks.h"

#include "base/mem.h"
#include "sys/fd.h"
#include "sys/guarded.h"
#include "sys/path.h"
#include "wire/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* <sys/mount.h> and <linux/mount.h> do not go together in glibc 2.36, and it lacks wrappers. */
static int open_tree(int fd, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, fd, path, flags);
}

static int move_mount(int from, int to)
{
    return (int)syscall(SYS_move_mount, from, "", to, "",
                        MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

static int set_attributes(int fd, uint64_t set)
{
    struct mount_attr attr = {.attr_set = set};
    return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof(attr));
}

/* umount2(): MNT_DETACH */
#define DETACH 2

/* See open_context(): root needs no namespace of its own, unless it is shown as somebody else. */
#define WORTH_ROOT 2
#define WORTH_USER 8

size_t masks_worth(bool namespaces)
{
    return geteuid() == 0 && !namespaces ? WORTH_ROOT : WORTH_USER;
}

bool masks_possible(void)
{
    /* A size of nothing is refused before anything is looked at. */
    if (syscall(SYS_mount_setattr, -1, "", 0, NULL, 0) == -1 && errno != EINVAL)
        return false;
    if (open_tree(-1, "", ~0u) != -1 || errno != EINVAL)
        return false;
    /* These look at the capability first, which we have only inside. */
    static const long others[] = {SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_move_mount};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (syscall(others[i], -1, NULL, -1, NULL, -1) == -1 && errno == ENOSYS)
            return false;
    }
    return true;
}

/* The file system of their own that the two things are of which are laid over what hides: copies of
 * its "file" and its "dir". Before Linux 6.15 only of what is attached in our mount namespace
 * copies can be made, so it is attached first: on "/", where no look-up comes by, until a place is
 * found for it that is covered anyway. To take a mount away costs the kernel's grace period, about
 * 0.1 ms. */
struct blanks {
    int base;
    bool put_away;
};

static const char *entry_of(char kind)
{
    return kind == PLAN_MASK_FILE ? "file" : kind == PLAN_MASK_DIR ? "dir" : NULL;
}

static int make_entries(int root)
{
    autofd int file = openat(root, "file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (file < 0 || fchmod(file, 0444) < 0 || mkdirat(root, "dir", 0555) < 0 ||
        fchmodat(root, "dir", 0555, 0) < 0)
        return -errno;
    return 0;
}

/* A context for a small tmpfs. EPERM: the mount namespace is not of our user namespace yet, and a
 * new one will be (it costs about a millisecond). */
static int open_context(void)
{
    int fd = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
    if (fd < 0 && errno == EPERM && unshare(CLONE_NEWNS) == 0)
        fd = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
    return fd;
}

static int make_base(int *ret)
{
    autofd int context = open_context();
    if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "size", "64k", 0) < 0 ||
        syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    *ret = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
                        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (*ret < 0)
        return -errno;
    int rc = make_entries(*ret);
    return rc == 0 && set_attributes(*ret, MOUNT_ATTR_RDONLY) < 0 ? -errno : rc;
}

/* *ret_root: "/" of the mount namespace that we have from now on. */
static int make_blanks(struct blanks *b, int *ret_root)
{
    int rc = make_base(&b->base);
    if (rc < 0)
        return rc;
    *ret_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_root < 0 || move_mount(b->base, *ret_root) < 0 ? -errno : 0;
}

/* A mount can be taken away by path only, and it has none but as somebody's working directory. */
static int take_away(int base)
{
    autofd int cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (cwd < 0 || fchdir(base) < 0)
        return -errno;
    int rc = syscall(SYS_umount2, ".", DETACH) < 0 ? -errno : 0;
    return fchdir(cwd) < 0 ? -errno : rc;
}

/* What is to be laid at `place`, as a detached mount. */
static int make_cover(char kind, const struct blanks *b, int place)
{
    const char *entry = entry_of(kind);
    if (entry != NULL)
        return open_tree(b->base, entry, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    return open_tree(place, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
}

/* Where it is covered at once. A place that does not take it (a file) leaves it for the next. */
static void put_away(struct blanks *b, int place)
{
    if (!b->put_away)
        b->put_away = move_mount(b->base, place) == 0;
}

static int lay(char kind, struct blanks *b, int root_fd, const char *path)
{
    autofd int place = path_open_beneath(root_fd, path + 1, O_PATH, 0);
    if (place == -EACCES && guarded_is_out_of_reach(root_fd, path + 1))
        return 0; /* planned by a root who may read everything, which nobody inside may */
    if (place < 0)
        return place;
    autofd int cover = make_cover(kind, b, place);
    if (cover < 0 || (kind == PLAN_MASK_READ && set_attributes(cover, MOUNT_ATTR_RDONLY) < 0))
        return -errno;
    put_away(b, place);
    return move_mount(cover, place) < 0 ? -errno : 0;
}

static int lay_all(const struct strv *masks, struct blanks *b, int root_fd, struct err *e)
{
    for (size_t i = 0; i < masks->len; i++) {
        const char *path = masks->items[i] + 1;
        int rc = lay(masks->items[i][0], b, root_fd, path);
        if (rc < 0)
            return err_sys(e, ERR_PATH_PROTECTED, rc, "%.300s", path);
    }
    return 0;
}

int masks_lay(const struct strv *masks, struct err *e)
{
    struct blanks b = {.base = -1};
    autofd int root_fd = -1;
    if (masks->len == 0)
        return 0;
    int rc = make_blanks(&b, &root_fd);
    autofd int base = b.base;
    if (rc < 0)
        return err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc, "the masks of the view cannot be made");
    if (lay_all(masks, &b, root_fd, e) < 0)
        return -1;
    rc = b.put_away ? 0 : take_away(base);
    return rc < 0 ? err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc, "the masks' own file system") : 0;
}
