/* sandbox/secondline: what process 1 guarded is put right although process 1 was killed.
 *
 * Theory. Process 1 sweeps before it tells the end (sandbox/guard). Killed from outside (the kernel
 * when memory is short, an operator) it cannot; then whoever started the sandbox does it: the
 * runner in run/sweep, and here `run` without a control socket and the codex face. The receipt says
 * that all guards were right when the command began, and carries a pidfd of process 1, which is
 * readable only when nothing in its PID namespace is alive any more. Without a receipt the command
 * has not begun, and what stands there is not its.
 *
 * Must not: be used when a verdict came: then process 1 has swept, and what is there now is
 * somebody else's.
 */
#ifndef CODESPACE_SANDBOX_SECONDLINE_H
#define CODESPACE_SANDBOX_SECONDLINE_H

#include "base/str.h"

struct secondline {
    int init_fd;        /* process 1, since the receipt; -1 */
    struct strv guards; /* of the plan (wire/plan), since then */
};

/* The receipt came, with *init_fd, which is taken; the plan is read from plan_fd. */
void secondline_arm(struct secondline *s, int *init_fd, int plan_fd);

/* End what is left inside, wait for that, put right what was guarded and say so on standard error.
 * Nothing when there was no receipt. */
void secondline_sweep(const struct secondline *s);

void secondline_fini(struct secondline *s);

#endif
