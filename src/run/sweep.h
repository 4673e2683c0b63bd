/* run/sweep: what a command planted under a protected name is taken away although process 1 inside
 * was killed and could not do it.
 *
 * Theory. A protected name that is missing when a command starts is process 1's to guard
 * (sandbox/guard): it is the last one alive inside and sweeps before it tells the end. Somebody
 * outside can kill it (the kernel when memory is short, an operator). Its receipt (wire/helper)
 * says that all guards were right when the command began and carries its pidfd, which is readable
 * only when nothing in its PID namespace is alive. So: no verdict came, kill it, wait for that, and
 * put right what it guarded, by the same rules (sys/guarded), beneath the root's descriptor.
 * Without a receipt the command has not begun, and what stands there is not its.
 *
 * A runner that goes while a command runs does the same for it, gently: the line to process 1 is
 * closed by then, and it is given the time to end by itself as it always does. So when the runner
 * is gone nothing inside is alive any more and nothing planted is left, whatever process 1 had to
 * bear.
 *
 * Must not: run on the loop (a tree may be large), or outlive its answer's receiver with a pointer
 * to it.
 */
#ifndef CODESPACE_RUN_SWEEP_H
#define CODESPACE_RUN_SWEEP_H

#include "base/str.h"
#include "core/registry.h"

#include <uv.h>

/* What the kernel needs to take down what was killed; then it is swept all the same. */
#define SWEEP_WAIT_MS 5000

/* What process 1 needs to end by itself once its line is closed; then it is killed. */
#define SWEEP_PATIENCE_MS 2000

struct sweep;

/* `removed`: what was put right, relative to the workspace where it lies in it, cut as in a verdict
 * (HELPER_REMOVED_MAX). `failed`: the first path that could not be, or NULL. */
typedef void (*sweep_fn)(void *user, const struct strv *removed, const char *failed);

/* Take *init_fd and *guards (pairs of wire/helper), and call `done` once on a later turn of the
 * loop. NULL, and a line in the log, when it could not be begun. */
struct sweep *sweep_start(uv_loop_t *loop, int *init_fd, const struct workspace *ws,
                          struct strv *guards, sweep_fn done, void *user);

/* The same for a sandbox that was just told to end: it has SWEEP_PATIENCE_MS for it, and nobody is
 * told. The loop stays until it is done. */
void sweep_leave(uv_loop_t *loop, int *init_fd, const struct workspace *ws, struct strv *guards);

/* Nobody wants to know: it is still done, and `done` is not called. NULL is fine. */
void sweep_forget(struct sweep *s);

#endif
