/* sandbox/filter_gen: writes the system call filter as C arrays. Runs when the project is built.
 *
 * `filter_gen ARCHITECTURE` writes arrays of bytes to standard output: filter_program,
 * filter_program_debug and filter_program_alone (for a command in the host's network). libseccomp
 * makes the tree; what its rules cannot say (a call that is allowed for a few values only) is a
 * short piece in front of it. See filter.h for what is refused and why.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Refused whatever the arguments are. Names, because a table of numbers would bind us to one
 * architecture; a name that this architecture lacks is skipped. */
static const struct {
    const char *name;
    int error;
    bool debug; /* allowed when the operator allows debugging */
} refused[] = {
    /* other processes' memory and descriptors */
    {"ptrace", EPERM, true},
    {"process_vm_readv", EPERM, true},
    {"process_vm_writev", EPERM, true},
    {"kcmp", EPERM, true},
    {"process_madvise", EPERM},
    {"pidfd_getfd", EPERM},
    /* namespaces: clone and unshare are looked at below; clone3 hides its flags in memory, and
     * libc falls back to clone when it is not there */
    {"clone3", ENOSYS},
    {"setns", EPERM},
    /* mounts */
    {"mount", EPERM},
    {"umount2", EPERM},
    {"pivot_root", EPERM},
    {"chroot", EPERM},
    {"fsopen", EPERM},
    {"fsconfig", EPERM},
    {"fsmount", EPERM},
    {"fspick", EPERM},
    {"open_tree", EPERM},
    {"move_mount", EPERM},
    {"mount_setattr", EPERM},
    {"quotactl", EPERM},
    {"quotactl_fd", EPERM},
    {"swapon", EPERM},
    {"swapoff", EPERM},
    /* files by handle go round every mount */
    {"open_by_handle_at", EPERM},
    {"name_to_handle_at", EPERM},
    {"fanotify_init", EPERM},
    {"lookup_dcookie", EPERM},
    /* large interfaces that are not needed and have had many faults */
    {"io_uring_setup", EPERM},
    {"io_uring_enter", EPERM},
    {"io_uring_register", EPERM},
    {"bpf", EPERM},
    {"perf_event_open", EPERM},
    {"userfaultfd", EPERM},
    {"add_key", EPERM},
    {"request_key", EPERM},
    {"keyctl", EPERM},
    /* the machine */
    {"reboot", EPERM},
    {"kexec_load", EPERM},
    {"kexec_file_load", EPERM},
    {"init_module", EPERM},
    {"finit_module", EPERM},
    {"delete_module", EPERM},
    {"acct", EPERM},
    {"syslog", EPERM},
    {"iopl", EPERM},
    {"ioperm", EPERM},
};

/* Refused when one or two arguments match. Every compare is masked to what the kernel reads, or
 * is true as well for a value with high bits set. */
#define LOW32 0xffffffffu
#define FLAG(name, flag)                                                                           \
    {                                                                                              \
        name, EPERM, 1,                                                                            \
        {                                                                                          \
            SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag)                                                \
        }                                                                                          \
    }
#define REQUEST(number)                                                                            \
    {                                                                                              \
        "ioctl", EPERM, 1,                                                                         \
        {                                                                                          \
            SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, number)                                             \
        }                                                                                          \
    }
#define FAMILY(number)                                                                             \
    {                                                                                              \
        "socket", EAFNOSUPPORT, 1,                                                                 \
        {                                                                                          \
            SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, number)                                             \
        }                                                                                          \
    }

static const struct {
    const char *name;
    int error;
    unsigned n;
    struct scmp_arg_cmp args[2];
} refused_when[] = {
    FLAG("clone", CLONE_NEWUSER),
    FLAG("clone", CLONE_NEWNS),
    FLAG("clone", CLONE_NEWPID),
    FLAG("clone", CLONE_NEWNET),
    FLAG("clone", CLONE_NEWIPC),
    FLAG("clone", CLONE_NEWUTS),
    FLAG("clone", CLONE_NEWCGROUP),
    FLAG("unshare", CLONE_NEWUSER),
    FLAG("unshare", CLONE_NEWNS),
    FLAG("unshare", CLONE_NEWPID),
    FLAG("unshare", CLONE_NEWNET),
    FLAG("unshare", CLONE_NEWIPC),
    FLAG("unshare", CLONE_NEWUTS),
    FLAG("unshare", CLONE_NEWCGROUP),
    FLAG("unshare", CLONE_NEWTIME),
    /* typing into the terminal (CVE-2017-5226) and the console's paste */
    REQUEST(TIOCSTI),
    REQUEST(TIOCLINUX),
    /* UNIX, INET, INET6 and NETLINK are left: everything above NETLINK, and these below */
    {"socket", EAFNOSUPPORT, 1, {SCMP_A0(SCMP_CMP_GT, AF_NETLINK)}},
    FAMILY(AF_AX25),
    FAMILY(AF_IPX),
    FAMILY(AF_APPLETALK),
    FAMILY(AF_NETROM),
    FAMILY(AF_BRIDGE),
    FAMILY(AF_ATMPVC),
    FAMILY(AF_X25),
    FAMILY(AF_ROSE),
    FAMILY(AF_DECnet),
    FAMILY(AF_NETBEUI),
    FAMILY(AF_SECURITY),
    FAMILY(AF_KEY),
    /* of NETLINK only ROUTE (number 0), which getaddrinfo asks */
    {"socket", EPERM, 2, {SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, 0)}},
    {"socketpair", EAFNOSUPPORT, 1, {SCMP_A0(SCMP_CMP_GT, AF_UNIX)}},
};

enum variant { PLAIN, DEBUG, ALONE };

static int add_rules(scmp_filter_ctx ctx, enum variant variant)
{
    bool debug = variant == DEBUG;
    int rc = variant != ALONE ? 0
                              : seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                                                 SCMP_A0(SCMP_CMP_GT, AF_UNIX));
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(refused); i++) {
        int nr = seccomp_syscall_resolve_name(refused[i].name);
        if (nr != __NR_SCMP_ERROR && !(debug && refused[i].debug))
            rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint16_t)refused[i].error), nr, 0);
    }
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(refused_when); i++) {
        if (variant == ALONE && strcmp(refused_when[i].name, "socket") == 0)
            continue;
        rc = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO((uint16_t)refused_when[i].error),
                                    seccomp_syscall_resolve_name(refused_when[i].name),
                                    refused_when[i].n, refused_when[i].args);
    }
    return rc;
}

/* A foreign architecture or x32 has other numbers for everything: such a program is killed. The
 * binary tree keeps the walk short. */
static int make_tree(uint32_t arch, enum variant variant, char *out, size_t cap, size_t *ret_len)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int fd = memfd_create("filter", MFD_CLOEXEC);
    if (ctx == NULL || fd < 0)
        return -ENOMEM;
    int rc = 0;
    if (arch != seccomp_arch_native()) {
        rc = seccomp_arch_add(ctx, arch);
        if (rc == 0)
            rc = seccomp_arch_remove(ctx, seccomp_arch_native());
    }
    if (rc == 0)
        rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (rc == 0)
        rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (rc == 0)
        rc = add_rules(ctx, variant);
    if (rc == 0)
        rc = seccomp_export_bpf(ctx, fd);
    ssize_t n = rc < 0 ? -1 : pread(fd, out, cap, 0);
    *ret_len = n < 0 ? 0 : (size_t)n;
    seccomp_release(ctx);
    close(fd);
    return rc < 0 ? rc : n <= 0 || (size_t)n == cap ? -EIO : 0;
}

/* personality() may ask, and ask for a 32-bit or an old kernel's name; what makes data executable,
 * maps the page at 0 or turns randomisation off (but for debugging) is refused. */
#define PERSONALITY_FINE (PER_LINUX32 | UNAME26)

static size_t make_front(uint32_t arch, bool debug, struct sock_filter *out)
{
    const uint32_t fine = PERSONALITY_FINE | (debug ? ADDR_NO_RANDOMIZE : 0);
    const uint32_t low = offsetof(struct seccomp_data, args);
    const uint32_t nr = (uint32_t)seccomp_syscall_resolve_name_arch(arch, "personality");
    const struct sock_filter front[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arch, 0, 8),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 6),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low + (__BYTE_ORDER == __BIG_ENDIAN ? 4 : 0)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffffu, 2, 0),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~fine),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    memcpy(out, front, sizeof(front));
    return sizeof(front);
}

static void write_array(const char *name, const char *bytes, size_t n)
{
    printf("static const unsigned char %s[] = {", name);
    for (size_t i = 0; i < n; i++)
        printf("%s%u,", i % 24 == 0 ? "\n    " : "", (unsigned char)bytes[i]);
    printf("\n};\n");
}

static int write_program(uint32_t arch, enum variant variant, const char *name)
{
    static union {
        struct sock_filter first;
        char bytes[BPF_MAXINSNS * sizeof(struct sock_filter)];
    } program;
    size_t n;
    size_t front = make_front(arch, variant == DEBUG, &program.first);
    int rc = make_tree(arch, variant, program.bytes + front, sizeof(program.bytes) - front, &n);
    if (rc < 0) {
        fprintf(stderr, "filter_gen: %s\n", strerror(-rc));
        return 1;
    }
    write_array(name, program.bytes, front + n);
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t arch = argc == 2 ? seccomp_arch_resolve_name(argv[1]) : 0;
    if (arch == 0) {
        fputs("usage: filter_gen ARCHITECTURE (a name that libseccomp knows)\n", stderr);
        return 2;
    }
    puts("/* Made by sandbox/filter_gen. */");
    return write_program(arch, PLAIN, "filter_program") != 0 ||
           write_program(arch, DEBUG, "filter_program_debug") != 0 ||
           write_program(arch, ALONE, "filter_program_alone") != 0;
}
