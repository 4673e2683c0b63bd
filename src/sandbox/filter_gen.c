/* sandbox/filter_gen: writes the system call filter as C arrays. Runs when the project is built.
 *
 * `filter_gen ARCHITECTURE` writes arrays of bytes to standard output: filter_program, one with a
 * longer name for each set of flags (sandbox/filter.h), and filter_program_alone (for a command in
 * the host's network). libseccomp knows the numbers of the calls, and the tests hold the result
 * against what it makes of the same rules. See filter.h for what is refused and why.
 *
 * Theory. The calls' numbers fall into ranges with one answer each; a tree of compares finds the
 * range. The kernel walks through it for every number there is when the filter is loaded (to know
 * what is always allowed), and translates every instruction twice, so both are paid with each
 * command: the tree is the one that costs least by what they were measured to take. libseccomp's
 * own has a leaf for each call and asks an argument bit by bit: 173 instructions and 10,500 steps
 * (x86-64), 80 to 100 us to load, for rules that take this 68, 5,800 and 60.
 */
#include "sandbox/filter.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Refused whatever the arguments are. Names, because a table of numbers would bind us to one
 * architecture; a name that this architecture lacks is skipped. */
static const struct {
    const char *name;
    int error;
    unsigned allowed_by; /* FILTER_DEBUG, FILTER_NAMESPACES: what the operator allows it with */
} refused[] = {
    /* other processes' memory and descriptors */
    {"ptrace", EPERM, FILTER_DEBUG},
    {"process_vm_readv", EPERM, FILTER_DEBUG},
    {"process_vm_writev", EPERM, FILTER_DEBUG},
    {"kcmp", EPERM, FILTER_DEBUG},
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
    {"chroot", EPERM, FILTER_NAMESPACES},
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

/* ---- where a call is decided ---- */

/* An answer, or a piece of the program that looks at the arguments. */
enum place {
    ALLOW,
    REFUSE,
    UNKNOWN, /* as if the kernel did not have it */
    NO_FAMILY,
    KILL,
    ANSWERS,
    AT_CLONE = ANSWERS,
    AT_UNSHARE,
    AT_IOCTL,
    AT_SOCKET,
    AT_NETLINK,
    AT_SOCKETPAIR,
    AT_PERSONALITY,
    AT_LIMITS,
    AT_TYPE,   /* of a socket, and */
    AT_OPTION, /* an option of one: only where a command can have a network of its own */
    AT_OPTION6,
    PLACES,
    NEXT = PLACES, /* the next line */
};

static const uint32_t answers[ANSWERS] = {
    [ALLOW] = SECCOMP_RET_ALLOW,
    [REFUSE] = SECCOMP_RET_ERRNO | EPERM,
    [UNKNOWN] = SECCOMP_RET_ERRNO | ENOSYS,
    [NO_FAMILY] = SECCOMP_RET_ERRNO | EAFNOSUPPORT,
    [KILL] = SECCOMP_RET_KILL_PROCESS,
};

static const struct {
    const char *name;
    enum place place;
} looked_at[] = {
    {"clone", AT_CLONE},      {"unshare", AT_UNSHARE},       {"ioctl", AT_IOCTL},
    {"socket", AT_SOCKET},    {"socketpair", AT_SOCKETPAIR}, {"personality", AT_PERSONALITY},
    {"prlimit64", AT_LIMITS},
};

/* Of an argument only the low half is ever looked at, which is what the kernel reads of these: a
 * set high bit decides nothing (E24). */
#define LOW (__BYTE_ORDER == __BIG_ENDIAN ? 4 : 0)
#define ARGUMENT(i) (offsetof(struct seccomp_data, args) + (i) * sizeof(uint64_t) + LOW)

#define LOAD (BPF_LD | BPF_W | BPF_ABS)
#define AND (BPF_ALU | BPF_AND | BPF_K)
#define ANY_OF (BPF_JMP | BPF_JSET | BPF_K)
#define EQUAL (BPF_JMP | BPF_JEQ | BPF_K)
#define ABOVE (BPF_JMP | BPF_JGT | BPF_K)
#define FROM (BPF_JMP | BPF_JGE | BPF_K)

struct line {
    uint16_t code;
    uint32_t k;
    enum place yes, no; /* of a jump */
};

#define NAMESPACES                                                                                 \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |     \
     CLONE_NEWCGROUP)
/* The other bits of a socket's type are flags. */
#define SOCK_TYPES 0xfu
/* It may ask, and ask for a 32-bit or an old kernel's name; what makes data executable, maps the
 * page at 0 or turns randomisation off (but for debugging) is refused. */
#define PERSONALITY_FINE (PER_LINUX32 | UNAME26)

/* With a user namespace of its own a command has every capability over what belongs to that. Not
 * over the view: its mounts belong to the namespace around. A mount namespace would, and there the
 * fences could be taken off or, since only what is mounted in one's own namespace keeps a name from
 * being moved, be walked round; a time namespace is needed by nobody. */
#define NEVER (CLONE_NEWNS | CLONE_NEWTIME)

/* The numbers of netfilter's options, of any IPv4 socket: of iptables (64), arptables (96),
 * ebtables (128), IPVS (1088) and, in between, of multicast routing (200). */
#define NETFILTER_OPTIONS 64u
#define NETFILTER6_REPLACE 64u
#define NETFILTER6_COUNTERS 65u
/* The second name of each policy (IP_IPSEC_POLICY) is one below the first. */
#define XFRM_POLICY 17u
#define XFRM6_POLICY 35u

/* Each ends with a jump to two places. */
static const struct line at_clone[] = {{LOAD, ARGUMENT(0)}, {ANY_OF, NAMESPACES, REFUSE, ALLOW}};
static const struct line at_clone_namespaces[] = {{LOAD, ARGUMENT(0)},
                                                  {ANY_OF, CLONE_NEWNS, REFUSE, ALLOW}};
/* CLONE_NEWTIME is no flag of clone, where its bit is of the signal. */
static const struct line at_unshare[] = {{LOAD, ARGUMENT(0)},
                                         {ANY_OF, NAMESPACES | CLONE_NEWTIME, REFUSE, ALLOW}};
static const struct line at_unshare_namespaces[] = {{LOAD, ARGUMENT(0)},
                                                    {ANY_OF, NEVER, REFUSE, ALLOW}};
/* Typing into the terminal (CVE-2017-5226), and the console's paste. Of what btrfs offers only what
 * other file systems do, too (cp --reflink): a user may make subvolumes, and one that is read-only
 * cannot be taken away; to end one asks for no mount point on it. */
static const struct line at_ioctl[] = {{LOAD, ARGUMENT(1)},
                                       {EQUAL, TIOCSTI, REFUSE, NEXT},
                                       {EQUAL, TIOCLINUX, REFUSE, NEXT},
                                       {AND, 0xff00},
                                       {EQUAL, BTRFS_IOCTL_MAGIC << 8, NEXT, ALLOW},
                                       {LOAD, ARGUMENT(1)},
                                       {EQUAL, FICLONE, ALLOW, NEXT},
                                       {EQUAL, FICLONERANGE, ALLOW, NEXT},
                                       {EQUAL, FIDEDUPERANGE, ALLOW, REFUSE}};
/* Process 1 is of the same user, and without descriptors it could not put right what it guards. */
static const struct line at_limits[] = {{LOAD, ARGUMENT(0)}, {EQUAL, 1, REFUSE, ALLOW}};
/* UNIX, INET, INET6 and NETLINK are left, of which only ROUTE (number 0), which getaddrinfo asks.
 * What is no family at all is for the kernel to say. */
static const struct line at_socket[] = {{LOAD, ARGUMENT(0)},
                                        {EQUAL, AF_NETLINK, AT_NETLINK, NEXT},
                                        {ABOVE, AF_INET, NEXT, ALLOW},
                                        {EQUAL, AF_INET6, ALLOW, NO_FAMILY}};
/* In a network of its own it may make raw sockets, and packet sockets by their old name. */
static const struct line at_socket_namespaces[] = {{LOAD, ARGUMENT(0)},
                                                   {EQUAL, AF_NETLINK, AT_NETLINK, NEXT},
                                                   {EQUAL, AF_INET6, AT_TYPE, NEXT},
                                                   {EQUAL, AF_INET, AT_TYPE, NEXT},
                                                   {ABOVE, AF_UNIX, NO_FAMILY, ALLOW}};
static const struct line at_type[] = {{LOAD, ARGUMENT(1)},
                                      {AND, SOCK_TYPES},
                                      {EQUAL, SOCK_RAW, REFUSE, NEXT},
                                      {EQUAL, SOCK_PACKET, REFUSE, ALLOW}};
/* And program it by setsockopt: its packet filter, and what is encrypted. */
static const struct line at_option[] = {{LOAD, ARGUMENT(1)},
                                        {EQUAL, IPPROTO_IPV6, AT_OPTION6, NEXT},
                                        {EQUAL, IPPROTO_IP, NEXT, ALLOW},
                                        {LOAD, ARGUMENT(2)},
                                        {FROM, NETFILTER_OPTIONS, REFUSE, NEXT},
                                        {FROM, XFRM_POLICY - 1, NEXT, ALLOW},
                                        {ABOVE, XFRM_POLICY, ALLOW, REFUSE}};
static const struct line at_option6[] = {{LOAD, ARGUMENT(2)},
                                         {EQUAL, NETFILTER6_REPLACE, REFUSE, NEXT},
                                         {EQUAL, NETFILTER6_COUNTERS, REFUSE, NEXT},
                                         {EQUAL, XFRM6_POLICY, REFUSE, NEXT},
                                         {EQUAL, XFRM6_POLICY - 1, REFUSE, ALLOW}};
static const struct line at_netlink[] = {{LOAD, ARGUMENT(2)}, {EQUAL, 0, ALLOW, REFUSE}};
static const struct line at_socket_alone[] = {{LOAD, ARGUMENT(0)}, {ABOVE, AF_UNIX, REFUSE, ALLOW}};
static const struct line at_socketpair[] = {{LOAD, ARGUMENT(0)},
                                            {ABOVE, AF_UNIX, NO_FAMILY, ALLOW}};
static const struct line at_personality[] = {{LOAD, ARGUMENT(0)},
                                             {EQUAL, 0xffffffffu, ALLOW, NEXT},
                                             {AND, (uint32_t)~PERSONALITY_FINE},
                                             {EQUAL, 0, ALLOW, REFUSE}};
static const struct line at_personality_debug[] = {
    {LOAD, ARGUMENT(0)},
    {EQUAL, 0xffffffffu, ALLOW, NEXT},
    {AND, (uint32_t) ~(PERSONALITY_FINE | ADDR_NO_RANDOMIZE)},
    {EQUAL, 0, ALLOW, REFUSE}};

/* Of a command in the host's network; no flag of filter.h. */
#define ALONE (FILTER_FLAGS_ALL + 1u)

/* ---- the ranges ---- */

#define NUMBERS 1024u /* a call has a lower number, on every architecture */
#define RANGES_MAX 160
/* The numbers that the kernel walks through: as many as it has calls, about. */
#define WALKED 470u
/* x86-64 has a second table of calls, told apart by this bit, for programs of 32-bit pointers. Such
 * a program is killed. All bits are a call that a tracer has taken away. */
#define SECOND_TABLE 0x40000000u
#define TAKEN_AWAY 0xffffffffu

struct range {
    uint32_t first;
    enum place place;
};

static struct range ranges[RANGES_MAX];
static size_t n_ranges;

static void add_range(uint32_t first, enum place place)
{
    if (n_ranges > 0 && ranges[n_ranges - 1].place == place)
        return;
    if (n_ranges == RANGES_MAX)
        abort();
    ranges[n_ranges++] = (struct range){first, place};
}

static enum place refusal(size_t i, unsigned flags)
{
    if ((flags & refused[i].allowed_by) != 0)
        return ALLOW;
    return refused[i].error == ENOSYS ? UNKNOWN : REFUSE;
}

/* -1 when a name is not known, or a number is too high. */
static int set_place(uint32_t arch, const char *name, enum place place, enum place *places)
{
    int nr = seccomp_syscall_resolve_name_arch(arch, name);
    if (nr == __NR_SCMP_ERROR || nr >= (int)NUMBERS)
        return -1;
    if (nr >= 0) /* else this architecture has none of that name */
        places[nr] = place;
    return 0;
}

static int make_ranges(uint32_t arch, unsigned flags)
{
    enum place places[NUMBERS] = {ALLOW};
    int rc = 0;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        rc |= set_place(arch, refused[i].name, refusal(i, flags), places);
    for (size_t i = 0; i < ARRAY_LEN(looked_at); i++)
        rc |= set_place(arch, looked_at[i].name, looked_at[i].place, places);
    if ((flags & FILTER_NAMESPACES) != 0)
        rc |= set_place(arch, "setsockopt", AT_OPTION, places);
    n_ranges = 0;
    for (uint32_t nr = 0; nr < NUMBERS; nr++)
        add_range(nr, places[nr]);
    if (arch == SCMP_ARCH_X86_64) {
        add_range(SECOND_TABLE, KILL);
        add_range(TAKEN_AWAY, ALLOW);
    }
    return rc;
}

/* ---- the cheapest tree ---- */

/* Nanoseconds of loading: for each instruction, and for each that is walked through. */
#define INSTRUCTION_NS 180.0
#define STEP_NS 1.4

static double costs[RANGES_MAX][RANGES_MAX];  /* from range i to range j */
static size_t splits[RANGES_MAX][RANGES_MAX]; /* in front of this one; 0 = a chain, or one range */

static uint32_t end_of(size_t i)
{
    return i + 1 < n_ranges ? ranges[i + 1].first : TAKEN_AWAY;
}

static double walked(size_t i, size_t j)
{
    uint32_t from = ranges[i].first < WALKED ? ranges[i].first : WALKED;
    uint32_t to = end_of(j) < WALKED ? end_of(j) : WALKED;
    return to - from;
}

/* Compares for equality are enough when every second range has one number, and the others are of
 * one place: how many; else 0. */
static size_t chain_length(size_t i, size_t j)
{
    for (size_t at = i; at <= j; at++) {
        bool even = (at - i) % 2 == 0;
        if (even ? ranges[at].place != ranges[i].place
                 : at == j || end_of(at) - ranges[at].first != 1)
            return 0;
    }
    return (j - i) / 2;
}

static void weigh(size_t i, size_t j)
{
    const double compare = INSTRUCTION_NS + STEP_NS * walked(i, j);
    double best = (double)chain_length(i, j) * compare;
    splits[i][j] = 0;
    for (size_t k = i + 1; k <= j; k++) {
        double cost = compare + costs[i][k - 1] + costs[k][j];
        if (best > 0 && cost >= best)
            continue;
        best = cost;
        splits[i][j] = k;
    }
    costs[i][j] = best;
}

/* ---- writing it down ---- */

#define PROGRAM_MAX 512

static struct sock_filter program[PROGRAM_MAX];
static size_t targets[PROGRAM_MAX][2]; /* of a jump, yes and no: an instruction, or TO_PLACE */
static size_t starts[PLACES];
static size_t length;

#define TO_PLACE(place) (PROGRAM_MAX + (size_t)(place))

static size_t put(uint16_t code, uint32_t k, size_t yes, size_t no)
{
    if (length == PROGRAM_MAX)
        abort();
    program[length] = (struct sock_filter){.code = code, .k = k};
    targets[length][0] = yes;
    targets[length][1] = no;
    return length++;
}

/* Where the decision between these ranges begins. */
static size_t put_tree(size_t i, size_t j)
{
    size_t start = length;
    if (i == j)
        return TO_PLACE(ranges[i].place);
    if (splits[i][j] != 0) {
        size_t k = splits[i][j];
        put(FROM, ranges[k].first, 0, 0);
        targets[start][1] = put_tree(i, k - 1);
        targets[start][0] = put_tree(k, j);
        return start;
    }
    for (size_t at = i + 1; at < j; at += 2) {
        size_t next = at + 1 < j ? length + 1 : TO_PLACE(ranges[i].place);
        put(EQUAL, ranges[at].first, TO_PLACE(ranges[at].place), next);
    }
    return start;
}

static size_t target_of(enum place place)
{
    return place == NEXT ? length + 1 : TO_PLACE(place);
}

static void put_piece(enum place place, const struct line *lines, size_t n)
{
    starts[place] = length;
    for (size_t i = 0; i < n; i++)
        put(lines[i].code, lines[i].k, target_of(lines[i].yes), target_of(lines[i].no));
}

#define PUT_PIECE(place, lines) put_piece(place, lines, ARRAY_LEN(lines))

static void put_namespaces(unsigned flags)
{
    if ((flags & FILTER_NAMESPACES) != 0) {
        PUT_PIECE(AT_CLONE, at_clone_namespaces);
        PUT_PIECE(AT_UNSHARE, at_unshare_namespaces);
    } else {
        PUT_PIECE(AT_CLONE, at_clone);
        PUT_PIECE(AT_UNSHARE, at_unshare);
    }
}

static void put_sockets(unsigned flags)
{
    if (flags == ALONE) {
        PUT_PIECE(AT_SOCKET, at_socket_alone);
        return;
    }
    if ((flags & FILTER_NAMESPACES) != 0) {
        PUT_PIECE(AT_SOCKET, at_socket_namespaces);
        PUT_PIECE(AT_TYPE, at_type);
        PUT_PIECE(AT_OPTION, at_option);
        PUT_PIECE(AT_OPTION6, at_option6);
    } else {
        PUT_PIECE(AT_SOCKET, at_socket);
    }
    PUT_PIECE(AT_NETLINK, at_netlink);
}

static void put_pieces(unsigned flags)
{
    put_namespaces(flags);
    PUT_PIECE(AT_IOCTL, at_ioctl);
    put_sockets(flags);
    PUT_PIECE(AT_SOCKETPAIR, at_socketpair);
    PUT_PIECE(AT_LIMITS, at_limits);
    if ((flags & FILTER_DEBUG) != 0)
        PUT_PIECE(AT_PERSONALITY, at_personality_debug);
    else
        PUT_PIECE(AT_PERSONALITY, at_personality);
    for (enum place place = 0; place < ANSWERS; place++)
        starts[place] = put(BPF_RET | BPF_K, answers[place], 0, 0);
}

/* From where an instruction jumps, counted from the next one; -1 when that is too far. */
static int distance(size_t at, size_t target)
{
    size_t to = target < PROGRAM_MAX ? target : starts[target - PROGRAM_MAX];
    return to > at && to - at - 1 <= UINT8_MAX ? (int)(to - at - 1) : -1;
}

static int set_jumps(void)
{
    for (size_t at = 0; at < length; at++) {
        if (BPF_CLASS(program[at].code) != BPF_JMP)
            continue;
        int yes = distance(at, targets[at][0]);
        int no = distance(at, targets[at][1]);
        if (yes < 0 || no < 0)
            return -1;
        program[at].jt = (uint8_t)yes;
        program[at].jf = (uint8_t)no;
    }
    return 0;
}

/* A foreign architecture has other numbers for everything: such a program is killed. */
static int make_program(uint32_t arch, unsigned flags)
{
    if (make_ranges(arch, flags) < 0)
        return -1;
    for (size_t n = 0; n < n_ranges; n++) {
        for (size_t i = 0; i + n < n_ranges; i++)
            weigh(i, i + n);
    }
    length = 0;
    put(LOAD, offsetof(struct seccomp_data, arch), 0, 0);
    put(EQUAL, arch, length + 1, TO_PLACE(KILL));
    put(LOAD, offsetof(struct seccomp_data, nr), 0, 0);
    (void)put_tree(0, n_ranges - 1);
    put_pieces(flags);
    return set_jumps();
}

static int write_program(uint32_t arch, unsigned flags, const char *name)
{
    if (make_program(arch, flags) < 0) {
        fprintf(stderr, "filter_gen: a call is not known, or the program is too long\n");
        return 1;
    }
    const unsigned char *bytes = (const void *)program;
    printf("static const unsigned char %s[] = {", name);
    for (size_t i = 0; i < length * sizeof(*program); i++)
        printf("%s%u,", i % 24 == 0 ? "\n    " : "", bytes[i]);
    printf("\n};\n");
    return 0;
}

static const struct {
    unsigned flags;
    const char *name;
} programs[] = {
    {0, "filter_program"},
    {FILTER_DEBUG, "filter_program_debug"},
    {FILTER_NAMESPACES, "filter_program_namespaces"},
    {FILTER_DEBUG | FILTER_NAMESPACES, "filter_program_debug_namespaces"},
    {ALONE, "filter_program_alone"},
};

int main(int argc, char **argv)
{
    uint32_t arch = argc == 2 ? seccomp_arch_resolve_name(argv[1]) : 0;
    if (arch == 0) {
        fputs("usage: filter_gen ARCHITECTURE (a name that libseccomp knows)\n", stderr);
        return 2;
    }
    puts("/* Made by sandbox/filter_gen. */");
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        if (write_program(arch, programs[i].flags, programs[i].name) != 0)
            return 1;
    }
    return 0;
}
