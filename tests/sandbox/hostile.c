/* tests/sandbox/hostile: what a command may try against its sandbox, one function an attack.
 *
 * `hostile NAME [ARG...]` runs one row of the table at the end, inside a sandbox. It says what went
 * wrong on stdout, and ends with 0 when every attack failed in the way that was expected and 1
 * when one did not. The driver (test_sandbox.py) makes the surroundings and runs every row.
 */
#include "hostile.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

void check(bool ok, const char *format, ...)
{
    va_list ap;
    if (ok)
        return;
    failures++;
    printf("FAIL: ");
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    printf("\n");
}

int failed(void)
{
    return failures != 0;
}

void refused_or(long rc, int want, int or, const char *what)
{
    int got = errno;
    check(rc == -1, "%s: was allowed (%ld)", what, rc);
    if (rc == -1)
        check(got == want || (or != 0 && got == or), "%s: %s instead of %s", what, strerror(got),
              strerror(want));
}

void refused(long rc, int want, const char *what)
{
    refused_or(rc, want, 0, what);
}

void allowed(long rc, const char *what)
{
    check(rc >= 0, "%s: %s", what, strerror(errno));
}

/* ---- the file view ---- */

static void absent(char **args)
{
    struct stat st;
    for (; *args != NULL; args++)
        refused(lstat(*args, &st), ENOENT, *args);
}

static void reads_as_empty(char **args)
{
    char byte;
    for (; *args != NULL; args++) {
        struct stat st;
        if (lstat(*args, &st) < 0 && errno == ENOENT)
            continue;
        int fd = open(*args, O_RDONLY);
        ssize_t n = fd < 0 ? 0 : S_ISDIR(st.st_mode) ? 0 : read(fd, &byte, 1);
        check(n == 0, "%s can be read", *args);
        check(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode), "%s is a device or worse", *args);
        if (S_ISDIR(st.st_mode))
            check(st.st_nlink == 2, "%s is not empty", *args);
        if (fd >= 0)
            close(fd);
    }
}

static void write_outside(char **args)
{
    static const char *const places[] = {"/x",     "/usr/x",     "/usr/bin/x", "/etc/x",
                                         "/opt/x", "/usr/lib/x", "/home/x",    "/var/x"};
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        bool seen = access("/home", F_OK) == 0 || i < 6;
        refused_or(open(places[i], O_WRONLY | O_CREAT, 0600), seen ? EROFS : ENOENT, EACCES,
                   places[i]);
        refused_or(mkdir(places[i], 0700), seen ? EROFS : ENOENT, EACCES, places[i]);
    }
    refused_or(open("/etc/passwd", O_WRONLY), EROFS, EACCES, "/etc/passwd");
    refused_or(chmod("/usr/bin/true", 0777), EROFS, EPERM, "chmod /usr/bin/true");
    refused_or(unlink("/etc/hostname"), EROFS, EACCES, "unlink /etc/hostname");
    refused_or(rename("/etc/hostname", "/etc/h"), EROFS, EACCES, "rename /etc/hostname");
    refused_or(symlink("/x", "/etc/y"), EROFS, EACCES, "symlink /etc/y");
    refused_or(mknod("/tmp/sda", S_IFBLK | 0600, 8 << 8), EPERM, EACCES, "mknod of a disk");
}

static void workspace_writable(char **args)
{
    (void)args;
    int fd = open("new", O_WRONLY | O_CREAT | O_EXCL, 0644);
    allowed(fd, "create in the workspace");
    allowed(write(fd, "x", 1), "write");
    allowed(close(fd), "close");
    allowed(rename("new", "newer"), "rename");
    allowed(unlink("newer"), "unlink");
    allowed(mkdir("/tmp/mine", 0700), "mkdir in /tmp");
    allowed(open("/dev/shm/mine", O_WRONLY | O_CREAT, 0600), "create in /dev/shm");
    const char *home = getenv("HOME");
    check(home != NULL && access(home, W_OK) == 0, "HOME is not writable");
}

static void workspace_readonly(char **args)
{
    (void)args;
    refused(open("new", O_WRONLY | O_CREAT, 0644), EROFS, "create");
    refused(open("file", O_WRONLY), EROFS, "open for writing");
    refused(unlink("file"), EROFS, "unlink");
    refused(mkdir(".git", 0755), EROFS, "mkdir .git");
    refused(chmod("file", 0600), EROFS, "chmod");
}

/* args: names of directories that exist under the workspace and are protected (H3, A1). */
static void protected_directories(char **args)
{
    char path[256];
    for (; *args != NULL; args++) {
        snprintf(path, sizeof(path), "%s/file", *args);
        refused(open(path, O_WRONLY), EROFS, path);
        refused(open(path, O_RDONLY | O_TRUNC), EROFS, path);
        refused(unlink(path), EROFS, path);
        refused(chmod(path, 0777), EROFS, path);
        refused_or(link(path, "stolen"), EXDEV, EROFS, "link out of it");
        refused_or(rename(path, "stolen"), EXDEV, EROFS, "rename out of it");
        snprintf(path, sizeof(path), "%s/new", *args);
        refused(open(path, O_WRONLY | O_CREAT, 0600), EROFS, path);
        refused(mkdir(path, 0700), EROFS, path);
        refused(symlink("x", path), EROFS, path);
        refused_or(rmdir(*args), EBUSY, EROFS, "rmdir it");
        refused(chmod(*args, 0777), EROFS, "chmod it");
        snprintf(path, sizeof(path), "%s.moved", *args);
        refused_or(rename(*args, path), EBUSY, EROFS, "rename it");
        refused_or(syscall(SYS_renameat2, AT_FDCWD, *args, AT_FDCWD, path, RENAME_EXCHANGE), ENOENT,
                   EROFS, "exchange it");
    }
}

static void protected_file(char **args)
{
    for (; *args != NULL; args++) {
        refused(open(*args, O_WRONLY), EROFS, *args);
        refused(unlink(*args), EBUSY, *args);
        refused_or(rename(*args, "moved"), EBUSY, EXDEV, *args);
        refused_or(rename("decoy", *args), EBUSY, EXDEV, *args);
    }
}

/* A directory on the way to a protected one cannot be moved aside either (A1, A2). */
static void cannot_rename(char **args)
{
    char beside[256];
    for (; *args != NULL; args++) {
        snprintf(beside, sizeof(beside), "%s.moved", *args);
        refused(rename(*args, beside), EBUSY, *args);
        refused_or(rename(*args, "moved"), EBUSY, EXDEV, *args);
    }
}

static void create_protected(char **args)
{
    for (; *args != NULL; args++) {
        char path[256];
        mkdir(*args, 0755);
        snprintf(path, sizeof(path), "%s/hooks", *args);
        mkdir(path, 0755);
        snprintf(path, sizeof(path), "%s/hooks/post-checkout", *args);
        close(open(path, O_WRONLY | O_CREAT, 0755));
    }
}

/* As hostile as a tree can be: deep, without permissions, with links out of it. */
static void create_protected_deep(char **args)
{
    char cwd[4096];
    check(getcwd(cwd, sizeof(cwd)) != NULL, "getcwd");
    allowed(mkdir(args[0], 0755), "mkdir");
    for (int i = 0; i < 3000 && (i > 0 || chdir(args[0]) == 0); i++) {
        if (mkdir("d", 0700) < 0 && errno == ENOENT)
            break; /* the guard was faster */
        close(open("f", O_WRONLY | O_CREAT, 0));
        if (symlink("/etc", "link") < 0 && errno == ENOENT)
            break;
        if (chdir("d") < 0)
            break;
    }
    check(chdir(cwd) == 0, "chdir back");
    chmod(args[0], 0);
}

/* Swap a protected link for something else, again and again. */
static void replace_link(char **args)
{
    for (int i = 0; i < 200; i++) {
        unlink(args[0]);
        mkdir(args[0], 0755);
        rmdir(args[0]);
        close(open(args[0], O_WRONLY | O_CREAT | O_NOFOLLOW, 0644));
    }
}

/* ---- /proc and what this process is ---- */

void proc_one(char **args)
{
    static const char *const files[] = {"environ",        "mem",        "maps",
                                        "auxv",           "stack",      "syscall",
                                        "task/1/environ", "task/1/mem", "pagemap"};
    static const char *const links[] = {"exe", "cwd", "root", "ns/net", "fd/3", "task/1/exe"};
    char path[128];
    char target[256];
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char byte;
        snprintf(path, sizeof(path), "/proc/1/%s", files[i]);
        int fd = open(path, O_RDONLY);
        ssize_t n = fd < 0 ? -1 : read(fd, &byte, 1);
        check(n <= 0, "%s can be read", path);
    }
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        snprintf(path, sizeof(path), "/proc/1/%s", links[i]);
        refused_or(readlink(path, target, sizeof(target)), EACCES, EPERM, path);
    }
    for (int i = 0; i < 64; i++) {
        snprintf(path, sizeof(path), "/proc/1/fd/%d", i);
        check(open(path, O_RDONLY) < 0, "%s can be opened", path);
        snprintf(path, sizeof(path), "/proc/1/fdinfo/%d", i);
        check(open(path, O_RDONLY) < 0, "%s can be opened", path);
    }
    refused_or(open("/proc/1/root/etc", O_RDONLY | O_DIRECTORY), EACCES, EPERM, "/proc/1/root");
    refused_or(open("/proc/1/cwd/etc", O_RDONLY | O_DIRECTORY), EACCES, EPERM, "/proc/1/cwd");
    /* The host's root owns this file and may open it; the write is what counts. */
    int fd = open("/proc/1/comm", O_WRONLY);
    check(fd < 0 || write(fd, "x", 1) < 0, "process 1 can be renamed");
}

static bool file_holds(const char *path, const char *word)
{
    static char text[1 << 20];
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    return n > 0 && memmem(text, (size_t)n, word, strlen(word)) != NULL;
}

/* args: words that must be in no environment and no command line (A28, E34), but our own line. */
static void no_word_in_proc(char **args)
{
    static const char *const files[] = {"environ", "cmdline"};
    DIR *proc = opendir("/proc");
    char path[600];
    int processes = 0;
    for (struct dirent *it = readdir(proc); it != NULL; it = readdir(proc)) {
        int pid = atoi(it->d_name);
        if (pid <= 0)
            continue;
        processes++;
        for (size_t f = 0; f < ARRAY_LEN(files); f++) {
            for (char **word = args; *word != NULL; word++) {
                if (pid == getpid() && f == 1)
                    continue;
                snprintf(path, sizeof(path), "/proc/%s/%s", it->d_name, files[f]);
                check(!file_holds(path, *word), "%s holds %s", path, *word);
                snprintf(path, sizeof(path), "/proc/%s/task/%s/%s", it->d_name, it->d_name,
                         files[f]);
                check(!file_holds(path, *word), "%s holds %s", path, *word);
            }
        }
    }
    closedir(proc);
    check(processes == 2, "%d processes are visible instead of 2", processes);
    check(getppid() == 1, "the parent is %d", (int)getppid());
}

/* args: NAME=VALUE entries that must be the whole environment. */
static void exact_environment(char **args)
{
    size_t n = 0;
    while (environ[n] != NULL)
        n++;
    for (; *args != NULL; args++) {
        bool found = false;
        for (size_t i = 0; i < n; i++)
            found |= strcmp(environ[i], *args) == 0;
        check(found, "%s is not set", *args);
    }
}

static void privileges(char **args)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    struct rlimit core;
    (void)args;
    allowed(syscall(SYS_capget, &head, data), "capget");
    for (int i = 0; i < 2; i++)
        check((data[i].effective | data[i].permitted | data[i].inheritable) == 0,
              "capabilities are left");
    for (int cap = 0; cap <= 40; cap++)
        check(prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 0, "capability %d is in the bounding set",
              cap);
    check(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "no_new_privs is not set");
    check(file_holds("/proc/self/status", "\nSeccomp:\t2\n"), "no filter");
    check(file_holds("/proc/self/status", "\nSeccomp_filters:\t1\n"), "not exactly one filter");
    check(file_holds("/proc/self/status", "\nSigBlk:\t0000000000000000\n"), "blocked signals");
    check(file_holds("/proc/self/status", "\nSigIgn:\t0000000000000000\n"), "ignored signals");
    check(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0, "core dumps are possible");
    check(getsid(0) == getpid() && getpgrp() == getpid(), "no session of its own");
}

static void descriptors(char **args)
{
    DIR *d = opendir("/proc/self/fd");
    (void)args;
    for (struct dirent *it = readdir(d); it != NULL; it = readdir(d)) {
        int fd = atoi(it->d_name);
        check(fd <= 2 || fd == dirfd(d), "descriptor %s was left open", it->d_name);
    }
    closedir(d);
}

static void kernel_files(char **args)
{
    static const char *const files[] = {
        "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/modprobe",     "/proc/sys/vm/drop_caches",
        "/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/suid_dumpable",
        "/proc/irq/default_smp_affinity"};
    static const char *const gone[] = {
        "/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg",       "/dev/mem",
        "/dev/kmsg",           "/dev/sda",    "/dev/vda",         "/dev/net/tun",
        "/dev/fuse",           "/dev/kvm",    "/dev/loop-control"};
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        int fd = open(files[i], O_WRONLY);
        check(fd < 0, "%s can be opened for writing", files[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(gone); i++)
        check(open(gone[i], O_RDWR) < 0, "%s can be opened", gone[i]);
}

static void devices(char **args)
{
    static const char *const names[] = {"null", "zero", "full", "random", "urandom", "tty"};
    char byte = 'x';
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[64];
        struct stat st;
        snprintf(path, sizeof(path), "/dev/%s", names[i]);
        check(stat(path, &st) == 0 && S_ISCHR(st.st_mode), "%s is no character device", path);
    }
    int fd = open("/dev/null", O_WRONLY);
    check(write(fd, &byte, 1) == 1, "write to /dev/null");
    fd = open("/dev/zero", O_RDONLY);
    check(read(fd, &byte, 1) == 1 && byte == 0, "read of /dev/zero");
}

/* ---- the network ---- */

static void families(char **args)
{
    (void)args;
    for (int family = 0; family < 64; family++) {
        bool fine = family == AF_UNIX || family == AF_INET || family == AF_INET6;
        for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
            char what[64];
            snprintf(what, sizeof(what), "socket(%d, %d)", family, type);
            if (family == AF_NETLINK && type == SOCK_STREAM)
                continue;
            int fd = socket(family, type, 0);
            if (fine || family == AF_NETLINK)
                allowed(fd, what);
            else
                refused(fd, EAFNOSUPPORT, what);
            if (fd >= 0)
                close(fd);
        }
    }
    /* The kernel looks at 32 bits only. */
    long high = 1L << 32;
    refused(syscall(SYS_socket, high | AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT, "VSOCK, high bit");
    refused(syscall(SYS_socket, high | AF_KEY, SOCK_RAW, 2), EAFNOSUPPORT, "KEY, high bit");
    refused(syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0), EAFNOSUPPORT, "PACKET");
    refused(syscall(SYS_socket, AF_INET, SOCK_RAW, IPPROTO_ICMP), EPERM, "raw socket");
    int pair[2];
    allowed(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    allowed(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), "socketpair");
    refused(socketpair(AF_VSOCK, SOCK_STREAM, 0, pair), EAFNOSUPPORT, "socketpair(VSOCK)");
}

static void netlink(char **args)
{
    (void)args;
    allowed(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), "NETLINK_ROUTE");
    for (int protocol = 1; protocol < 24; protocol++) {
        char what[64];
        snprintf(what, sizeof(what), "netlink protocol %d", protocol);
        refused(socket(AF_NETLINK, SOCK_RAW, protocol), EPERM, what);
    }
    long high = 1L << 32;
    refused_or(syscall(SYS_socket, high | AF_NETLINK, SOCK_RAW, NETLINK_AUDIT), EPERM, EAFNOSUPPORT,
               "NETLINK_AUDIT, high bit");
    refused(syscall(SYS_socket, AF_NETLINK, SOCK_RAW, high | NETLINK_AUDIT), EPERM,
            "NETLINK_AUDIT, high bit of the protocol");
}

/* args: port of a listener on the host's loopback. */
static void no_way_out(char **args)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    to.sin_port = htons((uint16_t)atoi(args[0]));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    refused(connect(fd, (struct sockaddr *)&to, sizeof(to)), ECONNREFUSED, "the host's loopback");
    static const char *const addresses[] = {"192.0.2.1", "8.8.8.8", "169.254.169.254", "10.0.0.1"};
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        inet_pton(AF_INET, addresses[i], &to.sin_addr);
        fd = socket(AF_INET, SOCK_STREAM, 0);
        refused(connect(fd, (struct sockaddr *)&to, sizeof(to)), ENETUNREACH, addresses[i]);
        fd = socket(AF_INET, SOCK_DGRAM, 0);
        refused(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), ENETUNREACH,
                addresses[i]);
    }
}

/* A server of one's own works (C7). */
static void own_loopback(char **args)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);
    char byte = 0;
    (void)args;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    allowed(bind(server, (struct sockaddr *)&at, len), "bind");
    allowed(listen(server, 4), "listen");
    allowed(getsockname(server, (struct sockaddr *)&at, &len), "getsockname");
    int client = socket(AF_INET, SOCK_STREAM, 0);
    allowed(connect(client, (struct sockaddr *)&at, len), "connect");
    int peer = accept(server, NULL, NULL);
    allowed(peer, "accept");
    check(send(client, "x", 1, 0) == 1 && recv(peer, &byte, 1, 0) == 1 && byte == 'x', "exchange");
    int one = 1;
    allowed(setsockopt(peer, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)), "setsockopt");
    allowed(shutdown(peer, SHUT_RDWR), "shutdown");
}

static int connect_unix(int type, const char *name, bool abstract)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    memcpy(to.sun_path + abstract, name, n);
    int fd = socket(AF_UNIX, type, 0);
    return connect(fd, (struct sockaddr *)&to,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + n));
}

/* args: name of an abstract socket of the host, then paths of sockets of the host (C15, C17). */
static void unix_sockets(char **args)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    refused(connect_unix(SOCK_STREAM, args[0], true), ECONNREFUSED, "abstract socket");
    refused(connect_unix(SOCK_DGRAM, args[0], true), ECONNREFUSED, "abstract socket");
    for (args++; *args != NULL; args++) {
        int pair[2];
        refused(connect_unix(SOCK_STREAM, *args, false), ENOENT, *args);
        refused(connect_unix(SOCK_DGRAM, *args, false), ENOENT, *args);
        allowed(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), "socketpair");
        strncpy(to.sun_path, *args, sizeof(to.sun_path) - 1);
        refused(connect(pair[0], (struct sockaddr *)&to, sizeof(to)), ENOENT, "a pair's end");
    }
}

/* ---- the filter ---- */

#define CALL(error, name, ...) refused(syscall(SYS_##name, ##__VA_ARGS__), error, #name)

/* args: a word when chroot is allowed. */
static void denied_calls(char **args)
{
    static char room[4096];
    union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY};
    struct perf_event_attr perf = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(perf)};
    struct iovec iov = {room, 1};
    CALL(EPERM, ptrace, 0, 0, 0, 0);
    CALL(EPERM, ptrace, 16, getpid(), 0, 0);
    CALL(EPERM, process_vm_readv, getpid(), &iov, 1, &iov, 1, 0);
    CALL(EPERM, process_vm_writev, getpid(), &iov, 1, &iov, 1, 0);
    CALL(EPERM, process_madvise, -1, &iov, 1, 0, 0);
    CALL(EPERM, kcmp, getpid(), getpid(), 0, 0, 0);
    CALL(EPERM, pidfd_getfd, -1, 0, 0);
    CALL(ENOSYS, clone3, room, 88);
    CALL(EPERM, setns, open("/proc/self/ns/net", O_RDONLY), 0);
    CALL(EPERM, mount, "none", "/tmp", "tmpfs", 0, 0);
    CALL(EPERM, mount, "/usr", "/tmp", 0, MS_BIND, 0);
    CALL(EPERM, umount2, "/proc", MNT_DETACH);
    CALL(EPERM, pivot_root, ".", ".");
    if (args[0] == NULL)
        CALL(EPERM, chroot, ".");
    CALL(EPERM, fsopen, "tmpfs", 0);
    CALL(EPERM, fsconfig, -1, 0, 0, 0, 0);
    CALL(EPERM, fsmount, -1, 0, 0);
    CALL(EPERM, fspick, AT_FDCWD, ".", 0);
    CALL(EPERM, open_tree, AT_FDCWD, ".", 1);
    CALL(EPERM, move_mount, AT_FDCWD, ".", AT_FDCWD, ".", 0);
    CALL(EPERM, mount_setattr, AT_FDCWD, ".", 0, room, 32);
    CALL(EPERM, quotactl, 0, 0, 0, 0);
    CALL(EPERM, swapon, "x", 0);
    CALL(EPERM, swapoff, "x");
    CALL(EPERM, open_by_handle_at, AT_FDCWD, room, 0);
    CALL(EPERM, name_to_handle_at, AT_FDCWD, ".", room, room, 0);
    CALL(EPERM, fanotify_init, 0, 0);
    CALL(EPERM, io_uring_setup, 4, room);
    CALL(EPERM, io_uring_enter, -1, 0, 0, 0, 0, 0);
    CALL(EPERM, io_uring_register, -1, 0, 0, 0);
    CALL(EPERM, bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
    CALL(EPERM, perf_event_open, &perf, 0, -1, -1, 0);
    CALL(EPERM, userfaultfd, 0);
    CALL(EPERM, add_key, "user", "x", "x", 1, KEY_SPEC_PROCESS_KEYRING);
    CALL(EPERM, request_key, "user", "x", "x", 0);
    CALL(EPERM, keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
    CALL(EPERM, reboot, 0, 0, 0, 0);
    CALL(EPERM, kexec_load, 0, 0, 0, 0);
    CALL(EPERM, kexec_file_load, -1, -1, 0, 0, 0);
    CALL(EPERM, init_module, room, 0, room);
    CALL(EPERM, finit_module, -1, room, 0);
    CALL(EPERM, delete_module, "x", 0);
    CALL(EPERM, acct, "x");
    CALL(EPERM, syslog, 10, 0, 0);
#ifdef SYS_iopl
    CALL(EPERM, iopl, 3);
    CALL(EPERM, ioperm, 0, 1, 1);
    CALL(EPERM, lookup_dcookie, 0, room, 1);
#endif
}

static void namespaces(char **args)
{
    static const struct {
        const char *name;
        unsigned long flag;
    } flags[] = {
        {"user", CLONE_NEWUSER},     {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID},
        {"net", CLONE_NEWNET},       {"ipc", CLONE_NEWIPC},  {"uts", CLONE_NEWUTS},
        {"cgroup", CLONE_NEWCGROUP},
    };
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        unsigned long flag = flags[i].flag;
        refused(unshare((int)flag), EPERM, flags[i].name);
        refused(syscall(SYS_unshare, flag | 1UL << 32), EPERM, flags[i].name);
        refused(syscall(SYS_clone, flag | SIGCHLD, 0, 0, 0, 0), EPERM, flags[i].name);
        refused(syscall(SYS_clone, flag | SIGCHLD | 1UL << 32, 0, 0, 0, 0), EPERM, flags[i].name);
        refused(syscall(SYS_clone, flag | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM,
                flags[i].name);
    }
    refused(unshare(CLONE_NEWTIME), EPERM, "time");
    allowed(unshare(CLONE_FS | CLONE_FILES), "unshare of what is not a namespace");
}

static void *thread_main(void *arg)
{
    return arg;
}

static void ordinary_processes(char **args)
{
    pthread_t thread;
    int status;
    (void)args;
    check(pthread_create(&thread, NULL, thread_main, NULL) == 0, "a thread");
    pthread_join(thread, NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7, "a child");
    check(system("exit 3") == 3 << 8, "system()");
    allowed((long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == -1
                ? -1
                : 0,
            "executable memory");
}

/* args: a terminal is descriptor 0 when the word "tty" is given. */
static void terminal_injection(char **args)
{
    char c = 'x';
    int fds[3] = {0, open("/dev/ptmx", O_RDWR | O_NOCTTY), open("/dev/tty", O_RDWR)};
    bool tty = args[0] != NULL;
    check(!tty || isatty(0), "no terminal");
    check(!tty || fds[2] >= 0, "no controlling terminal");
    check(tty || fds[2] < 0, "a controlling terminal although none was asked for");
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        refused(ioctl(fds[i], TIOCSTI, &c), EPERM, "TIOCSTI");
        refused(syscall(SYS_ioctl, fds[i], TIOCSTI | 1UL << 32, &c), EPERM, "TIOCSTI, high bit");
        refused(syscall(SYS_ioctl, fds[i], TIOCSTI | 1UL << 63, &c), EPERM, "TIOCSTI, top bit");
        refused(ioctl(fds[i], TIOCLINUX, &c), EPERM, "TIOCLINUX");
        refused(syscall(SYS_ioctl, fds[i], TIOCLINUX | 1UL << 40, &c), EPERM, "TIOCLINUX, high");
    }
    if (tty) {
        struct winsize size;
        allowed(ioctl(0, TIOCGWINSZ, &size), "TIOCGWINSZ");
        check(tcgetpgrp(0) == getpgrp(), "not in the foreground");
    }
}

/* A child that makes a call by another table of numbers must die of it. */
static void foreign_call(const char *what, void (*call)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        call();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    check(WIFSIGNALED(status), "%s: survived with %d", what, WEXITSTATUS(status));
}

#ifdef __x86_64__
static void call_i386(void)
{
    long rc = 20; /* getpid */
    __asm__ volatile("int $0x80" : "+a"(rc)::"memory", "r8", "r9", "r10", "r11");
}

static void call_x32(void)
{
    syscall(0x40000000 | SYS_getpid);
}
#endif

static void foreign_numbers(char **args)
{
    (void)args;
#ifdef __x86_64__
    foreign_call("i386", call_i386);
    foreign_call("x32", call_x32);
#else
    (void)foreign_call;
#endif
}

/* ---- signals ---- */

/* args: numbers of processes of the host. */
static void signals(char **args)
{
    static const int harmless[] = {SIGTERM, SIGINT, SIGHUP, SIGPWR, SIGKILL, SIGSTOP, SIGUSR1};
    for (; *args != NULL; args++) {
        refused(kill(atoi(*args), 0), ESRCH, "a process of the host");
        refused(kill(atoi(*args), SIGKILL), ESRCH, "a process of the host");
        refused(syscall(SYS_pidfd_open, atoi(*args), 0), ESRCH, "a process of the host");
    }
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
        allowed(kill(1, harmless[i]), "a signal to process 1");
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    check(waitpid(pid, NULL, 0) == pid, "process 1 took a signal of ours seriously");
}

static void set_user_id(char **args)
{
    check(geteuid() == getuid() && geteuid() == (uid_t)atoi(args[0]), "the user is %d",
          (int)geteuid());
    refused_or(setuid(getuid() + 1), EPERM, EINVAL, "setuid");
    refused_or(setgid(getgid() + 1), EPERM, EINVAL, "setgid");
}

/* ---- the table ---- */

static const struct {
    const char *name;
    void (*run)(char **args);
} attacks[] = {
    {"absent", absent},
    {"reads_as_empty", reads_as_empty},
    {"write_outside", write_outside},
    {"workspace_writable", workspace_writable},
    {"workspace_readonly", workspace_readonly},
    {"protected_directories", protected_directories},
    {"protected_file", protected_file},
    {"cannot_rename", cannot_rename},
    {"create_protected", create_protected},
    {"create_protected_deep", create_protected_deep},
    {"replace_link", replace_link},
    {"proc_one", proc_one},
    {"no_word_in_proc", no_word_in_proc},
    {"exact_environment", exact_environment},
    {"privileges", privileges},
    {"descriptors", descriptors},
    {"kernel_files", kernel_files},
    {"devices", devices},
    {"families", families},
    {"netlink", netlink},
    {"no_way_out", no_way_out},
    {"own_loopback", own_loopback},
    {"unix_sockets", unix_sockets},
    {"denied_calls", denied_calls},
    {"namespaces", namespaces},
    {"ordinary_processes", ordinary_processes},
    {"terminal_injection", terminal_injection},
    {"foreign_numbers", foreign_numbers},
    {"signals", signals},
    {"set_user_id", set_user_id},
    {"make_name", make_name},
    {"churn_names", churn_names},
    {"ten_thousand_denials", ten_thousand_denials},
    {"killed_in_calls", killed_in_calls},
    {"calls_with_pointers", calls_with_pointers},
    {"fork_bomb", fork_bomb},
    {"limits_of_process_one", limits_of_process_one},
    {"forged_signals", forged_signals},
    {"pidfd_of_process_one", pidfd_of_process_one},
    {"stop_everything", stop_everything},
    {"by_descriptor", by_descriptor},
    {"nameless_programs", nameless_programs},
    {"proc_is_read_only", proc_is_read_only},
    {"subvolumes", subvolumes},
    {"memory_files", memory_files},
    {"watching", watching},
    {"allowed_namespaces", allowed_namespaces},
    {"nested_namespaces", nested_namespaces},
    {"fences_from_inside", fences_from_inside},
    {"files_of_others", files_of_others},
    {"capabilities_of_the_machine", capabilities_of_the_machine},
    {"file_capabilities", file_capabilities},
    {"no_capabilities", no_capabilities},
    {"second_listener", second_listener},
    {"process_one_from_inside", process_one_from_inside},
    {"left_in_namespaces", left_in_namespaces},
    {"network_from_inside", network_from_inside},
    {"foreign_ids", foreign_ids},
};

/* `hostile inside KINDS NAME [ARG...]`: the same from namespaces of one's own, "user" at least. */
int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "inside") == 0) {
        enter(argv[2]);
        argv += 2;
        argc -= 2;
    }
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(attacks); i++) {
        if (strcmp(attacks[i].name, argv[1]) != 0)
            continue;
        attacks[i].run(argv + 2);
        printf("%s: %d failures\n", argv[1], failures);
        return failures != 0;
    }
    fprintf(stderr, "hostile: no such attack\n");
    return 2;
}
