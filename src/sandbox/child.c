/* sandbox/child: see child.h. */
#include "sandbox/child.h"

#include "base/mem.h"
#include "sandbox/exits.h"
#include "sandbox/report.h"
#include "sys/fd.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Static: there is one child at a time. */
#define STACK_BYTES (256u << 10)
static _Alignas(64) char stack[STACK_BYTES];

static const int limit_resources[PLAN_LIMIT_MAX] = {
    [PLAN_LIMIT_CPU_SECONDS] = RLIMIT_CPU,
    [PLAN_LIMIT_FILE_SIZE] = RLIMIT_FSIZE,
    [PLAN_LIMIT_FILES] = RLIMIT_NOFILE,
    [PLAN_LIMIT_DATA] = RLIMIT_DATA,
};

/* Never above what there is: a limit of ours cannot give back what the caller's took. Processor
 * time ends with a signal of its own (SIGXCPU), and a second later, for who goes on, with SIGKILL,
 * which would not say why. */
static int set_limit(int resource, uint64_t value)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return -1;
    uint64_t last = value + (resource == RLIMIT_CPU);
    if (last < limit.rlim_max)
        limit.rlim_max = last;
    limit.rlim_cur = value < limit.rlim_max ? value : limit.rlim_max;
    return setrlimit(resource, &limit);
}

/* `files`: the soft limit of open files that was raised for the set-up. 0 or -1. */
static int set_limits(const struct plan *p, unsigned long files)
{
    struct rlimit none = {0, 0};
    struct rlimit open_files;
    if (setrlimit(RLIMIT_CORE, &none) < 0)
        return -1;
    if (files != 0 && getrlimit(RLIMIT_NOFILE, &open_files) == 0) {
        open_files.rlim_cur = files;
        setrlimit(RLIMIT_NOFILE, &open_files);
    }
    for (int i = 0; i < PLAN_LIMIT_MAX; i++) {
        if (p->limits[i] != 0 && set_limit(limit_resources[i], p->limits[i]) < 0)
            return -1;
    }
    return 0;
}

/* ---- finding the program; as execvp(3), whose work differs between C libraries ---- */

/* Where to look when the command has no PATH. */
#define PATH_FALLBACK "/usr/local/bin:/usr/bin:/bin"

/* A file that is executable and no program is a script for the shell. Returns when that failed. */
static void execute(const struct child_start *c, const char *path)
{
    execve(path, c->plan->argv.items, c->plan->env.items);
    if (errno != ENOEXEC)
        return;
    c->script[1] = (char *)path;
    execve(c->script[0], c->script, c->plan->env.items);
}

/* Is there a sense in looking further? */
static bool is_elsewhere(int errnum)
{
    return errnum == ENOENT || errnum == ENOTDIR || errnum == EACCES || errnum == ESTALE ||
           errnum == ENODEV || errnum == ETIMEDOUT || errnum == ENAMETOOLONG;
}

static const char *path_of(char *const *env)
{
    for (; env != NULL && *env != NULL; env++) {
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    }
    return PATH_FALLBACK;
}

/* Sets errno: EACCES when a file was found that may not be executed. */
static void search(const struct child_start *c, const char *name)
{
    char full[PATH_MAX];
    bool forbidden = false;
    const char *dir = path_of(c->plan->env.items);
    for (size_t n = strcspn(dir, ":");; dir += n + 1, n = strcspn(dir, ":")) {
        if (n + strlen(name) + 2 <= sizeof(full)) {
            memcpy(full, dir, n);
            full[n] = '/';
            strcpy(full + n + (n > 0), name);
            execute(c, full);
        } else {
            errno = ENAMETOOLONG;
        }
        if (!is_elsewhere(errno))
            return;
        forbidden |= errno == EACCES;
        if (dir[n] == '\0')
            break;
    }
    errno = forbidden ? EACCES : ENOENT;
}

/* ---- becoming the command ---- */

static void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The steps up to exec; the first that fails. Nothing here may allocate or lock: the memory is
 * our parent's. */
static enum child_step become(const struct child_start *c)
{
    bool ahead = c->arrive != NULL;
    if (!ahead && setsid() < 0)
        return CHILD_PROCESS;
    if (c->plan->tty && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
        return CHILD_TERMINAL;
    if (set_limits(c->plan, c->files) < 0)
        return CHILD_PROCESS;
    umask(022);
    if (chdir(c->plan->cwd) < 0)
        return CHILD_CWD;
    /* Ahead, they were process 1's as well. */
    if ((ahead && unshare(CLONE_FILES) < 0) || fd_close_from(3) < 0)
        return CHILD_PROCESS;
    unblock_signals();
    if (c->plan->report)
        _exit(report_write(STDOUT_FILENO));
    if (strchr(c->plan->argv.items[0], '/') != NULL)
        execute(c, c->plan->argv.items[0]);
    else
        search(c, c->plan->argv.items[0]);
    return CHILD_EXEC;
}

/* The shell, the file, and the command's other words. */
static char **script_words(const struct strv *argv)
{
    char **words = mem_zalloc(argv->len + 2, sizeof(*words));
    words[0] = (char *)"/bin/sh";
    for (size_t i = 1; i < argv->len; i++)
        words[i + 1] = argv->items[i];
    return words;
}

/* On a stack that the address sanitizer does not know it would warn before a call that does not
 * return, on the command's standard error. */
__attribute__((no_sanitize("address"))) static int child_main(void *arg)
{
    struct child_start *c = arg;
    c->step = become(c);
    c->error = errno;
    _exit(127);
}

__attribute__((no_sanitize("address"))) static int ahead_main(void *arg)
{
    struct child_start *c = arg;
    if (setsid() < 0) /* it takes the kernel 10 us, which nobody waits for yet */
        _exit(SANDBOX_EXIT_START);
    int code = c->arrive(c->user);
    if (code != 0)
        _exit(code - 1);
    c->script = script_words(&c->plan->argv);
    c->step = CHILD_STARTED; /* from here on it counts as begun, however it ends */
    c->step = become(c);
    c->error = errno;
    _exit(127);
}

/* The kernel's own call: C libraries keep a few signals from sigaction(3). All zero is the default.
 */
void child_default_signals(void)
{
    static const unsigned long fallback[4];
    for (int i = 1; i <= 64; i++)
        syscall(SYS_rt_sigaction, i, fallback, NULL, (size_t)8);
}

/* The three pages that are used on the way to exec, and one to spare: each costs every command a
 * page to be made and given back. */
#define STACK_TOUCHED (4u << 12)

void child_rehearse(void)
{
    memset(stack + STACK_BYTES - STACK_TOUCHED, 0, STACK_TOUCHED);
}

void child_run(struct child_start *c)
{
    autofree char **words = script_words(&c->plan->argv);
    c->script = words;
    c->step = CHILD_STARTED;
    c->error = 0;
    c->pid = clone(child_main, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, c);
    if (c->pid < 0) {
        c->step = CHILD_PROCESS;
        c->error = errno;
    }
    c->script = NULL;
}

/* The kernel writes c->tid when the process lets go of this memory, which is when it has executed.
 * Not every C library makes such a process. */
int child_ahead(struct child_start *c)
{
    const int flags = CLONE_VM | CLONE_FILES | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
    c->step = CHILD_WAITS;
    c->error = 0;
    c->tid = -1;
    c->pid = clone(ahead_main, stack + STACK_BYTES, flags, c, NULL, NULL, &c->tid);
    return c->pid < 0 ? -errno : 0;
}

bool child_has_left(const struct child_start *c)
{
    return c->tid == 0;
}
