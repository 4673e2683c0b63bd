/* sandbox/filter: the program that filter_gen made, against what libseccomp makes of the same
 * rules.
 *
 * filter_gen writes its own tree. libseccomp, which has another one for the same, is the witness:
 * both are asked about every number and about every argument that a rule could care about.
 */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sandbox/filter.h"
#include "sandbox/refusals.h"
#include "sys/fd.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "a row for this architecture"
#endif

#define NUMBERS 1024
/* More would be paid with every command (sandbox/filter.h). */
#define INSTRUCTIONS_MAX 100
#define INSTRUCTIONS_PLAIN 80

/* Sets of flags of sandbox/filter.h, and the program for the host's network. */
#define ALONE (FILTER_FLAGS_ALL + 1u)

static const unsigned variants[] = {0, FILTER_DEBUG, FILTER_NAMESPACES,
                                    FILTER_DEBUG | FILTER_NAMESPACES, ALONE};

/* ---- the witness ---- */

static const char *const debugging[] = {"ptrace", "process_vm_readv", "process_vm_writev", "kcmp"};

static const char *const refused[] = {
    "process_madvise",
    "pidfd_getfd",
    "setns",
    "mount",
    "umount2",
    "pivot_root",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "open_tree",
    "move_mount",
    "mount_setattr",
    "quotactl",
    "quotactl_fd",
    "swapon",
    "swapoff",
    "add_key",
    "open_by_handle_at",
    "name_to_handle_at",
    "fanotify_init",
    "bpf",
    "lookup_dcookie",
    "io_uring_setup",
    "io_uring_enter",
    "request_key",
    "io_uring_register",
    "perf_event_open",
    "userfaultfd",
    "keyctl",
    "reboot",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "acct",
    "syslog",
    "iopl",
    "ioperm",
};

static const unsigned namespaces[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                      CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};

static const unsigned families[] = {AF_AX25,   AF_IPX,     AF_APPLETALK, AF_NETROM,
                                    AF_BRIDGE, AF_ATMPVC,  AF_X25,       AF_ROSE,
                                    AF_DECnet, AF_NETBEUI, AF_SECURITY,  AF_KEY};

static void refuse(scmp_filter_ctx c, const char *name, int error, unsigned n,
                   struct scmp_arg_cmp first, struct scmp_arg_cmp second)
{
    const struct scmp_arg_cmp args[] = {first, second};
    int nr = seccomp_syscall_resolve_name(name);
    assert_int_not_equal(nr, __NR_SCMP_ERROR);
    assert_return_code(seccomp_rule_add_array(c, SCMP_ACT_ERRNO((uint16_t)error), nr, n, args), 0);
}

static const struct scmp_arg_cmp none;

static struct scmp_arg_cmp is(unsigned arg, uint32_t value)
{
    return SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, 0xffffffffu, value);
}

static struct scmp_arg_cmp has(unsigned flag)
{
    return SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag);
}

/* Of a socket that a namespace of one's own would give. */
static void add_network(scmp_filter_ctx c)
{
    static const unsigned families4[] = {AF_INET, AF_INET6};
    static const unsigned types[] = {SOCK_RAW, SOCK_PACKET};
    static const unsigned options[] = {16, 17};
    static const unsigned options6[] = {34, 35, 64, 65};
    int nr = seccomp_syscall_resolve_name("socket");
    int set = seccomp_syscall_resolve_name("setsockopt");
    const uint32_t refusal = SCMP_ACT_ERRNO(EPERM);
    for (size_t f = 0; f < ARRAY_LEN(families4); f++) {
        for (size_t t = 0; t < ARRAY_LEN(types); t++) {
            const struct scmp_arg_cmp args[] = {is(0, families4[f]),
                                                SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, types[t])};
            assert_return_code(seccomp_rule_add_array(c, refusal, nr, 2, args), 0);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        const struct scmp_arg_cmp args[] = {is(1, IPPROTO_IP), is(2, options[i])};
        assert_return_code(seccomp_rule_add_array(c, refusal, set, 2, args), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(options6); i++) {
        const struct scmp_arg_cmp args[] = {is(1, IPPROTO_IPV6), is(2, options6[i])};
        assert_return_code(seccomp_rule_add_array(c, refusal, set, 2, args), 0);
    }
    /* From 64 on: one of the higher bits. */
    for (unsigned bit = 6; bit < 32; bit++) {
        const struct scmp_arg_cmp args[] = {is(1, IPPROTO_IP),
                                            SCMP_A2(SCMP_CMP_MASKED_EQ, 1u << bit, 1u << bit)};
        assert_return_code(seccomp_rule_add_array(c, refusal, set, 2, args), 0);
    }
}

static void add_sockets(scmp_filter_ctx c, unsigned variant)
{
    refuse(c, "socketpair", EAFNOSUPPORT, 1, SCMP_A0(SCMP_CMP_GT, AF_UNIX), none);
    if (variant == ALONE) {
        refuse(c, "socket", EPERM, 1, SCMP_A0(SCMP_CMP_GT, AF_UNIX), none);
        return;
    }
    refuse(c, "socket", EAFNOSUPPORT, 1, SCMP_A0(SCMP_CMP_GT, AF_NETLINK), none);
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        refuse(c, "socket", EAFNOSUPPORT, 1, is(0, families[i]), none);
    refuse(c, "socket", EPERM, 2, is(0, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, 0));
    if ((variant & FILTER_NAMESPACES) != 0)
        add_network(c);
}

static void add_namespaces(scmp_filter_ctx c, unsigned variant)
{
    bool allowed = (variant & FILTER_NAMESPACES) != 0;
    for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
        if (allowed && namespaces[i] != CLONE_NEWNS)
            continue;
        refuse(c, "clone", EPERM, 1, has(namespaces[i]), none);
        refuse(c, "unshare", EPERM, 1, has(namespaces[i]), none);
    }
    refuse(c, "unshare", EPERM, 1, has(0x80 /* CLONE_NEWTIME */), none);
    if (!allowed)
        refuse(c, "chroot", EPERM, 0, none, none);
}

static void add_rules(scmp_filter_ctx c, unsigned variant)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        refuse(c, refused[i], EPERM, 0, none, none);
    for (size_t i = 0; i < ARRAY_LEN(debugging) && (variant & FILTER_DEBUG) == 0; i++)
        refuse(c, debugging[i], EPERM, 0, none, none);
    refuse(c, "clone3", ENOSYS, 0, none, none);
    add_namespaces(c, variant);
    refuse(c, "prlimit64", EPERM, 1, is(0, 1), none);
    add_sockets(c, variant);
}

static void make_witness(unsigned variant, struct buf *out)
{
    static char bytes[BPF_MAXINSNS * sizeof(struct sock_filter)];
    scmp_filter_ctx c = seccomp_init(SCMP_ACT_ALLOW);
    autofd int fd = memfd_create("filter", MFD_CLOEXEC);
    assert_non_null(c);
    assert_return_code(seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), 0);
    add_rules(c, variant);
    assert_return_code(seccomp_export_bpf(c, fd), 0);
    ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
    assert_true(n > 0);
    buf_put(out, bytes, (size_t)n);
    seccomp_release(c);
}

static void make_ours(unsigned variant, struct buf *out)
{
    if (variant == ALONE)
        filter_add_alone(false, out);
    else
        filter_add(variant, out);
}

/* ---- what they say ---- */

static uint32_t judge(const struct buf *f, uint32_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
    struct seccomp_data call = {.nr = (int)nr, .arch = ARCH, .args = {a0, a1, a2, 7, 8, 9}};
    return refusals_judge(f, &call);
}

static bool looks_at_arguments(uint32_t nr)
{
    return nr == SYS_clone || nr == SYS_unshare || nr == SYS_socket || nr == SYS_socketpair ||
           nr == SYS_prlimit64 || nr == SYS_setsockopt;
}

/* What libseccomp has no words for: one argument that is looked at twice. */
static bool is_beyond_witness(uint32_t nr)
{
    return nr == SYS_personality || nr == SYS_ioctl;
}

/* The values next to which a rule could decide: all small ones, around every bit, and around every
 * constant of ours. */
static size_t telling_values(uint32_t *ret)
{
    static const uint32_t others[] = {
        TIOCSTI,    TIOCLINUX, PER_LINUX32 | UNAME26, ADDR_NO_RANDOMIZE | UNAME26,
        0xfffffffe, 0xffffffff};
    size_t n = 0;
    for (uint32_t v = 0; v < 256; v++)
        ret[n++] = v;
    for (int bit = 8; bit < 32; bit++) {
        for (uint32_t near = 0; near < 3; near++)
            ret[n++] = (1u << bit) + near - 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        for (uint32_t near = 0; near < 3; near++)
            ret[n++] = others[i] + near - 1;
    }
    return n;
}

#define VALUES_MAX 512

/* The families that matter, with every type and with flags; the levels, with every option. */
static void compare_sockets(const struct buf *ours, const struct buf *witness, uint32_t v)
{
    static const uint32_t firsts[] = {AF_UNSPEC, AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET};
    static const uint32_t levels[] = {IPPROTO_IP, SOL_SOCKET, IPPROTO_TCP, IPPROTO_IPV6,
                                      IPPROTO_RAW};
    const uint64_t high = 5ull << 40;
    for (size_t i = 0; i < ARRAY_LEN(firsts); i++)
        assert_int_equal(judge(ours, SYS_socket, firsts[i] | high, v | high, 0),
                         judge(witness, SYS_socket, firsts[i], v, 0));
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        assert_int_equal(judge(ours, SYS_setsockopt, 3, levels[i] | high, v | high),
                         judge(witness, SYS_setsockopt, 3, levels[i], v));
}

static void compare_arguments(const struct buf *ours, const struct buf *witness, uint32_t nr)
{
    uint32_t values[VALUES_MAX];
    size_t n = telling_values(values);
    for (size_t i = 0; i < n; i++) {
        compare_sockets(ours, witness, values[i]);
        for (uint32_t third = 0; third < 3; third++) {
            uint32_t v = values[i];
            uint32_t verdict = judge(witness, nr, v, v, third);
            assert_int_equal(judge(ours, nr, v, v, third), verdict);
            assert_int_equal(judge(ours, nr, v | 1ull << 32, v | 7ull << 61, third), verdict);
        }
    }
}

static void test_every_number(void **state)
{
    (void)state;
    static const uint32_t odd[] = {0x3fffffff, 0x40000000, 0x40000001, 0x400000ff,
                                   0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        autobuf ours = BUF_INIT;
        autobuf witness = BUF_INIT;
        make_ours(variants[i], &ours);
        make_witness(variants[i], &witness);
        for (uint32_t nr = 0; nr < NUMBERS; nr++) {
            if (is_beyond_witness(nr))
                continue;
            if (looks_at_arguments(nr))
                compare_arguments(&ours, &witness, nr);
            else
                assert_int_equal(judge(&ours, nr, 1, 2, 3), judge(&witness, nr, 1, 2, 3));
        }
        for (size_t k = 0; k < ARRAY_LEN(odd); k++)
            assert_int_equal(judge(&ours, odd[k], 1, 2, 3), judge(&witness, odd[k], 1, 2, 3));
    }
}

static bool is_fine_personality(uint32_t v, unsigned variant)
{
    uint32_t fine =
        PER_LINUX32 | UNAME26 | ((variant & FILTER_DEBUG) != 0 ? (uint32_t)ADDR_NO_RANDOMIZE : 0);
    return v == 0xffffffffu || (v & ~fine) == 0;
}

static bool is_fine_request(uint32_t v)
{
    bool shared = v == FICLONE || v == FICLONERANGE || v == FIDEDUPERANGE;
    bool btrfs = (v >> 8 & 0xff) == BTRFS_IOCTL_MAGIC;
    return v != TIOCSTI && v != TIOCLINUX && (shared || !btrfs);
}

static void test_beyond_the_witness(void **state)
{
    (void)state;
    uint32_t values[VALUES_MAX];
    size_t n = telling_values(values);
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        autobuf ours = BUF_INIT;
        make_ours(variants[i], &ours);
        for (size_t k = 0; k < n; k++) {
            uint32_t v = values[k];
            const uint32_t refusal = SECCOMP_RET_ERRNO | EPERM;
            assert_int_equal(judge(&ours, SYS_personality, v, 0, 0),
                             is_fine_personality(v, variants[i]) ? SECCOMP_RET_ALLOW : refusal);
            assert_int_equal(judge(&ours, SYS_ioctl, 0, v | 1ull << 33, 0),
                             is_fine_request(v) ? SECCOMP_RET_ALLOW : refusal);
        }
    }
}

static void test_foreign_architectures_are_killed(void **state)
{
    (void)state;
    static const uint32_t foreign[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_RISCV64, 0};
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        autobuf ours = BUF_INIT;
        make_ours(variants[i], &ours);
        for (size_t k = 0; k < ARRAY_LEN(foreign); k++) {
            struct seccomp_data call = {.nr = SYS_getpid, .arch = foreign[k]};
            assert_int_equal(refusals_judge(&ours, &call), SECCOMP_RET_KILL_PROCESS);
        }
    }
}

static void test_it_is_short(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        autobuf ours = BUF_INIT;
        make_ours(variants[i], &ours);
        assert_in_range(ours.len / sizeof(struct sock_filter), 10, INSTRUCTIONS_MAX);
    }
}

/* What allows more must not make every command pay for it. */
static void test_the_plain_one_is_the_shortest(void **state)
{
    (void)state;
    autobuf plain = BUF_INIT;
    autobuf namespaces_too = BUF_INIT;
    make_ours(0, &plain);
    make_ours(FILTER_NAMESPACES, &namespaces_too);
    assert_in_range(plain.len / sizeof(struct sock_filter), 10, INSTRUCTIONS_PLAIN);
    assert_true(plain.len < namespaces_too.len);
    assert_int_equal(judge(&plain, SYS_setsockopt, 3, IPPROTO_IP, 64), SECCOMP_RET_ALLOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_number),
        cmocka_unit_test(test_beyond_the_witness),
        cmocka_unit_test(test_foreign_architectures_are_killed),
        cmocka_unit_test(test_it_is_short),
        cmocka_unit_test(test_the_plain_one_is_the_shortest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
