/* sandbox/masks: see masks.h. */
#include "sandbox/masks.h"

#include "base/mem.h"
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

/* See open_context(): root needs no namespace of its own. */
#define WORTH_ROOT 2
#define WORTH_USER 8

size_t masks_worth(void)
{
    return geteuid() == 0 ? WORTH_ROOT : WORTH_USER;
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

/* The two things that are laid over what hides, in a file system of their own. */
struct blanks {
    int file;
    int dir;
};

static void blanks_fini(struct blanks *b)
{
    mem_cleanup_fd(&b->file);
    mem_cleanup_fd(&b->dir);
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

static int make_blanks(struct blanks *ret)
{
    autofd int context = open_context();
    if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "size", "64k", 0) < 0 ||
        syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    autofd int mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
                                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (mount < 0)
        return -errno;
    int rc = make_entries(mount);
    if (rc < 0)
        return rc;
    if (set_attributes(mount, MOUNT_ATTR_RDONLY) < 0)
        return -errno;
    ret->file = open_tree(mount, "file", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    ret->dir = open_tree(mount, "dir", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    return ret->file < 0 || ret->dir < 0 ? -errno : 0;
}

/* What is to be laid at `place`, as a detached mount. */
static int make_cover(char kind, const struct blanks *b, int place)
{
    const unsigned clone = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH;
    if (kind == PLAN_MASK_FILE)
        return open_tree(b->file, "", clone);
    if (kind == PLAN_MASK_DIR)
        return open_tree(b->dir, "", clone);
    return open_tree(place, "", clone | AT_RECURSIVE);
}

static int lay(char kind, const struct blanks *b, int root_fd, const char *path)
{
    autofd int place = path_open_beneath(root_fd, path + 1, O_PATH, 0);
    if (place < 0)
        return place;
    autofd int cover = make_cover(kind, b, place);
    if (cover < 0 || (kind == PLAN_MASK_READ && set_attributes(cover, MOUNT_ATTR_RDONLY) < 0) ||
        move_mount(cover, place) < 0)
        return -errno;
    return 0;
}

int masks_lay(const struct strv *masks, struct err *e)
{
    __attribute__((cleanup(blanks_fini))) struct blanks b = {-1, -1};
    if (masks->len == 0)
        return 0;
    int rc = make_blanks(&b);
    if (rc < 0)
        return err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc, "the masks of the view cannot be made");
    autofd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < masks->len; i++) {
        const char *path = masks->items[i] + 1;
        rc = lay(masks->items[i][0], &b, root_fd, path);
        if (rc < 0)
            return err_sys(e, ERR_PATH_PROTECTED, rc, "%.300s", path);
    }
    return 0;
}
