/* proxy/harden: the system call filter.
 *
 * An allow list in one table; everything else ends the process, because a call that the proxy never
 * makes is made by somebody else. Opening files only fails: the C library tries it in places that
 * do without. The program is written by hand instead of with a filter library: it is straight, the
 * kernel caches the verdict of every number that needs no argument checked, and loading it takes
 * microseconds of a start that a command waits for.
 */
#include "base/mem.h"
#include "proxy/harden.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#else
#error "name the architecture's audit number here"
#endif

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define FILTER_SANITIZED 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define FILTER_SANITIZED 1
#endif

/* x32 numbers carry this bit under the x86-64 architecture number. */
#define X32_BIT 0x40000000u

static const uint32_t allowed[] = {
    /* sockets and the loop */
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_recvfrom, SYS_sendto, SYS_recvmsg, SYS_sendmsg,
    SYS_accept4, SYS_connect, SYS_shutdown, SYS_close, SYS_getsockopt, SYS_setsockopt,
    SYS_getsockname, SYS_getpeername, SYS_splice, SYS_pipe2, SYS_fcntl, SYS_epoll_ctl,
    SYS_epoll_pwait,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
    /* memory (mmap and mprotect: see the arguments), time, random bytes */
    SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk, SYS_clock_gettime, SYS_getrandom,
    /* what a clock that has no fast path falls back to, in the TLS library */
    SYS_gettimeofday,
#ifdef SYS_time
    SYS_time,
#endif
    /* ending, also by abort() */
    SYS_exit, SYS_exit_group, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_rt_sigreturn, SYS_getpid,
    SYS_gettid, SYS_tgkill, SYS_futex, SYS_restart_syscall};

static const uint32_t failing[] = {
#ifdef SYS_open
    SYS_open,
#endif
    SYS_openat,
    SYS_newfstatat,
};

#define ARG_LOW(n) (offsetof(struct seccomp_data, args) + (n)*8)
#define STMT(code, k) (struct sock_filter) BPF_STMT(code, k)
#define JUMP(code, k, t, f) (struct sock_filter) BPF_JUMP(code, k, t, f)
#define RETURN(k) STMT(BPF_RET | BPF_K, k)

struct program {
    struct sock_filter code[2 * (ARRAY_LEN(allowed) + ARRAY_LEN(failing)) + 32];
    unsigned short n;
};

static void emit(struct program *p, struct sock_filter one)
{
    ensure(p->n < ARRAY_LEN(p->code));
    p->code[p->n++] = one;
}

static void on_number(struct program *p, uint32_t number, uint32_t action)
{
    emit(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    emit(p, RETURN(action));
}

/* Only where argument `arg` has none of the bits of `mask`. */
static void on_number_without(struct program *p, uint32_t number, unsigned arg, uint32_t mask)
{
    emit(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4));
    emit(p, STMT(BPF_LD | BPF_W | BPF_ABS, ARG_LOW(arg)));
    emit(p, JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1));
    emit(p, RETURN(SECCOMP_RET_ERRNO | EPERM));
    emit(p, RETURN(SECCOMP_RET_ALLOW));
}

/* Sockets of the two internet families only: no Unix, netlink, packet or other sockets. */
static void on_socket(struct program *p)
{
    emit(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5));
    emit(p, STMT(BPF_LD | BPF_W | BPF_ABS, ARG_LOW(0)));
    emit(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0));
    emit(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1));
    emit(p, RETURN(SECCOMP_RET_ALLOW));
    emit(p, RETURN(SECCOMP_RET_ERRNO | EPERM));
}

static void build(struct program *p)
{
    emit(p, STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
    emit(p, JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0));
    emit(p, RETURN(SECCOMP_RET_KILL_PROCESS));
    emit(p, STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    emit(p, JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
    emit(p, RETURN(SECCOMP_RET_KILL_PROCESS));
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        on_number(p, allowed[i], SECCOMP_RET_ALLOW);
    for (size_t i = 0; i < ARRAY_LEN(failing); i++)
        on_number(p, failing[i], SECCOMP_RET_ERRNO | EACCES);
    on_number_without(p, SYS_mmap, 2, PROT_EXEC);
    on_number_without(p, SYS_mprotect, 2, PROT_EXEC);
    on_socket(p);
    emit(p, RETURN(SECCOMP_RET_KILL_PROCESS));
}

bool harden_has_filter(void)
{
#ifdef FILTER_SANITIZED
    return false;
#else
    return true;
#endif
}

int harden_filter(void)
{
    struct program p = {.n = 0};
    build(&p);
    const struct sock_fprog prog = {.len = p.n, .filter = p.code};
    if (!harden_has_filter())
        return 0;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) < 0 ? -errno : 0;
}
