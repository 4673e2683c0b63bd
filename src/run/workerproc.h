/* run/workerproc: starting a worker program on this host and connecting to it.
 *
 * Theory. The worker gets a socket path in a fresh private directory (R4), which is its TMPDIR too.
 * It tells on its standard output when it listens, so nothing is polled; then one connection is
 * made. Both sides remove the directory at the end, so it goes whoever of the two is killed. When
 * we are killed before there is a connection, the end of that pipe ends the worker. Its standard
 * error is ours.
 *
 * A durable worker gets its directory instead, which stays; its standard error goes into a file
 * there (`log`), so that it keeps nothing of ours open. It is not ours to end: freeing lets it go.
 *
 * Must not: hand it any descriptor or variable that is not named here, or leave it behind.
 */
#ifndef CODESPACE_RUN_WORKERPROC_H
#define CODESPACE_RUN_WORKERPROC_H

#include "base/err.h"
#include "base/list.h"

#include <stdint.h>
#include <uv.h>

/* A worker listens within milliseconds; one that takes so long is broken. */
#define WORKERPROC_START_MS 10000u
/* It ends by itself when its connection does; then it is killed. */
#define WORKERPROC_PATIENCE_MS 3000u

struct workerproc_options {
    uv_loop_t *loop;
    struct list *yard; /* for its end; see run/grave */
    const char *bin;
    const char *dir;         /* parent of the private directory; NULL = the temporary one */
    const char *durable_dir; /* NULL = an ordinary worker */
    char *const *extra;      /* K=V, besides what is passed on of our environment */
};

/* fd: a connected socket, the callee's; -1: it could not be had, and `why` says why. */
typedef void (*workerproc_fn)(void *user, int fd, const char *why);

/* `done` is called once, later, unless it is freed before. NULL with RUNNER_UNAVAILABLE. */
struct workerproc *workerproc_start(const struct workerproc_options *o, workerproc_fn done,
                                    void *user, struct err *e);

/* It ends: after patience_ms by force (0 = now). The directory is gone. NULL is fine. */
void workerproc_free(struct workerproc *w, uint64_t patience_ms);

/* CODESPACE_RUNTIME_BIN, else codespace-codex-runtime beside this program; NULL = none. Caller
 * frees. */
char *workerproc_find(void);

#endif
