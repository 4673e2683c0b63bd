/* sandbox/guard: keeps protected paths that have no mount point as they were (A7-A9, A14).
 *
 * Theory. A protected path that does not exist, or is a symbolic link, cannot be mounted over
 * without leaving something on the host. So process 1 watches the directories that hold them: what
 * a command creates under such a name is removed when it appears, and once more when every process
 * of the sandbox is dead, which is the guarantee; when process 1 is killed from outside the runner
 * does that in its place (run/sweep). What was removed is told in the verdict. The
 * directories on the way that exist are mount points of their own, so they stay where they are; one
 * that the command makes as a symbolic link, so that a protected path appears behind it, is taken
 * away itself.
 *
 * The guard has the same rights and sees the same file system as the command, so a race that the
 * command wins gains it nothing. It begins by checking that each path still is as it was when the
 * plan was made: a repository that a person makes in between is never taken for the command's.
 * While a command runs, who else creates such a path cannot be told apart from it.
 *
 * Must not: follow a link, keep a descriptor for every level of a tree, or touch another path.
 */
#ifndef CODESPACE_SANDBOX_GUARD_H
#define CODESPACE_SANDBOX_GUARD_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct guard {
    const struct strv *paths; /* pairs, borrowed: absolute path, link or "" */
    int root_fd;
    int watch_fd;  /* inotify; -1 when there is none: then only the end sweeps */
    bool *touched; /* pair i was changed and put back */
};

/* Errors: PATH_PROTECTED when a path is not as it was planned. */
int guard_init(struct guard *g, const struct strv *paths, struct err *e);
void guard_fini(struct guard *g);

/* Begin to watch: from now on what appears is put right at once, not only at the end. Not part of
 * guard_init() because the kernel takes about 10 ms to give a watch up, which a short command need
 * not pay. */
void guard_watch(struct guard *g);

/* Events wait on watch_fd: put right what changed. Failures wait for the last sweep. */
void guard_on_event(struct guard *g);

/* The last sweep; call it when nothing else is alive. Errors: FILE_OPERATION_FAILED naming what
 * could not be put right. */
int guard_sweep(struct guard *g, struct err *e);

#endif
