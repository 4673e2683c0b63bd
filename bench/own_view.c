/* bench/own_view: the least that a view of its own costs when nobody but us builds it.
 *
 *   own-view WORKSPACE
 *
 * All the namespaces that a sandboxed command gets, a root of its own with the platform read-only,
 * a fresh /proc and /tmp and the workspace writable, by the kernel's mount calls, then /bin/true.
 * It is a floor for measurements: no masks, no protected names, no filter, no report. Must not: be
 * used as a sandbox.
 */
#include "sample.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* <sys/mount.h> and <linux/mount.h> do not go together in glibc 2.36. */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
          const void *data);
int umount2(const char *target, int flags);
#define DETACH 2
#define REC_SLAVE (1ul << 14 | 1ul << 19)
#define NOSUID_NODEV 6ul

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        die("%s: %m", path);
    close(fd);
}

/* Every directory of the path, and the path. */
static void make(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    mkdir(path, 0755);
}

static void show(const char *path, int writable)
{
    char target[4096];
    struct mount_attr attr = {.attr_set = writable ? 0 : MOUNT_ATTR_RDONLY};
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, path,
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0)
        return; /* not every machine has every directory */
    syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr));
    snprintf(target, sizeof(target), "/tmp%s", path);
    make(target);
    if (syscall(SYS_move_mount, tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        die("%s: %m", target);
    close(tree);
}

static void build(const char *workspace)
{
    static const char *const platform[] = {"/usr", "/etc", "/opt"};
    static const char *const links[] = {"bin", "sbin", "lib", "lib64"};
    char from[32], to[32];
    if (mount(NULL, "/", NULL, REC_SLAVE, NULL) < 0)
        die("/: %m");
    /* Opened before something lies over it. */
    int place = (int)syscall(SYS_open_tree, AT_FDCWD, workspace,
                             OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (mount("own", "/tmp", "tmpfs", NOSUID_NODEV, NULL) < 0)
        die("tmpfs: %m");
    for (size_t i = 0; i < sizeof(platform) / sizeof(platform[0]); i++)
        show(platform[i], 0);
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        snprintf(from, sizeof(from), "usr/%s", links[i]);
        snprintf(to, sizeof(to), "/tmp/%s", links[i]);
        if (symlink(from, to) < 0)
            die("%s: %m", to);
    }
    char target[4096];
    snprintf(target, sizeof(target), "/tmp%s", workspace);
    mkdir("/tmp/proc", 0755);
    mkdir("/tmp/tmp", 0755);
    mkdir("/tmp/old", 0755);
    if (mount("proc", "/tmp/proc", "proc", NOSUID_NODEV, NULL) < 0 ||
        mount("tmp", "/tmp/tmp", "tmpfs", NOSUID_NODEV, NULL) < 0)
        die("proc, tmp: %m");
    make(target);
    if (syscall(SYS_move_mount, place, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        die("%s: %m", target);
    if (syscall(SYS_pivot_root, "/tmp", "/tmp/old") < 0 || chdir("/") < 0 ||
        umount2("/old", DETACH) < 0)
        die("pivot_root: %m");
}

int main(int argc, char **argv)
{
    char map[64];
    int status;
    if (argc != 2)
        die("usage: own-view WORKSPACE");
    unsigned uid = getuid(), gid = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
        die("unshare: %m");
    put("/proc/self/setgroups", "deny");
    snprintf(map, sizeof(map), "%u %u 1", uid, uid);
    put("/proc/self/uid_map", map);
    snprintf(map, sizeof(map), "%u %u 1", gid, gid);
    put("/proc/self/gid_map", map);
    pid_t pid = fork();
    if (pid == 0) {
        build(argv[1]);
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        die("its child: %m");
    return WEXITSTATUS(status);
}
