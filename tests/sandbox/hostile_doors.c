/* tests/sandbox/hostile_doors: ways around the walls by what is open to every process: process 1 of
 * the same user, descriptors that outlive a rename, programs that have no name, and the kernel's
 * files.
 */
#include "hostile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define HIGH (1L << 32)

/* ---- process 1 ---- */

/* args: a name that is protected and missing. Process 1 puts it right only while it can open files.
 */
void limits_of_process_one(char **args)
{
    static const int resources[] = {RLIMIT_NOFILE, RLIMIT_CPU,   RLIMIT_AS,   RLIMIT_DATA,
                                    RLIMIT_FSIZE,  RLIMIT_STACK, RLIMIT_NPROC};
    const struct rlimit none = {0, 0};
    struct rlimit is;
    for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
        refused(prlimit(1, resources[i], &none, NULL), EPERM, "prlimit of process 1");
        refused(syscall(SYS_prlimit64, HIGH | 1, resources[i], &none, NULL), EPERM,
                "prlimit of process 1, high bit");
    }
    allowed(prlimit(0, RLIMIT_NOFILE, NULL, &is), "its own limits");
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    allowed(prlimit(pid, RLIMIT_NOFILE, &none, NULL), "those of a child");
    kill(pid, SIGKILL);
    mkdir(args[0], 0755);
}

/* The kernel sends it, with no sender. */
static void owned_by_process_one(int signal)
{
    int ends[2];
    allowed(pipe(ends), "pipe");
    allowed(fcntl(ends[0], F_SETOWN, 1), "F_SETOWN");
    allowed(fcntl(ends[0], F_SETSIG, signal), "F_SETSIG");
    allowed(fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK), "O_ASYNC");
    allowed((int)write(ends[1], "x", 1), "a byte that makes the kernel send it");
    close(ends[0]);
    close(ends[1]);
}

/* args: none. What a sender writes into a signal himself is not believed: as if it came from
 * outside, or from the kernel because the runner ended. */
void forged_signals(char **args)
{
    static const int signals[] = {SIGPWR, SIGTERM, SIGCHLD, SIGUSR1, SIGCONT};
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        siginfo_t info = {.si_signo = signals[i], .si_code = SI_QUEUE};
        allowed(syscall(SYS_rt_sigqueueinfo, 1, signals[i], &info), "a signal that was written");
        info.si_code = SI_USER;
        refused(syscall(SYS_rt_sigqueueinfo, 1, signals[i], &info), EPERM, "one of kill's");
        info.si_code = SI_KERNEL;
        refused(syscall(SYS_rt_sigqueueinfo, 1, signals[i], &info), EPERM, "one of the kernel's");
        owned_by_process_one(signals[i]);
    }
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    check(waitpid(pid, NULL, 0) == pid, "process 1 believed a signal");
}

/* args: none. By its descriptor process 1 is as far away as by its number. */
void pidfd_of_process_one(char **args)
{
    int fd = (int)syscall(SYS_pidfd_open, 1, 0);
    (void)args;
    allowed(fd, "pidfd_open");
    allowed(syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0), "SIGKILL");
    refused(syscall(SYS_pidfd_getfd, fd, 3, 0), EPERM, "pidfd_getfd");
    refused(syscall(SYS_setns, fd, CLONE_NEWNS), EPERM, "setns");
    for (unsigned request = 1; request <= 10; request++)
        check(ioctl(fd, _IO(0xff, request)) < 0, "a namespace of process 1 (%u)", request);
    check(open("/proc/1/exe", O_PATH) < 0, "/proc/1/exe");
    check(open("/proc/1/ns/mnt", O_PATH) < 0 || setns(open("/proc/1/ns/mnt", O_RDONLY), 0) < 0,
          "/proc/1/ns/mnt");
    check(execl("/proc/1/exe", "x", NULL) < 0, "executing process 1's program");
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    check(waitpid(pid, NULL, 0) == pid, "process 1 took it seriously");
}

/* args: none. Everything is stopped, in sessions of its own; the runner's limit ends it. */
void stop_everything(char **args)
{
    (void)args;
    for (int i = 0; i < 8; i++) {
        if (fork() == 0) {
            setsid();
            if (fork() != 0)
                _exit(0);
            setsid();
            for (;;)
                kill(i % 2 == 0 ? getpid() : -1, SIGSTOP);
        }
    }
    kill(1, SIGSTOP);
    kill(-1, SIGSTOP);
    for (;;)
        kill(getpid(), SIGSTOP);
}

/* ---- descriptors and names ---- */

static long open_how(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {.flags = flags, .resolve = resolve};
    return syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* args: a directory that is protected and holds "file", and a directory on the way to it. No
 * descriptor, however it was got, is a way around the mount points. */
void by_descriptor(char **args)
{
    char path[256];
    int dir = open(args[0], O_PATH | O_DIRECTORY);
    int here = open(".", O_RDONLY | O_DIRECTORY);
    int way = open(args[1], O_PATH | O_DIRECTORY);
    snprintf(path, sizeof(path), "%s/file", args[0]);
    int file = open(path, O_RDONLY);
    refused(openat(dir, "file", O_WRONLY), EROFS, "openat in it");
    refused(openat(dir, "new", O_WRONLY | O_CREAT, 0600), EROFS, "openat makes in it");
    refused(unlinkat(dir, "file", 0), EROFS, "unlinkat in it");
    refused_or(renameat(here, args[1], here, "moved"), EBUSY, EROFS, "renameat of the way");
    refused_or(renameat(dir, "file", here, "stolen"), EXDEV, EROFS, "renameat out of it");
    refused_or(linkat(dir, "file", here, "stolen", 0), EXDEV, EROFS, "linkat out of it");
    refused_or(linkat(file, "", here, "stolen", AT_EMPTY_PATH), ENOENT, EXDEV, "by descriptor");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    refused(linkat(AT_FDCWD, path, here, "stolen", AT_SYMLINK_FOLLOW), EXDEV, "by /proc");
    refused(open(path, O_WRONLY), EROFS, "opened again");
    refused(truncate(path, 0), EROFS, "truncate");
    refused(fchmod(file, 0777), EROFS, "fchmod");
    refused(futimens(file, NULL), EROFS, "futimens");
    refused(open_how(dir, "file", O_WRONLY, RESOLVE_IN_ROOT), EROFS, "openat2 in it");
    refused(open_how(way, "../../../../etc/hostname", O_RDONLY, RESOLVE_BENEATH), EXDEV, "beneath");
    long up = open_how(way, "../../../../..", O_PATH, RESOLVE_IN_ROOT);
    allowed(up, "openat2 up to its root");
    struct stat a, b;
    check(fstat((int)up, &a) == 0 && fstat(way, &b) == 0 && a.st_ino == b.st_ino,
          "openat2 left its root");
}

/* args: none. */
void nameless_programs(char **args)
{
    char copy[] = "/tmp/true-XXXXXX";
    char name[] = "true";
    char *const argv[] = {name, NULL};
    int status;
    (void)args;
    int from = open("/bin/true", O_RDONLY);
    int memory = memfd_create("x", 0);
    int to = mkstemp(copy);
    static char bytes[1 << 20];
    ssize_t n = read(from, bytes, sizeof(bytes));
    check(write(memory, bytes, (size_t)n) == n && write(to, bytes, (size_t)n) == n, "copies");
    fchmod(to, 0700);
    close(to);
    to = open(copy, O_RDONLY);
    unlink(copy);
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            fexecve(i == 0 ? memory : to, argv, environ);
            _exit(9);
        }
        check(waitpid(pid, &status, 0) == pid && status == 0, "a program without a name");
    }
    refused_or(open("/bin/true", O_WRONLY | O_TRUNC), EROFS, EACCES, "a program of the platform");
    check(open("/proc/self/exe", O_WRONLY) < 0, "its own program, for writing");
}

/* ---- the kernel's files and calls ---- */

/* What root of a user namespace opens in spite of its mode has nothing to write to. */
static bool takes_words(int fd, bool opened)
{
    return fd >= 0 && (!opened || write(fd, "", 0) >= 0);
}

static void no_writing_below(const char *dir, int depth, bool opened)
{
    DIR *d = opendir(dir);
    for (struct dirent *it = d == NULL ? NULL : readdir(d); it != NULL; it = readdir(d)) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s", dir, it->d_name);
        if (it->d_name[0] == '.' || (depth == 0 && it->d_name[0] >= '0' && it->d_name[0] <= '9'))
            continue;
        if (it->d_type == DT_DIR)
            no_writing_below(path, depth + 1, opened);
        if (it->d_type != DT_REG)
            continue;
        int fd = open(path, O_WRONLY | O_NONBLOCK);
        check(!takes_words(fd, opened), "%s can be written", path);
        if (fd >= 0)
            close(fd);
    }
    if (d != NULL)
        closedir(d);
}

/* args: whether the files of root's are the command's own ("root"; else "user"), and a word when
 * modes are no hindrance. What may be written of /proc belongs to a process; /proc/pressure is
 * everybody's, who is told of it. */
void proc_is_read_only(char **args)
{
    static const char *const dirs[] = {"/proc/sys",  "/proc/irq",  "/proc/bus",
                                       "/proc/fs",   "/proc/scsi", "/proc/driver",
                                       "/proc/acpi", "/proc/tty",  "/proc/net"};
    static const char *const gone[] = {"/proc/sys/fs/binfmt_misc/register",
                                       "/proc/sysrq-trigger",
                                       "/proc/sys/kernel/core_pattern",
                                       "/proc/kcore",
                                       "/proc/dynamic_debug/control",
                                       "/proc/mtrr",
                                       "/dev/userfaultfd",
                                       "/sys/kernel/debug",
                                       "/dev/mqueue/x"};
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        no_writing_below(dirs[i], 1, args[1] != NULL);
    for (size_t i = 0; i < ARRAY_LEN(gone); i++)
        check(open(gone[i], O_WRONLY) < 0, "%s", gone[i]);
    /* Which files are there is the kernel's business; whose they are, the mount's. */
    static const char *const roots[] = {"/proc/acpi", "/proc/driver", "/proc/fs", "/proc/mtrr"};
    struct statvfs v;
    for (size_t i = 0; i < ARRAY_LEN(roots) && strcmp(args[0], "root") == 0; i++)
        check(statvfs(roots[i], &v) < 0 || (v.f_flag & ST_RDONLY) != 0, "%s is root's", roots[i]);
}

/* args: none. Subvolumes of btrfs: that they are refused does not depend on the file system. */
void subvolumes(char **args)
{
    static const unsigned long requests[] = {
        BTRFS_IOC_SUBVOL_CREATE,   BTRFS_IOC_SUBVOL_CREATE_V2,    BTRFS_IOC_SNAP_CREATE,
        BTRFS_IOC_SNAP_CREATE_V2,  BTRFS_IOC_SNAP_DESTROY,        BTRFS_IOC_SNAP_DESTROY_V2,
        BTRFS_IOC_SUBVOL_SETFLAGS, BTRFS_IOC_SET_RECEIVED_SUBVOL,
    };
    static struct btrfs_ioctl_vol_args_v2 room;
    (void)args;
    int here = open(".", O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        refused(syscall(SYS_ioctl, here, requests[i], &room), EPERM, "a subvolume");
        refused(syscall(SYS_ioctl, here, requests[i] | 1UL << 32, &room), EPERM, "high bit");
    }
    int a = open("a", O_RDWR | O_CREAT, 0600);
    int b = open("b", O_RDWR | O_CREAT, 0600);
    int rc = ioctl(b, FICLONE, a);
    check(rc == 0 || errno != EPERM, "cp --reflink is refused");
    unlink("a");
    unlink("b");
}

/* args: none. What is in memory has an end that is known. */
void memory_files(char **args)
{
    static const char *const places[] = {"/tmp", "/dev/shm"};
    struct statvfs fs;
    (void)args;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        check(statvfs(places[i], &fs) == 0 && fs.f_blocks > 0, "%s has no end", places[i]);
}

/* args: none. */
void watching(char **args)
{
    int fd = inotify_init1(IN_CLOEXEC);
    (void)args;
    allowed(inotify_add_watch(fd, ".", IN_CREATE), "inotify in the workspace");
    refused(syscall(SYS_fanotify_init, 0, 0), EPERM, "fanotify");
    refused(syscall(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID */, 0), EPERM, "fanotify by handle");
}
