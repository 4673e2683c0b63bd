/* tests/helpers/older_mounts: runs a program as on a kernel before Linux 6.15, where open_tree()
 * makes copies only of what is attached in the caller's mount namespace.
 *
 * `older_mounts PROGRAM ARG...`: a copy of a mount that is attached nowhere gives EINVAL in PROGRAM
 * and all that comes from it. A filter has the kernel stop at each open_tree(), and we, who trace,
 * look in the table of mounts whether the mount of its descriptor is there. Ends as PROGRAM does.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLONE_TREE 1u /* OPEN_TREE_CLONE */
#define OPTIONS                                                                                    \
    (PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |      \
     PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)

static void start(char **argv)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open_tree, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* which cannot be done where somebody traces */
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        _exit(2);
    execv(argv[0], argv);
    _exit(2);
}

/* The number of the mount that a descriptor is of, or of its tree's first mount; -1: none. */
static long mount_of(pid_t pid, int fd)
{
    char path[64], line[256];
    long id = -1;
    snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)pid, fd);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        sscanf(line, "mnt_id: %ld", &id);
    if (f != NULL)
        fclose(f);
    return id;
}

static bool is_attached(pid_t pid, long mount)
{
    char path[64], *line = NULL;
    size_t cap = 0;
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
    FILE *f = fopen(path, "re");
    while (f != NULL && !found && getline(&line, &cap, f) > 0)
        found = atol(line) == mount;
    free(line);
    if (f != NULL)
        fclose(f);
    return found;
}

/* At an open_tree(). A number of -1 is no call at all; what it gives is the register as it is. */
static void answer(pid_t pid)
{
    struct user_regs_struct regs;
    if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0 || (regs.rdx & CLONE_TREE) == 0)
        return;
    long mount = mount_of(pid, (int)regs.rdi);
    if (mount < 0 || is_attached(pid, mount))
        return;
    regs.orig_rax = (unsigned long long)-1;
    regs.rax = (unsigned long long)-EINVAL;
    ptrace(PTRACE_SETREGS, pid, NULL, &regs);
}

/* What a stop hands on to the process. */
static int signal_of(int status)
{
    int signal = WSTOPSIG(status);
    bool ours = status >> 16 != 0 || signal == SIGSTOP || signal == SIGTRAP;
    return ours ? 0 : signal;
}

static int follow(pid_t first)
{
    int status, end = 2;
    for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;) {
        if (WIFSTOPPED(status)) {
            if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8))
                answer(pid);
            ptrace(PTRACE_CONT, pid, NULL, (void *)(long)signal_of(status));
        } else if (pid == first) {
            end = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
    return end;
}

int main(int argc, char **argv)
{
    int status;
    pid_t first = argc > 1 ? fork() : -1;
    if (first == 0)
        start(argv + 1);
    if (first < 0 || waitpid(first, &status, 0) != first || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, first, NULL, OPTIONS) < 0 ||
        ptrace(PTRACE_CONT, first, NULL, NULL) < 0)
        return 2;
    return follow(first);
}
