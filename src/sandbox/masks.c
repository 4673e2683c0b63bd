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

/* The two things that are laid over what hides, and the file system of their own that both are of.
 * To close a mount that is attached nowhere costs the kernel's grace period, about 0.1 ms; so each
 * of the three finds a place: the two at their last use, the third below the first directory that
 * is covered anyway. */
struct blanks {
    int base;
    int file;
    int dir;
    size_t files_left; /* masks still to be laid */
    size_t dirs_left;
};

static void blanks_fini(struct blanks *b)
{
    mem_cleanup_fd(&b->base);
    mem_cleanup_fd(&b->file);
    mem_cleanup_fd(&b->dir);
}

static size_t count_kind(const struct strv *masks, char kind)
{
    size_t n = 0;
    for (size_t i = 0; i < masks->len; i++)
        n += masks->items[i][0] == kind;
    return n;
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
    ret->base = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
                             MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (ret->base < 0)
        return -errno;
    int rc = make_entries(ret->base);
    if (rc < 0)
        return rc;
    if (set_attributes(ret->base, MOUNT_ATTR_RDONLY) < 0)
        return -errno;
    if (ret->files_left > 0)
        ret->file = open_tree(ret->base, "file", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (ret->dirs_left > 0)
        ret->dir = open_tree(ret->base, "dir", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    return (ret->files_left > 0 && ret->file < 0) || (ret->dirs_left > 0 && ret->dir < 0) ? -errno
                                                                                          : 0;
}

/* A copy of the blank, or the blank itself when it is the last one. */
static int take_blank(int *blank, size_t *left)
{
    if (--*left == 0)
        return steal_fd(blank);
    return open_tree(*blank, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
}

/* What is to be laid at `place`, as a detached mount. */
static int make_cover(char kind, struct blanks *b, int place)
{
    if (kind == PLAN_MASK_FILE)
        return take_blank(&b->file, &b->files_left);
    if (kind == PLAN_MASK_DIR)
        return take_blank(&b->dir, &b->dirs_left);
    return open_tree(place, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
}

/* Where it is covered at once. A place that does not take it (a file) leaves it for the next. */
static void put_away(int *base, int place)
{
    if (*base >= 0 && move_mount(*base, place) == 0)
        fd_close(base);
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
    put_away(&b->base, place);
    return move_mount(cover, place) < 0 ? -errno : 0;
}

int masks_lay(const struct strv *masks, struct err *e)
{
    __attribute__((cleanup(blanks_fini))) struct blanks b = {
        .base = -1,
        .file = -1,
        .dir = -1,
        .files_left = count_kind(masks, PLAN_MASK_FILE),
        .dirs_left = count_kind(masks, PLAN_MASK_DIR),
    };
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
