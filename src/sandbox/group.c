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
    autofree char *where =
        mem_printf("%s (no process may be in that group itself; then the operator writes +%s "
                   "there)",
                   file, limits[i].controller);
    return refuse(i, e, "the controller is not in ", where);
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
static int make_groups(const struct strv *groups, struct strv *dirs, struct err *e)
{
    for (size_t i = 0; i < groups->len; i += MEMBERS) {
        autofree char *dir = mem_printf("%s/" NAME "%d", groups->items[i], (int)getpid());
        if (strv_has(dirs, dir))
            continue;
        remove_stale(groups->items[i]);
        if (mkdir(dir, 0755) < 0 && (errno != EEXIST || rmdir(dir) < 0 || mkdir(dir, 0755) < 0))
            return err_sys(e, ERR_SANDBOX_UNAVAILABLE, errno, "no group can be made: %s", dir);
        strv_add(dirs, dir);
    }
    return 0;
}

static bool is_of_swap(const char *file)
{
    return str_eq(file, SWAP_V1) || str_eq(file, SWAP_V2);
}

static int set_limits(const struct strv *groups, struct err *e)
{
    for (size_t i = 0; i < groups->len; i += MEMBERS) {
        autofree char *dir = mem_printf("%s/" NAME "%d", groups->items[i], (int)getpid());
        int rc = write_file(dir, groups->items[i + 1], groups->items[i + 2]);
        if (rc < 0 && !(rc == -ENOENT && is_of_swap(groups->items[i + 1])))
            return err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc, "%s/%s", dir, groups->items[i + 1]);
    }
    return 0;
}

/* What the errors of version 2 mean: cgroups(7), "Delegation". */
static const char *advice_of(int error)
{
    return error == EACCES || error == ENOENT
               ? "; a user may move processes only within what was delegated to him: start the "
                 "server below cgroup_parent, in a group of its own there"
           : error == EOPNOTSUPP ? "; cgroup_parent is a group of threads (cgroup.type)"
                                 : "";
}

static int move_into(const struct strv *dirs, struct err *e)
{
    for (size_t i = 0; i < dirs->len; i++) {
        int rc = write_file(dirs->items[i], "cgroup.procs", "0");
        if (rc < 0)
            return err_set(e, ERR_SANDBOX_UNAVAILABLE, "%s/cgroup.procs: %s%s", dirs->items[i],
                           strerror(-rc), advice_of(-rc));
    }
    return 0;
}

static int enter(const struct strv *groups, struct strv *dirs, struct err *e)
{
    if (make_groups(groups, dirs, e) < 0 || set_limits(groups, e) < 0)
        return -1;
    autofd int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    int rc = pidfd < 0 ? -errno : start_janitor(dirs, pidfd);
    if (rc < 0)
        return err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc, "nothing would remove the group");
    return move_into(dirs, e);
}

/* ---- what it tells ---- */

/* The file that tells of a limit's events, by the file that holds the limit. */
static const struct {
    const char *limit;
    enum group_event event;
    const char *file;
} tellers[] = {
    {"memory.max", GROUP_MEMORY, "memory.events"},
    {"memory.limit_in_bytes", GROUP_MEMORY, "memory.oom_control"},
    {"pids.max", GROUP_PIDS, "pids.events"},
};

static const char *events_of(const char *limit, enum group_event event)
{
    for (size_t i = 0; i < ARRAY_LEN(tellers); i++) {
        if (tellers[i].event == event && str_eq(tellers[i].limit, limit))
            return tellers[i].file;
    }
    return NULL;
}

bool group_has_events(const struct strv *groups, enum group_event event)
{
    for (size_t i = 0; i < groups->len; i += MEMBERS) {
        if (events_of(groups->items[i + 1], event) != NULL)
            return true;
    }
    return false;
}

/* A kernel that has no such file tells nothing. */
static int open_events(const struct strv *groups, enum group_event event)
{
    for (size_t i = 0; i < groups->len; i += MEMBERS) {
        const char *file = events_of(groups->items[i + 1], event);
        if (file == NULL)
            continue;
        autofree char *path = mem_printf("%s/" NAME "%d/%s", groups->items[i], (int)getpid(), file);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd >= 0 ? fd : open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    return -1;
}

/* The number behind a word of its own line; UINT64_MAX where there is no such line. */
static uint64_t count_of(const char *text, const char *word)
{
    autofree char *start = mem_printf("\n%s ", word);
    const char *line = strstr(text, start);
    uint64_t n = 0;
    if (line == NULL)
        return UINT64_MAX;
    sscanf(line + strlen(start), "%20" SCNu64, &n);
    return n;
}

/* From the start of the file on; `text` gets a line break before it. */
static void read_events(int events, char *text, size_t cap)
{
    ssize_t n = events < 0 ? 0 : pread(events, text + 1, cap - 2, 0);
    text[0] = '\n';
    text[n > 0 ? n + 1 : 0] = '\0';
}

static uint32_t at_most_32_bits(uint64_t n)
{
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* Version 2 counts in `oom_kill` also who was ended because a group above, or the machine, had no
 * memory left; `oom` are the group's own. */
uint32_t group_oom_kills(int events)
{
    char text[512];
    read_events(events, text, sizeof(text));
    uint64_t kills = count_of(text, "oom_kill");
    return kills == UINT64_MAX || count_of(text, "oom") == 0 ? 0 : at_most_32_bits(kills);
}

uint32_t group_pids_refused(int events)
{
    char text[512];
    read_events(events, text, sizeof(text));
    uint64_t refused = count_of(text, "max");
    return refused == UINT64_MAX ? 0 : at_most_32_bits(refused);
}

int group_enter(const struct strv *groups, int ret_events[GROUP_EVENTS], struct err *e)
{
    autostrv dirs = {0};
    int rc = enter(groups, &dirs, e);
    for (int i = 0; rc == 0 && i < GROUP_EVENTS; i++)
        ret_events[i] = open_events(groups, (enum group_event)i);
    for (size_t i = 0; rc < 0 && i < dirs.len; i++)
        rmdir(dirs.items[i]);
    return rc;
}
