/* sandbox/prepare: see prepare.h. */
#include "sandbox/prepare.h"

#include "base/mem.h"
#include "sandbox/bwrap.h"
#include "sandbox/environ.h"
#include "sandbox/filter.h"
#include "sandbox/group.h"
#include "sandbox/layout.h"
#include "sandbox/netdoor.h"
#include "sandbox/paths.h"
#include "sandbox/planfile.h"
#include "sandbox/scope.h"
#include "sandbox/tools.h"
#include "sandbox/zygote.h"
#include "sys/fd.h"
#include "sys/privdir.h"
#include "wire/plan.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What execve(2) takes: one word or variable (MAX_ARG_STRLEN), and all together with the default
 * stack limit, leaving room for pointers. */
#define WORD_MAX 131071u
#define WORDS_MAX (1900u << 10)

/* One read of a request whose size is not known. */
#define READ_BYTES 65536u

static int check_words(const char *what, const struct strv *v, size_t *total, struct err *e)
{
    for (size_t i = 0; i < v->len; i++) {
        size_t n = strlen(v->items[i]);
        *total += n + 1 + sizeof(char *);
        if (n > WORD_MAX)
            return err_set(e, ERR_INVALID_COMMAND,
                           "%s: item %zu has %zu bytes and the kernel takes at most %u in one; put "
                           "it into a file of the workspace or on standard input",
                           what, i, n, WORD_MAX);
    }
    return 0;
}

static int check_size(const struct strv *argv, const struct strv *env, struct err *e)
{
    size_t total = 0;
    if (check_words("argv", argv, &total, e) < 0 || check_words("env", env, &total, e) < 0)
        return -1;
    if (total > WORDS_MAX)
        return err_set(e, ERR_INVALID_COMMAND,
                       "argv and env have %zu bytes together and the kernel takes at most %u; put "
                       "large data into a file of the workspace or on standard input",
                       total, WORDS_MAX);
    return 0;
}

/* Namespaces and the rest that does not depend on the view. A user namespace is asked for by name
 * because bubblewrap leaves it out for root. The command's session is made inside. */
static void add_isolation(struct plan *p, bool network)
{
    layout_args(p, "--as-pid-1", "--unshare-user", "--unshare-pid", "--unshare-ipc",
                "--unshare-uts", "--unshare-cgroup-try", "--hostname", LAYOUT_HOSTNAME,
                "--cap-drop", "ALL", "--chdir", "/", NULL);
    /* A network that is enabled was made already (sandbox/netdoor). */
    if (!network)
        layout_args(p, "--unshare-net", NULL);
}

/* A zygote has to be root in its namespace; its children do the same (sandbox/fresh). */
static void add_user(const struct helper_request *r, struct plan *p)
{
    if (!r->user_namespaces || r->zygote || getuid() != 0)
        return;
    autofree char *uid = mem_printf("%u", PLAN_ROOT_SHOWN);
    autofree char *gid = mem_printf("%u", getgid() != 0 ? getgid() : PLAN_ROOT_SHOWN);
    layout_args(p, "--uid", uid, "--gid", gid, NULL);
}

static unsigned filter_flags(const struct helper_request *r)
{
    return (r->debug ? FILTER_DEBUG : 0) | (r->user_namespaces ? FILTER_NAMESPACES : 0);
}

/* What process 1 needs to lay the masks, and to give even its bounding set up afterwards. */
static void add_capabilities(struct plan *p)
{
    if (p->masks.len > 0)
        layout_args(p, "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP", NULL);
}

static void take_limits(const struct helper_request *r, struct plan *p)
{
    p->limits[PLAN_LIMIT_CPU_SECONDS] = r->limits.cpu_seconds;
    p->limits[PLAN_LIMIT_FILE_SIZE] = r->limits.file_size;
    p->limits[PLAN_LIMIT_FILES] = r->limits.open_files;
    p->limits[PLAN_LIMIT_DATA] = r->limits.data;
}

int prepare_fill(const struct helper_request *r, struct plan *p, struct err *e)
{
    p->tty = r->tty;
    p->keep = r->keep;
    p->namespaces = r->user_namespaces;
    p->workspace = mem_strdup(r->view.workspace);
    p->cwd = mem_strdup(r->cwd);
    for (size_t i = 0; i < r->argv.len; i++)
        strv_add(&p->argv, r->argv.items[i]);
    environ_build(r, &p->env);
    add_isolation(p, r->network == HELPER_NETWORK_ENABLED);
    add_user(r, p);
    if (check_size(&p->argv, &p->env, e) < 0 || scope_build(&r->view, p, e) < 0 ||
        bwrap_find(r->view.workspace, &p->bwrap, e) < 0 || netdoor_plan(r, p, e) < 0 ||
        group_plan(r, p, e) < 0)
        return -1;
    tools_plan(r, p);
    add_capabilities(p);
    take_limits(r, p);
    filter_add(filter_flags(r), &p->filter);
    return r->zygote ? zygote_plan(r, p, e) : 0;
}

/* Where a command can write, it could exchange the plan of the next one. */
static int check_parent(const struct view *v, const char *parent, struct err *e)
{
    autofree char *real = realpath(parent, NULL);
    if (real == NULL)
        return err_sys(e, ERR_PROCESS_SPAWN_FAILED, errno, "plans cannot be stored in %s", parent);
    bool within = v->workspace_writable && paths_within(real, v->workspace);
    within |= v->shared_tmp && paths_within(real, "/tmp");
    for (size_t i = 0; i < v->n_mounts && !within; i++)
        within = v->mounts[i].writable && paths_within(real, v->mounts[i].path);
    if (within)
        return err_set(e, ERR_PROCESS_SPAWN_FAILED,
                       "plans would be stored in %s, where the command can write; set TMPDIR to a "
                       "directory outside the workspace",
                       real);
    return 0;
}

static int store_plan(const struct view *v, const struct plan *p, char **ret_path, struct err *e)
{
    autobuf bytes = BUF_INIT;
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] != '/')
        parent = "/tmp";
    if (check_parent(v, parent, e) < 0)
        return -1;
    plan_write(p, &bytes);
    int rc = privdir_write(parent, PREPARE_DIR_PREFIX, PREPARE_FILE, buf_bytes(&bytes), bytes.len,
                           ret_path);
    if (rc < 0)
        return err_sys(e, ERR_PROCESS_SPAWN_FAILED, rc, "the plan cannot be stored in %s", parent);
    return 0;
}

int prepare_plan(const struct helper_request *r, char **ret_path, struct strv *ret_guards,
                 struct err *e)
{
    struct plan p = {0};
    int rc = prepare_fill(r, &p, e);
    if (rc == 0)
        rc = store_plan(&r->view, &p, ret_path, e);
    if (rc == 0 && ret_guards != NULL) {
        *ret_guards = p.guards;
        p.guards = (struct strv){0};
    }
    plan_fini(&p);
    return rc;
}

int prepare_report(const struct helper_request *r, int *ret_fd, struct err *e)
{
    struct plan p = {.report = true};
    int rc = prepare_fill(r, &p, e);
    int fd = rc == 0 ? planfile_in_memory(&p) : -1;
    if (rc == 0 && fd < 0)
        rc = err_sys(e, ERR_SANDBOX_UNAVAILABLE, fd, "no memory file for a plan");
    if (rc == 0)
        *ret_fd = fd;
    plan_fini(&p);
    return rc;
}

/* A file is read at once, and once more to see its end: memory that is only reserved is copied when
 * the buffer grows, a page fault for each page. */
static size_t bytes_of_read(int fd)
{
    struct stat st;
    bool known = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
                 st.st_size <= HELPER_REQUEST_MAX;
    return known ? (size_t)st.st_size + 1 : READ_BYTES;
}

int prepare_read_request(int fd, struct helper_request *ret, struct err *e)
{
    autobuf in = BUF_INIT;
    size_t max = bytes_of_read(fd);
    ssize_t n;
    do {
        n = fd_read(fd, buf_reserve(&in, max), max);
        if (n < 0)
            return err_sys(e, ERR_INVALID_COMMAND, (int)n, "the request cannot be read");
        buf_commit(&in, (size_t)n);
    } while (n > 0 && in.len <= HELPER_REQUEST_MAX);
    return helper_request_read(buf_bytes(&in), in.len, ret, e);
}

int prepare_main(void)
{
    struct err e = {0};
    autobuf answer = BUF_INIT;
    autofree char *path = NULL;
    struct helper_request r = {0};
    autostrv guards = {0};
    bool ok = prepare_read_request(STDIN_FILENO, &r, &e) == 0 &&
              prepare_plan(&r, &path, &guards, &e) == 0;
    helper_request_fini(&r);
    if (ok)
        helper_answer_write_plan(path, &guards, &answer);
    else
        helper_answer_write_error(e.message, &answer);
    signal(SIGPIPE, SIG_IGN);
    if (fd_write_all(STDOUT_FILENO, buf_bytes(&answer), answer.len) < 0) {
        if (ok) /* whoever asked does not want it any more, and nobody else knows of it */
            privdir_discard(path);
        return 1;
    }
    return ok ? 0 : 1;
}
