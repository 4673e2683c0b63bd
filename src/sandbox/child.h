/* sandbox/child: from process 1 to the command.
 *
 * Theory. The command's process shares our memory until it has executed (as posix_spawn does), so
 * no page table is copied and a failed exec is told in a variable. It gets a session of its own,
 * with the terminal when there is one, no blocked signals, the plan's environment and nothing open
 * but 0, 1 and 2. Signal dispositions are ours, which are the defaults (inner_settle());
 * no_new_privs and the filter are loaded already.
 *
 * In a zygote's child the command's process is made before there is a command (child_ahead()), and
 * waits for it in our place: making it, its session and waking us when it has executed take 60 to
 * 90 us, which nobody waits for then. Until it has executed it is the only one of us two that runs;
 * we sleep, and look at nothing of its but whether it is still there (child_has_left()).
 *
 * Must not: run anything between that needs the filter's refusals, or leave a way to return.
 */
#ifndef CODESPACE_SANDBOX_CHILD_H
#define CODESPACE_SANDBOX_CHILD_H

#include "wire/plan.h"

#include <stdbool.h>
#include <sys/types.h>

enum child_step {
    CHILD_STARTED,
    CHILD_WAITS,
    CHILD_PROCESS,
    CHILD_TERMINAL,
    CHILD_CWD,
    CHILD_EXEC
};

struct child_start {
    const struct plan *plan;
    unsigned long files; /* soft limit of open files to give back; 0 = leave it */
    char **script;       /* ours while it starts */
    /* filled: */
    pid_t pid;            /* leader of its own session and process group */
    enum child_step step; /* CHILD_STARTED, or what failed; CHILD_WAITS until there is a command */
    int error;
    /* of child_ahead(): */
    int (*arrive)(void *user); /* waits for the command: 0, or the process' exit status + 1 */
    void *user;
    volatile pid_t tid; /* written by the kernel: 0 = it does not use our memory any more */
};

/* Start the command. Returns when it has executed (step CHILD_STARTED) or failed. */
void child_run(struct child_start *c);

/* Make its process, which calls c->arrive() in our memory and with our descriptors, and then
 * executes. 0, or -errno where that cannot be. */
int child_ahead(struct child_start *c);
/* It has executed, or ended; c->step is final. */
bool child_has_left(const struct child_start *c);

/* Give every signal the default disposition, which the command inherits. */
void child_default_signals(void);

/* Touch what child_run() will (sandbox/zygote). */
void child_rehearse(void);

#endif
