/* sandbox/group: see group.h. */
#include "sandbox/group.h"

#include "base/mem.h"
#include "base/num.h"
#include "sys/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define V1_ROOT "/sys/fs/cgroup/"
#define NAME "codespace-"

/* bubblewrap and process 1 count, too. */
#define OUR_PROCESSES 2

/* A slice of time for cpu limits, the kernel's default. */
#define PERIOD_US 100000u

/* How long the processes of a sandbox that is gone may take before they are killed. */
#define GRACE_MS 2000
#define STEP_MS 20

/* Each member of plan.groups: directory in which the group is made, file in the group, text. */
#define MEMBERS 3

static const struct limit {
    const char *name;
    size_t offset; /* in struct helper_limits */
    const char *controller;
    const char *v1;
    const char *v2;
} limits[] = {
    {"memory", offsetof(struct helper_limits, memory), "memory", "memory.limit_in_bytes",
     "memory.max"},
    {"pids", offsetof(struct helper_limits, pids), "pids", "pids.max", "pids.max"},
    {"cpu_percent", offsetof(struct helper_limits, cpu_percent), "cpu", "cpu.cfs_quota_us",
     "cpu.max"},
};

/* A limit of memory that swap would go around. Version 1 has one file for both together, version 2
 * one for swap alone; a kernel that does not account swap has neither. */
#define SWAP_V1 "memory.memsw.limit_in_bytes"
#define SWAP_V2 "memory.swap.max"

/* ---- at prepare ---- */

static uint64_t value_of(const struct helper_limits *l, size_t i)
{
    return *(const uint64_t *)(const void *)((const char *)l + limits[i].offset);
}

static bool is_v2(const char *parent)
{
    autofree char *file = mem_printf("%s/cgroup.controllers", parent);
    return access(file, F_OK) == 0;
}

/* The directory of `parent`'s name under another controller; NULL when parent is none of v1's. */
static char *v1_parent(const char *parent, const char *controller)
{
    if (!str_starts(parent, V1_ROOT))
        return NULL;
    const char *slash = strchr(parent + strlen(V1_ROOT), '/');
    return slash == NULL ? NULL : mem_printf(V1_ROOT "%s%s", controller, slash);
}

static char *text_of(size_t i, uint64_t value, bool v2)
{
    if (str_eq(limits[i].controller, "cpu"))
        return v2 ? mem_printf("%" PRIu64 " %u", value * (PERIOD_US / 100), PERIOD_US)
                  : mem_printf("%" PRIu64, value * (PERIOD_US / 100));
    return mem_printf("%" PRIu64, value + (str_eq(limits[i].name, "pids") ? OUR_PROCESSES : 0));
}

static int refuse(size_t i, struct err *e, const char *cause, const char *parent)
{
    return err_set(
        e, ERR_INVALID_COMMAND,
        "limits: %s cannot be held: %s%s; leave the limit out, or let an operator give a "
        "control group directory that this user may make groups in (cgroup_parent)",
        limits[i].name, cause, parent);
}

static int check_controller(size_t i, const char *parent, bool v2, struct err *e)
{
    char enabled[256] = "";
    if (access(parent, W_OK | X_OK) < 0)
        return refuse(i, e, errno == ENOENT ? "there is no " : "no permission for ", parent);
    if (!v2) {
        autofree char *file = mem_printf("%s/%s", parent, limits[i].v1);
        return access(file, F_OK) == 0 ? 0 : refuse(i, e, "no such controller in ", parent);
    }
    autofree char *file = mem_printf("%s/cgroup.subtree_control", parent);
    autofd int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, enabled, sizeof(enabled) - 1);
    enabled[n > 0 ? n : 0] = '\0';
    for (char *save, *word = strtok_r(enabled, " \n", &save); word != NULL;
         word = strtok_r(NULL, " \n", &save)) {
        if (str_eq(word, limits[i].controller))
            return 0;
    }
    return refuse(i, e, "the controller is not in ", file);
}

static int plan_limit(const struct helper_request *r, size_t i, struct plan *p, struct err *e)
{
    uint64_t value = value_of(&r->limits, i);
    if (value == 0)
        return 0;
    if (r->cgroup_parent == NULL)
        return refuse(i, e, "no control group directory is given", "");
    bool v2 = is_v2(r->cgroup_parent);
    autofree char *parent =
        v2 ? mem_strdup(r->cgroup_parent) : v1_parent(r->cgroup_parent, limits[i].controller);
    if (parent == NULL)
        return refuse(i, e, "not a directory below a control group's root: ", r->cgroup_parent);
    if (value > UINT64_MAX / PERIOD_US)
        return refuse(i, e, "it is too large", "");
    if (check_controller(i, parent, v2, e) < 0)
        return -1;
    strv_add(&p->groups, parent);
    strv_add(&p->groups, v2 ? limits[i].v2 : limits[i].v1);
    strv_add_take(&p->groups, text_of(i, value, v2));
    if (str_eq(limits[i].controller, "memory")) {
        strv_add(&p->groups, parent);
        strv_add(&p->groups, v2 ? SWAP_V2 : SWAP_V1);
        strv_add_take(&p->groups, v2 ? mem_strdup("0") : text_of(i, value, v2));
    }
    return 0;
}

int group_plan(const struct helper_request *r, struct plan *p, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        if (plan_limit(r, i, p, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- at run ---- */

static int write_file(const char *dir, const char *file, const char *text)
{
    autofree char *path = mem_printf("%s/%s", dir, file);
    autofd int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return fd_write_all(fd, text, strlen(text));
}

/* Groups of sandboxes that are gone. */
static void remove_stale(const char *parent)
{
    DIR *d = opendir(parent);
    for (struct dirent *it = d == NULL ? NULL : readdir(d); it != NULL; it = readdir(d)) {
        uint64_t pid;
        if (!str_starts(it->d_name, NAME) ||
            num_parse_u64(it->d_name + strlen(NAME), 1, INT_MAX, &pid) < 0 ||
            (pid_t)pid == getpid() || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            continue;
        unlinkat(dirfd(d), it->d_name, AT_REMOVEDIR);
    }
    if (d != NULL)
        closedir(d);
}

/* Kill what is left in a group: version 2 does it at once, whatever they start meanwhile. The
 * numbers are of our own PID namespace. */
static void kill_members(const char *dir)
{
    if (write_file(dir, "cgroup.kill", "1") == 0)
        return;
    autofree char *path = mem_printf("%s/cgroup.procs", dir);
    FILE *f = fopen(path, "re");
    long pid;
    while (f != NULL && fscanf(f, "%ld", &pid) == 1) {
        if (pid > 1)
            kill((pid_t)pid, SIGKILL);
    }
    if (f != NULL)
        fclose(f);
}

/* Until every group is gone. */
static void remove_groups(const struct strv *dirs)
{
    for (size_t i = 0; i < dirs->len; i++) {
        for (int waited = 0; rmdir(dirs->items[i]) < 0 && errno == EBUSY; waited += STEP_MS) {
            if (waited >= GRACE_MS)
                kill_members(dirs->items[i]);
            poll(NULL, 0, STEP_MS);
        }
    }
}

/* A process of nobody's that waits for the end of the one behind `pidfd`, which is us. */
static int start_janitor(const struct strv *dirs, int pidfd)
{
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid > 0)
        return waitpid(pid, NULL, 0) == pid ? 0 : -errno;
    if (setsid() < 0 || fork() != 0)
        _exit(0);
    /* Of what we have open only that is needed; everything else may be somebody's pipe. */
    if (dup2(pidfd, 0) < 0 || fd_close_from(1) < 0)
        _exit(1);
    struct pollfd p = {.fd = 0, .events = POLLIN};
    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        continue;
    remove_groups(dirs);
    _exit(0);
}

/* The directories of the groups, each once, made. */
static int make_groups(const struct strv *groups, struct strv *dirs)
{
    for (size_t i = 0; i < groups->len; i += MEMBERS) {
        autofree char *dir = mem_printf("%s/" NAME "%d", groups->items[i], (int)getpid());
        if (strv_has(dirs, dir))
            continue;
        remove_stale(groups->items[i]);
        if (mkdir(dir, 0755) < 0 && (errno != EEXIST || rmdir(dir) < 0 || mkdir(dir, 0755) < 0))
            return -errno;
        strv_add(dirs, dir);
    }
    return 0;
}

static bool is_of_swap(const char *file)
{
    return str_eq(file, SWAP_V1) || str_eq(file, SWAP_V2);
}

static int set_limits(const struct strv *groups, const char **ret_what)
{
    for (size_t i = 0; i < groups->len; i += MEMBERS) {
        autofree char *dir = mem_printf("%s/" NAME "%d", groups->items[i], (int)getpid());
        int rc = write_file(dir, groups->items[i + 1], groups->items[i + 2]);
        *ret_what = groups->items[i + 1];
        if (rc < 0 && !(rc == -ENOENT && is_of_swap(groups->items[i + 1])))
            return rc;
    }
    return 0;
}

static int enter(const struct strv *groups, struct strv *dirs, const char **ret_what)
{
    int rc = make_groups(groups, dirs);
    if (rc == 0)
        rc = set_limits(groups, ret_what);
    autofd int pidfd = rc < 0 ? -1 : (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (rc == 0)
        rc = pidfd < 0 ? -errno : start_janitor(dirs, pidfd);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < dirs->len && rc == 0; i++)
        rc = write_file(dirs->items[i], "cgroup.procs", "0");
    return rc;
}

/* ---- what it tells ---- */

/* The file that tells of a memory limit's events, by the file that holds the limit. */
static const char *events_of(const char *file)
{
    return str_eq(file, "memory.max")              ? "memory.events"
           : str_eq(file, "memory.limit_in_bytes") ? "memory.oom_control"
                                                   : NULL;
}

bool group_has_events(const struct strv *groups)
{
    for (size_t i = 0; i < groups->len; i += MEMBERS) {
        if (events_of(groups->items[i + 1]) != NULL)
            return true;
    }
    return false;
}

/* A kernel that has no such file tells nothing. */
static int open_events(const struct strv *groups)
{
    for (size_t i = 0; i < groups->len; i += MEMBERS) {
        const char *file = events_of(groups->items[i + 1]);
        if (file == NULL)
            continue;
        autofree char *path = mem_printf("%s/" NAME "%d/%s", groups->items[i], (int)getpid(), file);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd >= 0 ? fd : open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    return -1;
}

uint32_t group_oom_kills(int events)
{
    char text[512] = "\n";
    ssize_t n = events < 0 ? 0 : pread(events, text + 1, sizeof(text) - 2, 0);
    text[n > 0 ? n + 1 : 0] = '\0';
    const char *line = strstr(text, "\noom_kill ");
    uint64_t kills = 0;
    if (line != NULL)
        sscanf(line, "\noom_kill %10" SCNu64, &kills);
    return kills > UINT32_MAX ? UINT32_MAX : (uint32_t)kills;
}

int group_enter(const struct strv *groups, int *ret_events, struct err *e)
{
    autostrv dirs = {0};
    const char *what = "the group";
    int rc = enter(groups, &dirs, &what);
    if (rc == 0) {
        *ret_events = open_events(groups);
        return 0;
    }
    for (size_t i = 0; i < dirs.len; i++)
        rmdir(dirs.items[i]);
    return err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc, "%s", what);
}
