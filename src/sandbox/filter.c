/* sandbox/filter: see filter.h. */
#include "sandbox/filter.h"

#include "base/mem.h"
#include "sys/fd.h"

#include <errno.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Refused whatever the arguments are. Names, because a table of numbers would bind us to one
 * architecture; a name that this architecture lacks is skipped. */
static const struct {
    const char *name;
    int error;
} refused[] = {
    /* other processes' memory and descriptors */
    {"ptrace", EPERM},
    {"process_vm_readv", EPERM},
    {"process_vm_writev", EPERM},
    {"process_madvise", EPERM},
    {"kcmp", EPERM},
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

static int add_rules(scmp_filter_ctx ctx)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(refused); i++) {
        int nr = seccomp_syscall_resolve_name(refused[i].name);
        if (nr != __NR_SCMP_ERROR)
            rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint16_t)refused[i].error), nr, 0);
    }
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(refused_when); i++) {
        rc = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO((uint16_t)refused_when[i].error),
                                    seccomp_syscall_resolve_name(refused_when[i].name),
                                    refused_when[i].n, refused_when[i].args);
    }
    return rc;
}

/* The library writes to descriptors only. */
static int export_program(scmp_filter_ctx ctx, struct buf *out)
{
    autofd int fd = memfd_create("filter", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = seccomp_export_bpf(ctx, fd);
    off_t size = lseek(fd, 0, SEEK_END);
    if (rc < 0 || size <= 0)
        return rc < 0 ? rc : -EIO;
    char *to = buf_reserve(out, (size_t)size);
    if (pread(fd, to, (size_t)size, 0) != size)
        return -EIO;
    buf_commit(out, (size_t)size);
    return 0;
}

/* A foreign architecture or x32 has other numbers for everything: such a program is killed. The
 * binary tree keeps the walk short. */
int filter_build(struct buf *out, struct err *e)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    ensure(ctx != NULL);
    int rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (rc == 0)
        rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (rc == 0)
        rc = add_rules(ctx);
    if (rc == 0)
        rc = export_program(ctx, out);
    seccomp_release(ctx);
    if (rc < 0)
        return err_sys(e, ERR_PROCESS_SPAWN_FAILED, rc, "the filter could not be built");
    return 0;
}
