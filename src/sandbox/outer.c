/* sandbox/outer: see outer.h. */
#include "sandbox/outer.h"

#include "base/mem.h"
#include "base/str.h"
#include "sandbox/control.h"
#include "sandbox/exits.h"
#include "sandbox/group.h"
#include "sandbox/netca.h"
#include "sandbox/netdoor.h"
#include "sandbox/planfile.h"
#include "sandbox/prepare.h"
#include "sys/fd.h"
#include "sys/path.h"
#include "wire/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors beside the sources and the fixed ones, with room to move them. */
#define FILES_SPARE 64u

/* The descriptors in the order of their final numbers, from PLAN_FD_PLAN on. */
struct arrangement {
    int *fds;
    size_t n;
};

static void arrangement_fini(struct arrangement *a)
{
    for (size_t i = 0; i < a->n; i++)
        fd_close(&a->fds[i]);
    free(a->fds);
}

/* Takes fd. */
static int add(struct arrangement *a, int fd)
{
    if (fd >= 0)
        a->fds[a->n++] = fd;
    return fd < 0 ? -errno : 0;
}

static int open_text(const char *text)
{
    autofd int fd = memfd_create("text", MFD_CLOEXEC);
    int rc = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
    if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
        rc = -errno;
    if (rc < 0)
        errno = -rc;
    return rc < 0 ? -1 : steal_fd(&fd);
}

/* The place exactly as it is named: a link on the way means that somebody changed it after the
 * plan was made. */
static int open_source(int root_fd, const char *path)
{
    if (path[0] == '\0' || netca_is_source(path)) /* which comes later */
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (path[0] == '=')
        return open_text(path + 1);
    int fd = path_open_beneath(root_fd, path + 1, O_PATH, 0);
    if (fd < 0)
        errno = -fd;
    return fd;
}

static int collect(struct arrangement *a, const struct plan *p, int plan_fd, const char **ret_what)
{
    autofd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    a->fds = mem_zalloc(PLAN_FD_SOURCE + p->sources.len, sizeof(*a->fds));
    *ret_what = "descriptors";
    if (add(a, plan_fd) < 0 || add(a, open("/proc/self/exe", O_PATH | O_CLOEXEC)) < 0 ||
        add(a, fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)) < 0 ||
        add(a, fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) < 0 ||
        add(a, fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) < 0 ||
        add(a, fcntl(plan_fd, F_DUPFD_CLOEXEC, 3)) < 0)
        return -errno;
    for (size_t i = 0; i < p->sources.len; i++) {
        *ret_what = p->sources.items[i];
        if (add(a, open_source(root_fd, p->sources.items[i])) < 0)
            return -errno;
    }
    return 0;
}

/* bubblewrap's own input and output. */
static int detach_standard(void)
{
    autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return -errno;
    return 0;
}

/* First out of each other's way, then each to its number. Only those lose close-on-exec. */
static int place(struct arrangement *a, int control)
{
    int above = PLAN_FD_PLAN + (int)a->n;
    autofd int out = fcntl(control, F_DUPFD_CLOEXEC, above);
    if (out < 0 || detach_standard() < 0 || fd_cloexec_from(3) < 0)
        return -errno;
    for (size_t i = 0; i < a->n; i++) {
        int moved = fcntl(a->fds[i], F_DUPFD_CLOEXEC, above);
        if (moved < 0)
            return -errno;
        close(a->fds[i]);
        a->fds[i] = moved;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (dup2(a->fds[i], PLAN_FD_PLAN + (int)i) < 0)
            return -errno;
    }
    return dup2(out, STDERR_FILENO) < 0 ? -errno : 0;
}

/* Room for many sources; *ret is the limit to give back to the command, 0 when nothing changed. */
static int make_room(const struct plan *p, unsigned long *ret)
{
    struct rlimit limit;
    rlim_t need = 2 * (p->sources.len + PLAN_FD_SOURCE) + FILES_SPARE;
    *ret = 0;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    if (limit.rlim_cur >= need)
        return 0;
    if (limit.rlim_max < need)
        return -EMFILE;
    *ret = limit.rlim_cur;
    limit.rlim_cur = need;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

/* Nothing about the plan is in the arguments: they can be read from outside and inside. */
static int execute(const struct plan *p, bool die_with_parent, unsigned long files)
{
    autostrv argv = {0};
    char *const env[] = {NULL};
    strv_add(&argv, "bwrap");
    strv_add(&argv, "--args");
    strv_addf(&argv, "%d", PLAN_FD_ARGS);
    if (die_with_parent)
        strv_add(&argv, "--die-with-parent");
    strv_add(&argv, "--");
    strv_addf(&argv, "/proc/self/fd/%d", PLAN_FD_HELPER);
    strv_add(&argv, "inner");
    strv_add(&argv, "--plan-fd");
    strv_addf(&argv, "%d", PLAN_FD_PLAN);
    strv_add(&argv, "--files");
    strv_addf(&argv, "%lu", files);
    if (die_with_parent)
        strv_add(&argv, "--quiet");
    if (lseek(PLAN_FD_ARGS, (off_t)p->args_at, SEEK_SET) < 0)
        return -errno;
    execve(p->bwrap, strv_array(&argv), env);
    return -errno;
}

/* The file that the proxy writes, in the place that was kept for it. */
static void take_ca(struct arrangement *a, const struct plan *p, struct netdoor *door)
{
    for (size_t i = 0; i < p->sources.len && door->ca_fd >= 0; i++) {
        int *fd = &a->fds[PLAN_FD_SOURCE - PLAN_FD_PLAN + i];
        if (!netca_is_source(p->sources.items[i]))
            continue;
        fd_close(fd);
        *fd = steal_fd(&door->ca_fd);
    }
}

static int become(const struct plan *p, int plan_fd, int control, int rules, bool die_with_parent)
{
    __attribute__((cleanup(arrangement_fini))) struct arrangement a = {0};
    const char *what = "";
    unsigned long files;
    /* A group of its own, so that whoever started us can kill what bubblewrap leaves when it is
     * killed in the middle of its set-up. */
    setpgid(0, 0);
    int rc = make_room(p, &files);
    if (rc < 0)
        return control_failed(control, SANDBOX_EXIT_DESCRIPTORS,
                              "the limit of open files (RLIMIT_NOFILE) is too low for %zu mounts",
                              p->sources.len);
    rc = collect(&a, p, plan_fd, &what);
    if (rc < 0)
        return control_failed(control, SANDBOX_EXIT_SOURCE, "%.300s: %s", what, strerror(-rc));
    struct err e = {0};
    int events[GROUP_EVENTS];
    __attribute__((cleanup(netdoor_fini))) struct netdoor door = {
        .fd = -1, .ca_fd = -1, .rules_fd = rules};
    /* Before the group: its limits are the command's. */
    if (netdoor_start(p, &door, &e) < 0)
        return control_failed(control, SANDBOX_EXIT_NETWORK, "%s", e.message);
    take_ca(&a, p, &door);
    if (p->groups.len > 0 && group_enter(&p->groups, events, &e) < 0)
        return control_failed(control, SANDBOX_EXIT_LIMITS, "%s", e.message);
    for (int i = 0; p->groups.len > 0 && i < GROUP_EVENTS; i++)
        add(&a, events[i]);
    if (netdoor_enter(p, &door, &e) < 0)
        return control_failed(control, SANDBOX_EXIT_NETWORK, "%s", e.message);
    if (door.fd >= 0)
        add(&a, steal_fd(&door.fd));
    rc = place(&a, control);
    if (rc < 0)
        return control_failed(control, SANDBOX_EXIT_DESCRIPTORS, "%s", strerror(-rc));
    rc = execute(p, die_with_parent, files);
    return control_failed(STDERR_FILENO, SANDBOX_EXIT_BWRAP_START, "%.300s: %s", p->bwrap,
                          strerror(-rc));
}

static int become_plan(int plan_fd, int control, int rules, bool die_with_parent)
{
    struct err e = {0};
    struct plan p = {0};
    if (planfile_read(plan_fd, &p, &e) < 0)
        return control_failed(control, SANDBOX_EXIT_PLAN_FORM, "%s", e.message);
    int code = become(&p, plan_fd, control, rules, die_with_parent);
    plan_fini(&p);
    return code;
}

int outer_become_plan(int plan_fd, int control, bool die_with_parent)
{
    return become_plan(plan_fd, control, -1, die_with_parent);
}

static int check_descriptor(const char *option, int fd)
{
    if (fd > STDERR_FILENO && fcntl(fd, F_GETFD) >= 0)
        return 0;
    sandbox_say("%s %d is not an open descriptor above 2", option, fd);
    return -1;
}

int outer_main(const char *path, int control, int rules)
{
    struct err e = {0};
    if ((rules >= 0 && check_descriptor("--rules-fd", rules) < 0) ||
        check_descriptor("--control-fd", control) < 0)
        return SANDBOX_EXIT_USAGE;
    int plan_fd = planfile_take(path, &e);
    if (plan_fd < 0)
        return control_failed(control, SANDBOX_EXIT_PLAN_FILE, "%s", e.message);
    return become_plan(plan_fd, control, rules, false);
}

/* From the request to the plan, in memory. */
static int prepare(int request, struct plan *p, int *ret_plan_fd, struct err *e)
{
    struct helper_request r = {0};
    int rc = prepare_read_request(request, &r, e);
    close(request);
    if (rc == 0)
        rc = prepare_fill(&r, p, e);
    helper_request_fini(&r);
    if (rc < 0)
        return -1;
    *ret_plan_fd = planfile_in_memory(p);
    if (*ret_plan_fd < 0)
        return err_sys(e, ERR_PROCESS_SPAWN_FAILED, *ret_plan_fd, "no memory file for the plan");
    return 0;
}

static int start(int request, int control, int rules)
{
    struct err e = {0};
    struct plan p = {0};
    autobuf answer = BUF_INIT;
    int plan_fd = -1;
    int code = 1;
    bool ok = prepare(request, &p, &plan_fd, &e) == 0;
    if (ok)
        helper_answer_write_plan(NULL, &p.guards, &answer);
    else
        helper_answer_write_error(e.message, &answer);
    if (fd_write_all(control, buf_bytes(&answer), answer.len) == 0 && ok)
        code = become(&p, plan_fd, control, rules, false);
    plan_fini(&p);
    return code;
}

int outer_start_main(int request, int control, int rules)
{
    if ((rules >= 0 && check_descriptor("--rules-fd", rules) < 0) ||
        check_descriptor("--control-fd", control) < 0 ||
        check_descriptor("--request-fd", request) < 0)
        return SANDBOX_EXIT_USAGE;
    if (request == control || request == rules || control == rules) {
        sandbox_say("--request-fd, --control-fd and --rules-fd must be different descriptors");
        return SANDBOX_EXIT_USAGE;
    }
    return start(request, control, rules);
}
