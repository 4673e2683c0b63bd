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

static void set_limits(unsigned long files)
{
    struct rlimit none = {0, 0};
    struct rlimit open_files;
    setrlimit(RLIMIT_CORE, &none);
    if (files != 0 && getrlimit(RLIMIT_NOFILE, &open_files) == 0) {
        open_files.rlim_cur = files;
        setrlimit(RLIMIT_NOFILE, &open_files);
    }
}

/* The steps up to exec; the first that fails. Nothing here may allocate or lock: the memory is
 * our parent's. */
static enum child_step become(const struct child_start *c)
{
    if (setsid() < 0)
        return CHILD_PROCESS;
    if (c->plan->tty && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
        return CHILD_TERMINAL;
    set_limits(c->files);
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

static int child_main(void *arg)
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
