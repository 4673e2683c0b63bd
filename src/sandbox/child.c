/* sandbox/child: see child.h. */
#include "sandbox/child.h"

#include "base/mem.h"
#include "sandbox/report.h"
#include "sys/fd.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* execvp() copies the words onto the stack when it has to run a script without "#!". */
#define STACK_BYTES (1u << 20)

static void reset_signals(void)
{
    const struct sigaction fallback = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        sigaction(i, &fallback, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static const int limit_resources[PLAN_LIMIT_MAX] = {
    [PLAN_LIMIT_CPU_SECONDS] = RLIMIT_CPU,
    [PLAN_LIMIT_FILE_SIZE] = RLIMIT_FSIZE,
    [PLAN_LIMIT_FILES] = RLIMIT_NOFILE,
};

/* Never above what there is: a limit of ours cannot give back what the caller's took. */
static int set_limit(int resource, uint64_t value)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return -1;
    if (value < limit.rlim_max)
        limit.rlim_max = value;
    limit.rlim_cur = limit.rlim_max;
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

/* The steps up to exec; the first that fails. Nothing here may allocate or lock: the memory is
 * our parent's. */
static enum child_step become(const struct child_start *c)
{
    if (setsid() < 0)
        return CHILD_PROCESS;
    if (c->plan->tty && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
        return CHILD_TERMINAL;
    if (set_limits(c->plan, c->files) < 0)
        return CHILD_PROCESS;
    umask(022);
    if (chdir(c->plan->cwd) < 0)
        return CHILD_CWD;
    if (fd_close_from(3) < 0)
        return CHILD_PROCESS;
    reset_signals();
    if (c->plan->report)
        _exit(report_write(STDOUT_FILENO));
    environ = c->plan->env.items;
    execvp(c->plan->argv.items[0], c->plan->argv.items);
    return CHILD_EXEC;
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

void child_run(struct child_start *c)
{
    char **ours = environ;
    c->step = CHILD_STARTED;
    c->error = 0;
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    c->pid = stack == MAP_FAILED
                 ? -1
                 : clone(child_main, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, c);
    if (c->pid < 0) {
        c->step = CHILD_PROCESS;
        c->error = errno;
    }
    /* The child has set the plan's, in our memory. */
    environ = ours;
    if (stack != MAP_FAILED)
        munmap(stack, STACK_BYTES);
}
