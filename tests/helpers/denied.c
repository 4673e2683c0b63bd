/* tests/helpers/denied: runs a program as on an older kernel or under a stricter filter.
 *
 * `denied ERRNO NAME... -- PROGRAM ARG...`: the named system calls fail with that errno (a number)
 * in PROGRAM and all that comes from it. Names it knows are in the table; another is an error, so
 * that no test is one by accident. `listener` refuses seccomp() only when it asks for a listener,
 * as where there is one already; `nf_tables` refuses the socket to it.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    {"openat2", SYS_openat2},       {"clone3", SYS_clone3},
    {"pidfd_open", SYS_pidfd_open}, {"close_range", SYS_close_range},
    {"open_tree", SYS_open_tree},   {"mount_setattr", SYS_mount_setattr},
    {"fsopen", SYS_fsopen},         {"inotify_init1", SYS_inotify_init1},
    {"move_mount", SYS_move_mount}, {"landlock_create_ruleset", 444},
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

#define LISTENER 5

static int add_listener(struct sock_filter *to, unsigned error)
{
    const struct sock_filter check[LISTENER] = {
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    memcpy(to, check, sizeof(check));
    return LISTENER;
}

#define NF_TABLES 8

static int add_nf_tables(struct sock_filter *to, unsigned error)
{
    const struct sock_filter check[NF_TABLES] = {
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 6),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NETLINK_NETFILTER, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JA, 0, 0, 0),
    };
    memcpy(to, check, sizeof(check));
    return NF_TABLES;
}

static int add(struct sock_filter *to, const char *name, unsigned error)
{
    if (strcmp(name, "nf_tables") == 0)
        return add_nf_tables(to, error);
    if (strcmp(name, "listener") == 0)
        return add_listener(to, error);
    for (size_t i = 0; i < CALLS; i++) {
        if (strcmp(calls[i].name, name) != 0)
            continue;
        to[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
        to[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
        return 2;
    }
    fprintf(stderr, "denied: no row for %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    struct sock_filter filter[2 * CALLS + LISTENER + NF_TABLES + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    struct sock_fprog program = {1, filter};
    unsigned error = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    int at = 2;
    while (at < argc && strcmp(argv[at], "--") != 0 && program.len < 2 * CALLS)
        program.len += (unsigned short)add(filter + program.len, argv[at++], error);
    filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (at + 1 >= argc || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return 2;
    execv(argv[at + 1], argv + at + 1);
    return 2;
}
