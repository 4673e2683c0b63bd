/* tests/sandbox/hostile_spaces: what a command may try that is allowed to make user namespaces. In
 * one of its own it has every capability; here they are turned against the view, against process 1,
 * against the network around and against whoever looks after the command.
 */
#include "hostile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define HIGH (1UL << 32)
#define OPEN_TREE_ATTR 467 /* Linux 6.15 */
#define ALL_BUT_MOUNTS (CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static long write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    long rc = fd < 0 ? -1 : write(fd, text, strlen(text));
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return rc;
}

/* As unshare(1) with --map-root-user. */
static void become_root(int flags)
{
    char uid[64], gid[64];
    snprintf(uid, sizeof(uid), "0 %u 1", getuid());
    snprintf(gid, sizeof(gid), "0 %u 1", getgid());
    allowed(unshare(CLONE_NEWUSER | flags), "a user namespace");
    write_file("/proc/self/setgroups", "deny");
    allowed(write_file("/proc/self/uid_map", uid), "its user");
    allowed(write_file("/proc/self/gid_map", gid), "its group");
    check(getuid() == 0 && getgid() == 0, "not root in a namespace of one's own");
}

void enter(const char *names)
{
    static const struct {
        const char *name;
        int flag;
    } kinds[] = {{"user", 0},           {"pid", CLONE_NEWPID}, {"net", CLONE_NEWNET},
                 {"ipc", CLONE_NEWIPC}, {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP}};
    int flags = 0;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        flags |= strstr(names, kinds[i].name) != NULL ? kinds[i].flag : 0;
    become_root(flags);
    if ((flags & CLONE_NEWPID) == 0)
        return;
    int status;
    pid_t pid = fork();
    if (pid == 0)
        return;
    waitpid(pid, &status, 0);
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* ---- which namespaces ---- */

/* The child, if there is one, does not go on here. */
static long clone_with(unsigned long flags)
{
    long rc = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (rc == 0)
        _exit(0);
    return rc;
}

/* What is not allowed with whatever it comes. */
static void never(void)
{
    static const unsigned long with[] = {0, CLONE_NEWUSER, CLONE_NEWPID,
                                         CLONE_NEWUSER | CLONE_NEWNET, ALL_BUT_MOUNTS};
    for (size_t i = 0; i < ARRAY_LEN(with); i++) {
        unsigned long flags = with[i] | CLONE_NEWNS;
        refused(syscall(SYS_unshare, flags), EPERM, "unshare, mounts");
        refused(syscall(SYS_unshare, flags | HIGH), EPERM, "unshare, mounts, high bit");
        refused(clone_with(flags), EPERM, "clone, mounts");
        refused(clone_with(flags | HIGH), EPERM, "clone, high bit");
        refused(syscall(SYS_unshare, with[i] | CLONE_NEWTIME), EPERM, "time");
    }
}

static void no_entering(void)
{
    static const char *const kinds[] = {"user", "mnt", "pid",    "net",
                                        "ipc",  "uts", "cgroup", "time"};
    char path[64];
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
        int fd = open(path, O_RDONLY);
        refused(syscall(SYS_setns, fd, 0), EPERM, path);
        close(fd);
        snprintf(path, sizeof(path), "/proc/1/ns/%s", kinds[i]);
        check(open(path, O_RDONLY) < 0, "%s can be opened", path);
    }
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    refused(syscall(SYS_setns, self, CLONE_NEWUSER), EPERM, "setns by pidfd");
    refused(syscall(SYS_setns, self, CLONE_NEWNS | CLONE_NEWUSER), EPERM, "setns by pidfd");
}

static void child_works(unsigned long flags, const char *what)
{
    int status = 1;
    pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(7);
    allowed(pid, what);
    if (pid > 0)
        check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7, "%s: its end", what);
}

/* args: none. What the option is for, and what it is not. */
void allowed_namespaces(char **args)
{
    static char room[88];
    static const unsigned long alone[] = {CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS,
                                          CLONE_NEWCGROUP};
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(alone); i++)
        refused(clone_with(alone[i]), EPERM, "without a user namespace");
    refused(chroot("."), EPERM, "chroot without a capability");
    never();
    no_entering();
    refused(syscall(SYS_clone3, room, sizeof(room)), ENOSYS, "clone3");
    child_works(CLONE_NEWUSER, "a user namespace");
    child_works(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET, "a browser's");
    child_works(CLONE_NEWUSER | ALL_BUT_MOUNTS, "all that are allowed");
    become_root(CLONE_NEWUTS);
    child_works(CLONE_NEWPID, "a process namespace by capability");
    allowed(sethostname("x", 1), "a host name of its own");
    never();
    no_entering();
    refused(syscall(SYS_clone3, room, sizeof(room)), ENOSYS, "clone3");
    allowed(chroot("/proc/self/fdinfo"), "a browser's chroot");
}

/* args: none. They end somewhere. */
void nested_namespaces(char **args)
{
    int depth = 1;
    (void)args;
    become_root(0);
    while (depth < 100 && unshare(CLONE_NEWUSER) == 0) {
        allowed(write_file("/proc/self/uid_map", "0 0 1"), "its user");
        allowed(write_file("/proc/self/gid_map", "0 0 1"), "its group");
        depth++;
    }
    int error = errno;
    check(depth > 1 && depth < 100, "%d namespaces in each other", depth);
    check(error == EUSERS || error == ENOSPC, "the end: %s", strerror(error));
    refused(unshare(CLONE_NEWNS), EPERM, "mounts in the innermost");
    proc_one(args);
}

/* ---- the view ---- */

static void no_mounting(void)
{
    static char attr[32];
    refused(syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, 0), EPERM, "mount");
    refused(syscall(SYS_umount2, "/", 2), EPERM, "umount of the root");
    refused(syscall(SYS_umount2, ".git", 2), EPERM, "umount of a fence");
    refused(syscall(SYS_pivot_root, ".", "."), EPERM, "pivot_root");
    refused(syscall(SYS_open_tree, AT_FDCWD, "/", 1 | AT_RECURSIVE), EPERM, "open_tree");
    refused(syscall(SYS_fsopen, "tmpfs", 0), EPERM, "fsopen");
    refused(syscall(SYS_fsopen, "overlay", 0), EPERM, "fsopen");
    refused(syscall(SYS_mount_setattr, AT_FDCWD, ".git", 0, attr, sizeof(attr)), EPERM, "setattr");
    attr[8] = 1; /* clear MOUNT_ATTR_RDONLY */
    refused_or(syscall(OPEN_TREE_ATTR, AT_FDCWD, ".git", 1, attr, sizeof(attr)), EPERM, ENOSYS,
               "open_tree_attr of a copy");
    refused_or(syscall(OPEN_TREE_ATTR, AT_FDCWD, ".git", 0, attr, sizeof(attr)), EPERM, ENOSYS,
               "open_tree_attr");
}

/* A descriptor from outside of a chroot leads out of it, to where one was before and no further. */
static void out_of_a_chroot(void)
{
    struct stat root, here, found;
    int outside = open("/", O_PATH | O_DIRECTORY);
    int deep = open(".", O_PATH | O_DIRECTORY);
    check(stat("/", &root) == 0 && stat(".", &here) == 0, "stat");
    allowed(chroot("/proc/self/fdinfo"), "chroot");
    check(open("/etc/passwd", O_RDONLY) < 0, "the chroot has no walls");
    check(fchdir(deep) == 0, "fchdir");
    for (int i = 0; i < 40; i++)
        check(chdir("..") == 0, "..");
    check(stat(".", &found) == 0 && found.st_ino == root.st_ino && found.st_dev == root.st_dev,
          "the way out of a chroot leads past the view");
    refused_or(openat(outside, "../../x", O_WRONLY | O_CREAT, 0600), EROFS, EACCES, "above it");
    check(fchdir(outside) == 0 && chroot(".") == 0, "back");
    check(fchdir(deep) == 0, "fchdir");
}

/* Of a mount point: one that is on another mount than its new name, or is none yet, has another
 * errno, which all say that it stays. */
static void stays(long rc, const char *what)
{
    int error = errno;
    check(rc == -1 && (error == EBUSY || error == EXDEV || error == EROFS || error == ENOENT),
          "%s: %s", what, rc == -1 ? strerror(error) : "was allowed");
}

/* args: a protected directory that holds "file". */
void fences_from_inside(char **args)
{
    char path[256];
    int here = open(".", O_RDONLY | O_DIRECTORY);
    int fence = open(args[0], O_RDONLY | O_DIRECTORY);
    become_root(ALL_BUT_MOUNTS & ~CLONE_NEWPID);
    no_mounting();
    out_of_a_chroot();
    snprintf(path, sizeof(path), "%s/file", args[0]);
    refused(open(path, O_WRONLY), EROFS, path);
    refused(openat(fence, "file", O_WRONLY), EROFS, "by descriptor");
    refused(chmod(path, 0777), EROFS, "chmod");
    refused(fchownat(here, path, 0, 0, 0), EROFS, "chown");
    stays(renameat(here, args[0], here, "moved"), "rename");
    stays(syscall(SYS_renameat2, here, args[0], here, "moved", RENAME_EXCHANGE), "exchange");
    stays(unlinkat(here, args[0], AT_REMOVEDIR), "rmdir");
    allowed(chroot("."), "chroot into the workspace");
    stays(rename(args[0], "moved"), "rename in a chroot");
    refused(openat(fence, "new", O_WRONLY | O_CREAT, 0600), EROFS, "create from a chroot");
    refused(setxattr(path, "security.capability", path, 20, 0), EROFS, "a capability on it");
}

/* args: files of somebody else that nobody else may read. */
void files_of_others(char **args)
{
    become_root(0);
    for (; *args != NULL; args++) {
        refused(open(*args, O_RDONLY), EACCES, *args);
        refused_or(chown(*args, 0, 0), EPERM, EROFS, *args);
        refused_or(chmod(*args, 0777), EPERM, EROFS, *args);
        refused_or(truncate(*args, 0), EACCES, EROFS, *args);
    }
    int fd = open("closed", O_WRONLY | O_CREAT, 0);
    allowed(fd, "a file of its own");
    allowed(open("closed", O_RDONLY), "what it closed itself");
    refused_or(fchown(fd, 1, 1), EINVAL, EPERM, "giving a file away");
    unlink("closed");
}

/* ---- capabilities that belong to the machine ---- */

/* args: none. */
void capabilities_of_the_machine(char **args)
{
    struct timeval now = {1, 0};
    struct rlimit limit, core = {RLIM_INFINITY, RLIM_INFINITY};
    int flags = FS_IMMUTABLE_FL;
    const gid_t group = 0;
    (void)args;
    become_root(0);
    refused(settimeofday(&now, NULL), EPERM, "the clock");
    refused(sethostname("x", 1), EPERM, "the host name around");
    refused(mknod("disk", S_IFBLK | 0600, 8 << 8), EPERM, "a disk");
    refused(mknod("null", S_IFCHR | 0600, 1 << 8 | 3), EPERM, "a device");
    refused(setrlimit(RLIMIT_CORE, &core), EPERM, "more than the limit");
    check(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_max++;
    refused(setrlimit(RLIMIT_NOFILE, &limit), EPERM, "more open files");
    int fd = open("mine", O_RDWR | O_CREAT, 0600);
    check(ioctl(fd, FS_IOC_SETFLAGS, &flags) < 0, "a file that nobody can take away");
    check(fsetxattr(fd, "trusted.x", "x", 1, 0) < 0, "a trusted attribute");
    unlink("mine");
    refused(setuid(1), EINVAL, "setuid");
    refused(setgid(1), EINVAL, "setgid");
    refused(setgroups(1, &group), EPERM, "giving groups up");
    check(write_file("/proc/self/oom_score_adj", "-1000") < 0,
          "out of the reach of the OOM killer");
    check(write_file("/proc/sys/kernel/hostname", "x") < 0, "/proc/sys");
    check(write_file("/proc/sys/user/max_user_namespaces", "1") < 0, "/proc/sys/user");
    check(write_file("/proc/1/oom_score_adj", "-1") < 0, "process 1's score");
}

/* args: the path of this program. A capability that is put on a file gives nobody anything. */
void file_capabilities(char **args)
{
    static char bytes[1 << 22];
    struct vfs_cap_data caps = {.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE};
    int status = 1;
    int from = open(args[0], O_RDONLY);
    int to = open("armed", O_WRONLY | O_CREAT | O_TRUNC, 0755);
    ssize_t n = read(from, bytes, sizeof(bytes));
    check(n > 0 && write(to, bytes, (size_t)n) == n && close(to) == 0, "a copy");
    caps.data[0].permitted = ~0u;
    pid_t pid = fork();
    if (pid == 0) {
        become_root(0);
        setxattr("armed", "security.capability", &caps, sizeof(caps), 0);
        chmod("armed", 06755);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    pid = fork();
    if (pid == 0) {
        execl("./armed", "armed", "no_capabilities", (char *)NULL);
        _exit(9);
    }
    check(waitpid(pid, &status, 0) == pid && status == 0, "it has capabilities (%d)", status);
    unlink("armed");
}

void no_capabilities(char **args)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    (void)args;
    allowed(syscall(SYS_capget, &head, data), "capget");
    for (int i = 0; i < 2; i++)
        check((data[i].effective | data[i].permitted) == 0, "capabilities");
    check(geteuid() == getuid() && getegid() == getgid(), "another user");
}

/* args: none. Whoever has a listener of his own answers what process 1 answers now. */
void second_listener(char **args)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_filter ask = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog program = {1, &ask};
    (void)args;
    become_root(0);
    refused(
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program),
        EBUSY, "a second listener");
    program.filter = &allow;
    allowed(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "a filter of its own");
    refused(syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, 0), EPERM, "mount after it");
    refused(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL, "new privileges again");
}

/* ---- process 1, and who is counted ---- */

/* args: none. From a process namespace inside there is no process 1 of the sandbox at all. */
void process_one_from_inside(char **args)
{
    int status;
    int one = (int)syscall(SYS_pidfd_open, 1, 0);
    int parent = (int)syscall(SYS_pidfd_open, getppid(), 0);
    (void)args;
    allowed(one, "pidfd_open");
    become_root(CLONE_NEWPID);
    pid_t pid = fork();
    if (pid == 0) {
        check(getpid() == 1 && getppid() == 0, "not its own process 1");
        refused(syscall(SYS_pidfd_send_signal, one, SIGKILL, NULL, 0), EINVAL, "SIGKILL outwards");
        refused(syscall(SYS_pidfd_send_signal, parent, SIGPWR, NULL, 0), EINVAL, "SIGPWR outwards");
        refused(syscall(SYS_pidfd_getfd, one, 3, 0), EPERM, "pidfd_getfd");
        refused(prlimit(1, RLIMIT_NOFILE, NULL, NULL), EPERM, "prlimit of a process 1");
        refused(kill(2, SIGKILL), ESRCH, "a number of outside");
        refused(kill(-1, SIGKILL), ESRCH, "everybody");
        proc_one(args);
        _exit(failed());
    }
    check(waitpid(pid, &status, 0) == pid && status == 0, "see above");
    proc_one(args);
}

/* args: how deep, and a word. In each of so many process namespaces in each other two processes
 * are left behind, with that word as their name for who looks from outside. */
void left_in_namespaces(char **args)
{
    int depth = atoi(args[0]);
    int ready[2];
    char byte;
    check(pipe(ready) == 0, "pipe");
    become_root(0);
    for (int i = 0; i < depth; i++) {
        allowed(unshare(CLONE_NEWPID), "a process namespace");
        pid_t pid = fork();
        if (pid != 0) {
            check(read(ready[0], &byte, 1) == 1, "the one inside is not ready");
            return;
        }
        setsid();
        if (fork() == 0)
            for (;;)
                pause();
        if (fork() == 0) { /* the next level is inside of this one's process 1 */
            if (i + 1 < depth) {
                continue;
            }
            for (;;)
                pause();
        }
        if (i + 1 == depth)
            check(write(ready[1], "x", 1) == 1, "write");
        for (;;)
            pause();
    }
}

/* ---- the network ---- */

/* An answer to a request: 0 or -errno. */
static int ask_route(const void *message, size_t n)
{
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } answer;
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    int rc = -1;
    if (fd >= 0 && send(fd, message, n, 0) == (ssize_t)n &&
        recv(fd, &answer, sizeof(answer), 0) > 0 && answer.head.nlmsg_type == NLMSG_ERROR)
        rc = ((const struct nlmsgerr *)NLMSG_DATA(&answer.head))->error;
    close(fd);
    return rc;
}

static size_t put(char *to, unsigned short type, const void *data, size_t n)
{
    struct rtattr head = {(unsigned short)(RTA_LENGTH(n)), type};
    memcpy(to, &head, sizeof(head));
    memcpy(to + RTA_LENGTH(0), data, n);
    return RTA_SPACE(n);
}

/* A pair of interfaces whose other end is of the process's network: a way out. */
static int make_pair(pid_t other)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg link;
        char attrs[512];
    } m = {.head = {.nlmsg_type = RTM_NEWLINK,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL}};
    char kind[128], data[128], peer[128] = "";
    size_t n = sizeof(struct ifinfomsg); /* before the peer's attributes */
    n += put(peer + n, IFLA_NET_NS_PID, &other, sizeof(other));
    n = put(data, VETH_INFO_PEER, peer, n);
    size_t k = put(kind, IFLA_INFO_KIND, "veth", 5);
    k += put(kind + k, IFLA_INFO_DATA, data, n);
    m.head.nlmsg_len =
        (unsigned)(NLMSG_LENGTH(sizeof(m.link)) + put(m.attrs, IFLA_LINKINFO, kind, k));
    return ask_route(&m, m.head.nlmsg_len);
}

/* Take the loopback of the network around down: of who has no capability over it. */
static void network_around(void)
{
    struct ifreq lo = {.ifr_name = "lo"};
    struct {
        struct nlmsghdr head;
        struct ifinfomsg link;
    } m = {.head = {.nlmsg_len = sizeof(m),
                    .nlmsg_type = RTM_NEWLINK,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
           .link = {.ifi_index = 1, .ifi_change = IFF_UP}};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    refused(ioctl(fd, SIOCSIFFLAGS, &lo), EPERM, "the loopback around");
    check(ask_route(&m, sizeof(m)) == -EPERM, "the loopback around, by netlink");
    check(make_pair(getpid()) == -EPERM, "an interface around");
    refused(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &(int){1 << 20}, sizeof(int)), EPERM,
            "a capability over the network around");
    close(fd);
}

static void programming(void)
{
    static const int options[] = {16, 17, 64, 65, 96, 97, 128, 129, 200, 1088};
    static const int options6[] = {34, 35, 64, 65};
    static char room[256];
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    int fd6 = socket(AF_INET6, SOCK_DGRAM, 0);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        refused(setsockopt(fd, IPPROTO_IP, options[i], room, sizeof(room)), EPERM, "an option");
        refused(syscall(SYS_setsockopt, fd, HIGH, HIGH | (unsigned)options[i], room, sizeof(room)),
                EPERM, "an option, high bits");
        refused(setsockopt(fd6, IPPROTO_IP, options[i], room, sizeof(room)), EPERM,
                "of an IPv6 one");
    }
    for (size_t i = 0; i < ARRAY_LEN(options6); i++)
        refused(setsockopt(fd6, IPPROTO_IPV6, options6[i], room, sizeof(room)), EPERM, "IPv6");
    allowed(setsockopt(fd, IPPROTO_IP, 2 /* IP_TTL */, &(int){64}, sizeof(int)), "an ordinary one");
    allowed(setsockopt(fd6, IPPROTO_IPV6, 67 /* IPV6_TCLASS */, &(int){0}, sizeof(int)), "IPv6");
    for (int family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET) {
        for (unsigned long high = 0; high <= HIGH; high += HIGH) {
            refused(syscall(SYS_socket, family | high, SOCK_RAW | high, 255), EPERM, "raw");
            refused(syscall(SYS_socket, family, SOCK_RAW | SOCK_CLOEXEC | high, 1), EPERM, "raw");
            refused(syscall(SYS_socket, family, SOCK_PACKET | high, 768), EPERM, "packets");
            refused(syscall(SYS_socket, family, SOCK_PACKET | SOCK_NONBLOCK, 768), EPERM,
                    "packets");
        }
    }
}

static void nothing_there(const char *port)
{
    static const char *const addresses[] = {"127.0.0.1", "192.0.2.1",       "8.8.8.8",
                                            "10.0.0.1",  "169.254.169.254", "198.18.0.1"};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        inet_pton(AF_INET, addresses[i], &to.sin_addr);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        refused(connect(fd, (struct sockaddr *)&to, sizeof(to)), ENETUNREACH, addresses[i]);
        close(fd);
        fd = socket(AF_INET, SOCK_DGRAM, 0);
        refused(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), ENETUNREACH,
                addresses[i]);
        close(fd);
    }
}

/* args: a port that the network around has something to say to. */
void network_from_inside(char **args)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0around"};
    const socklen_t len = offsetof(struct sockaddr_un, sun_path) + 7;
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    pid_t around = getppid();
    int pipes[2];
    allowed(bind(server, (struct sockaddr *)&name, len), "bind");
    allowed(listen(server, 1), "listen");
    check(pipe(pipes) == 0, "pipe");
    pid_t stays = fork(); /* of the network around, and ours to look at */
    if (stays == 0) {
        char byte;
        close(pipes[1]);
        _exit(read(pipes[0], &byte, 1) == 0 ? 0 : 1);
    }
    become_root(0);
    network_around();
    programming();
    become_root(CLONE_NEWNET);
    programming();
    nothing_there(args[0]);
    refused(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, len), ECONNREFUSED,
            "an abstract name around");
    check(make_pair(stays) < 0, "a way into the network around");
    check(make_pair(around) < 0, "a way into the network of process 1");
    check(make_pair(1) < 0, "a way into the network of process 1, by number");
    nothing_there(args[0]);
    close(pipes[1]);
    waitpid(stays, NULL, 0);
}

/* args: none. Ways to give or get what is not one's own. */
void foreign_ids(char **args)
{
    char text[64];
    (void)args;
    snprintf(text, sizeof(text), "0 %u 1", getuid() + 1);
    allowed(unshare(CLONE_NEWUSER), "a user namespace");
    refused(write_file("/proc/self/uid_map", text), EPERM, "somebody else's user");
    refused(write_file("/proc/self/uid_map", "0 0 4294967295"), EPERM, "everybody");
    refused(write_file("/proc/self/gid_map", "0 0 2"), EPERM, "groups");
    refused(write_file("/proc/self/setgroups", "allow"), EPERM, "setgroups");
    refused_or(write_file("/proc/1/uid_map", "0 0 1"), EPERM, EACCES, "process 1's");
    refused_or(write_file("/proc/1/setgroups", "deny"), EPERM, EACCES, "process 1's");
}
