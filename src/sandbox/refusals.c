/* sandbox/refusals: see refusals.h. */
#include "sandbox/refusals.h"

#include "base/mem.h"
#include "sys/fd.h"
#include "sys/notify.h"
#include "sys/tighten.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <linux/filter.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* ---- which call it was ---- */

static const struct name {
    long number;
    const char *name;
    const char *rule;
} names[] = {
    {SYS_ptrace, "ptrace", "filter.trace"},
    {SYS_process_vm_readv, "process_vm_readv", "filter.trace"},
    {SYS_process_vm_writev, "process_vm_writev", "filter.trace"},
    {SYS_kcmp, "kcmp", "filter.trace"},
    {SYS_process_madvise, "process_madvise", "filter.process"},
    {SYS_pidfd_getfd, "pidfd_getfd", "filter.process"},
    {SYS_clone, "clone", "filter.namespace"},
    {SYS_unshare, "unshare", "filter.namespace"},
    {SYS_setns, "setns", "filter.namespace"},
    {SYS_mount, "mount", "filter.mount"},
    {SYS_umount2, "umount2", "filter.mount"},
    {SYS_pivot_root, "pivot_root", "filter.mount"},
    {SYS_chroot, "chroot", "filter.mount"},
    {SYS_fsopen, "fsopen", "filter.mount"},
    {SYS_fsconfig, "fsconfig", "filter.mount"},
    {SYS_fsmount, "fsmount", "filter.mount"},
    {SYS_fspick, "fspick", "filter.mount"},
    {SYS_open_tree, "open_tree", "filter.mount"},
    {SYS_move_mount, "move_mount", "filter.mount"},
    {SYS_mount_setattr, "mount_setattr", "filter.mount"},
    {SYS_quotactl, "quotactl", "filter.mount"},
    {SYS_quotactl_fd, "quotactl_fd", "filter.mount"},
    {SYS_swapon, "swapon", "filter.mount"},
    {SYS_swapoff, "swapoff", "filter.mount"},
    {SYS_open_by_handle_at, "open_by_handle_at", "filter.handle"},
    {SYS_name_to_handle_at, "name_to_handle_at", "filter.handle"},
    {SYS_fanotify_init, "fanotify_init", "filter.handle"},
    {SYS_lookup_dcookie, "lookup_dcookie", "filter.handle"},
    {SYS_io_uring_setup, "io_uring_setup", "filter.io_uring"},
    {SYS_io_uring_enter, "io_uring_enter", "filter.io_uring"},
    {SYS_io_uring_register, "io_uring_register", "filter.io_uring"},
    {SYS_bpf, "bpf", "filter.kernel"},
    {SYS_perf_event_open, "perf_event_open", "filter.kernel"},
    {SYS_userfaultfd, "userfaultfd", "filter.kernel"},
    {SYS_add_key, "add_key", "filter.kernel"},
    {SYS_request_key, "request_key", "filter.kernel"},
    {SYS_keyctl, "keyctl", "filter.kernel"},
    {SYS_reboot, "reboot", "filter.machine"},
    {SYS_kexec_load, "kexec_load", "filter.machine"},
#ifdef SYS_kexec_file_load
    {SYS_kexec_file_load, "kexec_file_load", "filter.machine"},
#endif
    {SYS_init_module, "init_module", "filter.machine"},
    {SYS_finit_module, "finit_module", "filter.machine"},
    {SYS_delete_module, "delete_module", "filter.machine"},
    {SYS_acct, "acct", "filter.machine"},
    {SYS_syslog, "syslog", "filter.machine"},
#ifdef SYS_iopl
    {SYS_iopl, "iopl", "filter.machine"},
    {SYS_ioperm, "ioperm", "filter.machine"},
#endif
    {SYS_prlimit64, "prlimit64", "filter.process"},
    {SYS_ioctl, "ioctl", "filter.terminal"},
    {SYS_socket, "socket", "filter.socket"},
    {SYS_socketpair, "socketpair", "filter.socket"},
    {SYS_setsockopt, "setsockopt", "filter.network"},
    {SYS_personality, "personality", "filter.personality"},
};

/* The other bits of a socket's type are flags. */
#define SOCK_TYPES 0xfu

struct word {
    uint32_t value;
    const char *word;
};

static const struct word namespaces[] = {
    {CLONE_NEWNS, "CLONE_NEWNS"},         {CLONE_NEWUSER, "CLONE_NEWUSER"},
    {CLONE_NEWPID, "CLONE_NEWPID"},       {CLONE_NEWNET, "CLONE_NEWNET"},
    {CLONE_NEWIPC, "CLONE_NEWIPC"},       {CLONE_NEWUTS, "CLONE_NEWUTS"},
    {CLONE_NEWCGROUP, "CLONE_NEWCGROUP"},
};

static const struct word families[] = {
    {AF_NETLINK, "AF_NETLINK"},
    {AF_PACKET, "AF_PACKET"},
    {AF_VSOCK, "AF_VSOCK"},
    {AF_ALG, "AF_ALG"},
    {AF_BLUETOOTH, "AF_BLUETOOTH"},
    {AF_CAN, "AF_CAN"},
    {AF_KEY, "AF_KEY"},
    {AF_XDP, "AF_XDP"},
    {AF_TIPC, "AF_TIPC"},
    {AF_RDS, "AF_RDS"},
    {AF_NFC, "AF_NFC"},
    {AF_KCM, "AF_KCM"},
    {AF_INET, "AF_INET"},
    {AF_INET6, "AF_INET6"},
};

static const struct word types[] = {
    {SOCK_RAW, "SOCK_RAW"},
    {SOCK_PACKET, "SOCK_PACKET"},
};

static const struct word requests[] = {
    {TIOCSTI, "TIOCSTI"},
    {TIOCLINUX, "TIOCLINUX"},
    {BTRFS_IOC_SUBVOL_CREATE, "BTRFS_IOC_SUBVOL_CREATE"},
    {BTRFS_IOC_SUBVOL_CREATE_V2, "BTRFS_IOC_SUBVOL_CREATE"},
    {BTRFS_IOC_SNAP_CREATE, "BTRFS_IOC_SNAP_CREATE"},
    {BTRFS_IOC_SNAP_CREATE_V2, "BTRFS_IOC_SNAP_CREATE"},
    {BTRFS_IOC_SNAP_DESTROY, "BTRFS_IOC_SNAP_DESTROY"},
};

/* A value that the table does not have gets one word: a caller could go through all of them. */
static const char *find_word(const struct word *words, size_t n, uint32_t value)
{
    for (size_t i = 0; i < n; i++) {
        if (words[i].value == value)
            return words[i].word;
    }
    return "another one";
}

/* What is never allowed first: of a call with several flags it is the one to be told. The bit of
 * CLONE_NEWTIME is of the signal in clone. */
static const char *find_namespace(uint32_t flags, bool unshare)
{
    if (unshare && (flags & CLONE_NEWTIME) != 0)
        return "CLONE_NEWTIME";
    for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
        if ((flags & namespaces[i].value) != 0)
            return namespaces[i].word;
    }
    return "another one";
}

/* Of IPv4 and IPv6 it is not the family that is refused. */
static const char *find_socket(const struct seccomp_data *call)
{
    uint32_t family = (uint32_t)call->args[0];
    if (call->nr == SYS_socket && (family == AF_INET || family == AF_INET6))
        return find_word(types, ARRAY_LEN(types), (uint32_t)call->args[1] & SOCK_TYPES);
    return find_word(families, ARRAY_LEN(families), family);
}

/* The word for the argument that decided; NULL when none did. */
static const char *name_argument(const struct seccomp_data *call)
{
    uint32_t first = (uint32_t)call->args[0];
    if (call->nr == SYS_clone || call->nr == SYS_unshare)
        return find_namespace(first, call->nr == SYS_unshare);
    if (call->nr == SYS_socket || call->nr == SYS_socketpair)
        return find_socket(call);
    if (call->nr == SYS_ioctl)
        return find_word(requests, ARRAY_LEN(requests), (uint32_t)call->args[1]);
    return NULL;
}

static bool is_of_btrfs(uint32_t request)
{
    return (request >> 8 & 0xff) == BTRFS_IOCTL_MAGIC;
}

const char *refusals_name(const struct seccomp_data *call, char *ret_what)
{
    const char *argument = name_argument(call);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (names[i].number != call->nr)
            continue;
        if (argument == NULL)
            snprintf(ret_what, DENIAL_WHAT_MAX, "%s", names[i].name);
        else
            snprintf(ret_what, DENIAL_WHAT_MAX, "%s(%s)", names[i].name, argument);
        bool subvolume = call->nr == SYS_ioctl && is_of_btrfs((uint32_t)call->args[1]);
        return subvolume ? "filter.subvolume" : names[i].rule;
    }
    snprintf(ret_what, DENIAL_WHAT_MAX, "system call %d", call->nr);
    return "filter.other";
}

/* ---- what the program says ---- */

static const struct sock_filter *program_of(const struct buf *filter, size_t *ret_n)
{
    *ret_n = filter->len / sizeof(struct sock_filter);
    return (const struct sock_filter *)(const void *)buf_bytes(filter);
}

/* The accumulator against the instruction's constant. */
static bool compare(const struct sock_filter *in, uint32_t a)
{
    switch (BPF_OP(in->code)) {
    case BPF_JEQ:
        return a == in->k;
    case BPF_JGT:
        return a > in->k;
    case BPF_JGE:
        return a >= in->k;
    default:
        return (a & in->k) != 0; /* BPF_JSET */
    }
}

uint32_t refusals_judge(const struct buf *filter, const struct seccomp_data *call)
{
    const uint32_t odd = SECCOMP_RET_ERRNO | EPERM;
    size_t n;
    const struct sock_filter *program = program_of(filter, &n);
    uint32_t a = 0;
    for (size_t at = 0; at < n; at++) {
        const struct sock_filter *in = &program[at];
        switch (in->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            if (in->k > sizeof(*call) - sizeof(a))
                return odd;
            memcpy(&a, (const char *)call + in->k, sizeof(a));
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= in->k;
            break;
        case BPF_JMP | BPF_JA:
            at += in->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
        case BPF_JMP | BPF_JGT | BPF_K:
        case BPF_JMP | BPF_JGE | BPF_K:
        case BPF_JMP | BPF_JSET | BPF_K:
            at += compare(in, a) ? in->jt : in->jf;
            break;
        case BPF_RET | BPF_K:
            return in->k;
        default:
            return odd;
        }
    }
    return odd;
}

/* ---- the listener ---- */

static bool is_told(uint32_t verdict)
{
    return (verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO &&
           (verdict & SECCOMP_RET_DATA) != ENOSYS;
}

/* The program with its refusals changed into questions. */
static int load_asking(const struct buf *filter)
{
    size_t n;
    const struct sock_filter *program = program_of(filter, &n);
    autofree struct sock_filter *asking = (void *)mem_dup(program, filter->len);
    for (size_t i = 0; i < n; i++) {
        if (asking[i].code == (BPF_RET | BPF_K) && is_told(asking[i].k))
            asking[i].k = SECCOMP_RET_USER_NOTIF;
    }
    return notify_load_filter(asking, filter->len);
}

int refusals_load(struct refusals *r, struct buf *filter)
{
    *r = (struct refusals){.fd = load_asking(filter), .filter = *filter};
    *filter = (struct buf)BUF_INIT;
    if (r->fd >= 0)
        return 0;
    r->fd = -1;
    snprintf(r->list[0].rule, DENIAL_RULE_MAX, "filter.unobserved");
    int rc = tighten_load_filter(buf_bytes(&r->filter), r->filter.len);
    buf_fini(&r->filter);
    return rc;
}

void refusals_fini(struct refusals *r)
{
    mem_cleanup_fd(&r->fd);
    r->fd = -1;
    buf_fini(&r->filter);
}

static void answer(struct refusals *r, uint64_t id, const struct seccomp_data *call)
{
    char what[DENIAL_WHAT_MAX];
    uint32_t verdict = refusals_judge(&r->filter, call);
    int error = is_told(verdict) ? (int)(verdict & SECCOMP_RET_DATA) : EPERM;
    notify_refuse(r->fd, id, error);
    const char *rule = refusals_name(call, what);
    denial_count(r->list, rule, what);
}

/* Asked before each, because to receive when nothing is there would block. */
void refusals_on_event(struct refusals *r)
{
    for (int i = 0; i < REFUSALS_BATCH; i++) {
        struct pollfd p = {.fd = r->fd, .events = POLLIN};
        struct seccomp_data call;
        uint64_t id;
        if (poll(&p, 1, 0) <= 0 || (p.revents & POLLIN) == 0)
            return;
        int rc = notify_receive(r->fd, &id, &call);
        if (rc < 0)
            return;
        if (rc > 0)
            answer(r, id, &call);
    }
}
