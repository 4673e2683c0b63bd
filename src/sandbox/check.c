/* sandbox/check: see check.h. */
#include "sandbox/check.h"

#include "base/mem.h"
#include "base/str.h"
#include "sandbox/bwrap.h"
#include "sandbox/netdoor.h"
#include "sandbox/report.h"
#include "sandbox/trial.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* What bubblewrap says, in the order of trying; the first that is part of the words counts. */
static const struct {
    const char *words;
    enum probe_cause cause;
} causes[] = {
    {"Unknown option", PROBE_OLD_BWRAP},
    {"Can't mount proc", PROBE_NO_PROC},
    {"setting up uid map: Permission denied", PROBE_APPARMOR},
    {"loopback: Failed RTM_NEWADDR", PROBE_APPARMOR},
    {"loopback: Failed RTM_NEWLINK", PROBE_APPARMOR},
    {"max_*_namespaces exceeded", PROBE_MAX_NAMESPACES},
    {"No permissions to create", PROBE_NO_USERNS},
    {"Creating new namespace failed", PROBE_NO_USERNS},
    {"Creating new user namespace failed", PROBE_NO_USERNS},
    {"does not have user namespaces", PROBE_NO_USERNS},
    {"setting up uid map", PROBE_NO_USERNS},
};

/* What keeps user namespaces from those who are not root, where bubblewrap's words leave it open.
 */
static const struct {
    const char *file;
    char value;
    enum probe_cause cause;
} settings[] = {
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1', PROBE_APPARMOR},
    {"/proc/sys/kernel/unprivileged_userns_clone", '0', PROBE_USERNS_CLONE},
};

/* The first character of a file; 0 without one. */
static char first_of(const char *path)
{
    char c = '\0';
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, &c, 1) == 1 ? c : '\0';
}

static enum probe_cause why_no_userns(void)
{
    for (size_t i = 0; i < ARRAY_LEN(settings) && getuid() != 0; i++) {
        if (first_of(settings[i].file) == settings[i].value)
            return settings[i].cause;
    }
    return PROBE_NO_USERNS;
}

enum probe_cause check_cause(const char *words)
{
    for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
        if (strstr(words, causes[i].words) == NULL)
            continue;
        return causes[i].cause == PROBE_NO_USERNS ? why_no_userns() : causes[i].cause;
    }
    return PROBE_OTHER;
}

/* "user.max_mnt_namespaces is 0: ", for the first of which that is so; else "". */
static void name_limit(char *ret, size_t cap)
{
    static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
    ret[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(kinds) && ret[0] == '\0'; i++) {
        autofree char *file = mem_printf("/proc/sys/user/max_%s_namespaces", kinds[i]);
        if (first_of(file) == '0')
            snprintf(ret, cap, "user.max_%s_namespaces is 0: ", kinds[i]);
    }
}

static void fail(struct probe_result *p, enum probe_cause cause, const char *detail)
{
    char limit[64] = "";
    if (cause == PROBE_MAX_NAMESPACES)
        name_limit(limit, sizeof(limit));
    p->works = false;
    p->cause = cause;
    snprintf(p->detail, sizeof(p->detail), "%s%.400s", limit, detail);
}

/* Where a namespace's fact goes. */
static const size_t namespace_facts[REPORT_NAMESPACES] = {
    [REPORT_USER] = offsetof(struct probe_result, user_namespace),
    [REPORT_MNT] = offsetof(struct probe_result, mount_namespace),
    [REPORT_PID] = offsetof(struct probe_result, pid_namespace),
    [REPORT_NET] = offsetof(struct probe_result, network_namespace),
    [REPORT_IPC] = offsetof(struct probe_result, ipc_namespace),
    [REPORT_UTS] = offsetof(struct probe_result, uts_namespace),
    [REPORT_CGROUP] = offsetof(struct probe_result, cgroup_namespace),
};

static void compare(const struct report *outside, const struct report *inside,
                    struct probe_result *p)
{
    for (int i = 0; i < REPORT_NAMESPACES; i++)
        *(bool *)((char *)p + namespace_facts[i]) =
            inside->namespaces[i] != 0 && inside->namespaces[i] != outside->namespaces[i];
    p->fresh_proc = inside->fresh_proc == 1;
    p->no_new_privs = inside->no_new_privs == 1;
    p->seccomp = inside->seccomp == 2;
    p->pid1 = inside->parent == 1;
    /* A kernel may lack cgroup namespaces; they are told but not needed. */
    p->inherited_proc = p->user_namespace && p->mount_namespace && p->pid_namespace &&
                        p->network_namespace && p->ipc_namespace && p->uts_namespace &&
                        p->no_new_privs && p->seccomp && p->pid1 && inside->capabilities == 0;
    p->works = p->inherited_proc && p->fresh_proc;
    if (!p->works && p->cause == PROBE_NONE)
        fail(p, PROBE_OTHER, "the sandbox ran, but a wall that was asked for was not there");
}

static void find_bwrap(struct probe_result *p, struct err *e)
{
    autofree char *path = NULL;
    char line[64];
    if (bwrap_find(NULL, &path, e) < 0) {
        fail(p, PROBE_NO_BWRAP, e->message);
        return;
    }
    trial_version(path, CHECK_SECONDS * 1000 / 2, line, sizeof(line));
    if (line[0] != '\0' && strncmp(line, "bubblewrap", 10) != 0) {
        autofree char *detail = mem_printf("%.255s is another program: %s", path, line);
        fail(p, PROBE_NO_BWRAP, detail);
        return;
    }
    snprintf(p->bwrap_path, sizeof(p->bwrap_path), "%.255s", path);
    const char *version = strrchr(line, ' ');
    snprintf(p->bwrap_version, sizeof(p->bwrap_version), "%.31s", version ? version + 1 : line);
}

/* The sandbox works without it; only commands with an enabled network are refused then. */
static void try_network(struct probe_result *p)
{
    struct err e = {0};
    p->egress = netdoor_try(&e) == 0;
    snprintf(p->egress_detail, sizeof(p->egress_detail), "%.255s", p->egress ? "" : e.message);
}

/* What an operator may choose where a fresh /proc cannot be had (D2). */
static void try_inherited_proc(const struct report *outside, struct probe_result *p)
{
    struct report inside;
    if (trial_run(true, CHECK_SECONDS * 1000 / 2, &inside, NULL) == 0)
        compare(outside, &inside, p);
}

void check_sandbox(struct probe_result *ret)
{
    struct probe_result p = {0};
    struct report outside, inside;
    struct err e = {0};
    if (getauxval(AT_SECURE) != 0) {
        fail(&p, PROBE_SETUID, "");
    } else if (access("/proc/self/fd", F_OK) < 0) {
        snprintf(e.message, sizeof(e.message), "/proc/self/fd: %s", strerror(errno));
        fail(&p, PROBE_PROC_MISSING, e.message);
    } else {
        find_bwrap(&p, &e);
        report_take(&outside);
        if (p.cause == PROBE_NONE && trial_run(false, CHECK_SECONDS * 1000 / 2, &inside, &e) < 0)
            fail(&p, check_cause(e.message), e.message);
        else if (p.cause == PROBE_NONE)
            compare(&outside, &inside, &p);
        if (p.cause == PROBE_NO_PROC)
            try_inherited_proc(&outside, &p);
    }
    if (p.works)
        try_network(&p);
    *ret = p;
}

static const char *yes(bool fact)
{
    return fact ? "yes" : "no";
}

static void explain(const struct probe_result *p)
{
    printf("sandbox: %s\n", p->works ? "works" : probe_cause_what(p->cause));
    if (!p->works && *probe_cause_remedy(p->cause) != '\0')
        printf("remedy: %s\n", probe_cause_remedy(p->cause));
    if (p->detail[0] != '\0')
        printf("detail: %s\n", p->detail);
    if (!p->works && p->inherited_proc)
        printf("weaker: works for workspaces with \"proc\": \"inherited\", whose commands see the "
               "processes of this container\n");
    printf("bubblewrap: %s %s\n", p->bwrap_path[0] ? p->bwrap_path : "none", p->bwrap_version);
    if (p->works)
        printf("own namespaces: user %s, mount %s, process %s, network %s, ipc %s, host name %s, "
               "cgroup %s\nfresh /proc %s, no new privileges %s, system call filter %s, process 1 "
               "is ours %s\n",
               yes(p->user_namespace), yes(p->mount_namespace), yes(p->pid_namespace),
               yes(p->network_namespace), yes(p->ipc_namespace), yes(p->uts_namespace),
               yes(p->cgroup_namespace), yes(p->fresh_proc), yes(p->no_new_privs), yes(p->seccomp),
               yes(p->pid1));
    if (p->works)
        printf("enabled network: %s%s\n",
               p->egress ? "possible" : "not possible: ", p->egress_detail);
}

int check_main(enum check_output output)
{
    struct probe_result p;
    autobuf json = BUF_INIT;
    check_sandbox(&p);
    if (output == CHECK_JSON) {
        probe_write(&p, &json);
        puts(buf_cstr(&json));
    } else if (output == CHECK_EXPLAIN) {
        explain(&p);
    }
    return p.works ? 0 : 1;
}
