/* sandbox/refusals: what the filter says to a call, and which rule it is. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sandbox/filter.h"
#include "sandbox/refusals.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "a row for this architecture"
#endif

static uint32_t judge(const struct buf *filter, long nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
    struct seccomp_data call = {.nr = (int)nr, .arch = ARCH, .args = {a0, a1, a2}};
    return refusals_judge(filter, &call);
}

static uint32_t refused(int error)
{
    return SECCOMP_RET_ERRNO | (uint32_t)error;
}

static void test_judgement(void **state)
{
    (void)state;
    autobuf f = BUF_INIT;
    autobuf debug = BUF_INIT;
    filter_add(0, &f);
    filter_add(FILTER_DEBUG, &debug);
    assert_int_equal(judge(&f, SYS_read, 0, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_ptrace, 0, 0, 0), refused(EPERM));
    assert_int_equal(judge(&debug, SYS_ptrace, 0, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_clone3, 0, 0, 0), refused(ENOSYS));
    assert_int_equal(judge(&f, SYS_clone, CLONE_VM, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_clone, CLONE_NEWUSER | CLONE_VM, 0, 0), refused(EPERM));
    assert_int_equal(judge(&f, SYS_socket, AF_UNIX, 1, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_socket, AF_VSOCK, 1, 0), refused(EAFNOSUPPORT));
    assert_int_equal(judge(&f, SYS_socket, AF_NETLINK, 3, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_socket, AF_NETLINK, 3, 15), refused(EPERM));
    assert_int_equal(judge(&f, SYS_ioctl, 0, TIOCSTI | 1ull << 32, 0), refused(EPERM));
    assert_int_equal(judge(&f, SYS_ioctl, 0, BTRFS_IOC_SUBVOL_SETFLAGS, 0), refused(EPERM));
    assert_int_equal(judge(&f, SYS_ioctl, 0, FICLONE | 1ull << 32, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_prlimit64, 1 | 1ull << 32, 7, 0), refused(EPERM));
    assert_int_equal(judge(&f, SYS_prlimit64, 0, 7, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_personality, 0xffffffff, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_personality, 0x0400000, 0, 0), refused(EPERM));
    struct seccomp_data foreign = {.nr = 1, .arch = AUDIT_ARCH_I386};
    assert_int_equal(refusals_judge(&f, &foreign), SECCOMP_RET_KILL_PROCESS);
}

/* Every number there could be, with arguments that refuse: each that is refused has a name. */
static void every_refused_call_has_a_rule(unsigned flags)
{
    autobuf f = BUF_INIT;
    filter_add(flags, &f);
    int named = 0;
    for (int nr = 0; nr < 1024; nr++) {
        struct seccomp_data call = {.nr = nr, .arch = ARCH, .args = {CLONE_NEWUSER, TIOCSTI, 0}};
        char what[DENIAL_WHAT_MAX];
        uint32_t verdict = refusals_judge(&f, &call);
        if (verdict == SECCOMP_RET_ALLOW || nr == SYS_clone3)
            continue;
        const char *rule = refusals_name(&call, what);
        assert_non_null(denial_rule_find(rule));
        assert_string_not_equal(rule, "filter.other");
        named++;
    }
    assert_in_range(named, 40, 60);
}

static void test_every_refused_call_has_a_rule(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags <= FILTER_FLAGS_ALL; flags++)
        every_refused_call_has_a_rule(flags);
}

/* What a user namespace would bring within reach, and what it may have. */
static void test_namespaces(void **state)
{
    (void)state;
    autobuf f = BUF_INIT;
    filter_add(FILTER_NAMESPACES, &f);
    const uint64_t chromium = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | 17;
    assert_int_equal(judge(&f, SYS_clone, chromium, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_clone, chromium | CLONE_NEWNS, 0, 0), refused(EPERM));
    assert_int_equal(judge(&f, SYS_unshare, CLONE_NEWUSER | CLONE_NEWIPC | CLONE_NEWUTS, 0, 0),
                     SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS, 0, 0), refused(EPERM));
    assert_int_equal(judge(&f, SYS_unshare, CLONE_NEWTIME, 0, 0), refused(EPERM));
    assert_int_equal(judge(&f, SYS_clone, 0x80 | 17, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_clone3, 0, 0, 0), refused(ENOSYS));
    assert_int_equal(judge(&f, SYS_setns, 3, CLONE_NEWUSER, 0), refused(EPERM));
    assert_int_equal(judge(&f, SYS_chroot, 0, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_pivot_root, 0, 0, 0), refused(EPERM));
    assert_int_equal(judge(&f, SYS_ptrace, 0, 0, 0), refused(EPERM));
    assert_int_equal(judge(&f, SYS_socket, AF_INET, SOCK_PACKET, 0), refused(EPERM));
    assert_int_equal(judge(&f, SYS_socket, AF_UNIX, SOCK_RAW, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&f, SYS_socket, AF_NETLINK, SOCK_RAW, 12), refused(EPERM));
    assert_int_equal(judge(&f, SYS_setsockopt, 3, 0, 64 | 1ull << 32), refused(EPERM));
    assert_int_equal(judge(&f, SYS_setsockopt, 3, 1, 64), SECCOMP_RET_ALLOW);
}

static void name_is(long nr, uint64_t a0, uint64_t a1, const char *rule, const char *what)
{
    struct seccomp_data call = {.nr = (int)nr, .arch = ARCH, .args = {a0, a1}};
    char got[DENIAL_WHAT_MAX];
    assert_string_equal(refusals_name(&call, got), rule);
    assert_string_equal(got, what);
}

static void test_names(void **state)
{
    (void)state;
    name_is(SYS_ptrace, 0, 0, "filter.trace", "ptrace");
    name_is(SYS_unshare, CLONE_NEWNS, 0, "filter.namespace", "unshare(CLONE_NEWNS)");
    name_is(SYS_clone, CLONE_NEWPID | CLONE_NEWUSER, 0, "filter.namespace", "clone(CLONE_NEWUSER)");
    name_is(SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | 0x80, 0, "filter.namespace",
            "clone(CLONE_NEWNS)");
    name_is(SYS_unshare, CLONE_NEWUSER | CLONE_NEWTIME, 0, "filter.namespace",
            "unshare(CLONE_NEWTIME)");
    name_is(SYS_socket, AF_INET, SOCK_RAW | SOCK_CLOEXEC, "filter.socket", "socket(SOCK_RAW)");
    name_is(SYS_socket, AF_INET6, SOCK_PACKET, "filter.socket", "socket(SOCK_PACKET)");
    name_is(SYS_setsockopt, 3, 0, "filter.network", "setsockopt");
    name_is(SYS_socket, AF_VSOCK, 0, "filter.socket", "socket(AF_VSOCK)");
    name_is(SYS_socket, 12345, 0, "filter.socket", "socket(another one)");
    name_is(SYS_ioctl, 0, TIOCSTI, "filter.terminal", "ioctl(TIOCSTI)");
    name_is(SYS_ioctl, 0, BTRFS_IOC_SNAP_CREATE_V2, "filter.subvolume",
            "ioctl(BTRFS_IOC_SNAP_CREATE)");
    name_is(SYS_ioctl, 0, BTRFS_IOC_SUBVOL_SETFLAGS, "filter.subvolume", "ioctl(another one)");
    name_is(SYS_prlimit64, 1, 7, "filter.process", "prlimit64");
    name_is(9999, 0, 0, "filter.other", "system call 9999");
}

/* A program that is cut, or has what ours never have, refuses. */
static void test_odd_programs_refuse(void **state)
{
    (void)state;
    struct seccomp_data call = {.nr = SYS_read, .arch = ARCH};
    const struct sock_filter odd[][2] = {
        {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4)},
        {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(call)),
         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
        {BPF_STMT(BPF_JMP | BPF_JA, 7), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
        {BPF_STMT(BPF_ST, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)},
    };
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        autobuf b = BUF_INIT;
        buf_put(&b, odd[i], sizeof(odd[i]));
        assert_int_equal(refusals_judge(&b, &call), refused(EPERM));
    }
    autobuf empty = BUF_INIT;
    assert_int_equal(refusals_judge(&empty, &call), refused(EPERM));
}

UNIT_MAIN(cmocka_unit_test(test_judgement), cmocka_unit_test(test_namespaces),
          cmocka_unit_test(test_every_refused_call_has_a_rule), cmocka_unit_test(test_names),
          cmocka_unit_test(test_odd_programs_refuse))
