/* run/remote: the runner behind the framed protocol: a worker program owns the processes (R2).
 *
 * Theory. Every operation becomes a request with an id and waits in a table for its answer, so they
 * run side by side. Calls that come before the worker is there wait and are sent then. What is not
 * known is said to be unknown: a call that was never sent fails with RUNNER_UNAVAILABLE (nothing
 * was done); one that was sent and not answered fails with RUNNER_LOST, and an exec among those
 * names the process id that it would have (this side chooses the ids), so its fate can be asked for
 * later.
 *
 * A process ends with the worker's event. When the stream ends, every process that had no such
 * event is `lost`, whoever waits for it is told, and asking for it later says the same. The next
 * exec starts a fresh worker, when this side starts its worker itself; ids of the old one stay
 * lost.
 *
 * A durable worker (welcome.durable) keeps its processes when the connection ends. Whoever connects
 * next asks it for what runs, so that these are not unknown when it is lost after all. When a
 * connection to the same worker (worker_id) is made again, what was lost with it is found again;
 * `epoch` counts its connections, so another gateway in between is noticed.
 *
 * An exec whose caller says which read follows (run_exec.first) takes that along, so that a command
 * that ends within REMOTE_HOLD_MS costs one message each way: the page comes with the start and is
 * kept for exactly that read, which is made from inside the answer. A worker that does not know
 * this (RUNMSG_LEVEL) is asked in two steps.
 *
 * Must not: know where the worker is; guess an end.
 */
#ifndef CODESPACE_RUN_REMOTE_H
#define CODESPACE_RUN_REMOTE_H

#include "run/runner.h"

#include <uv.h>

/* A call that is not answered so long after its own waiting time is given up as lost. */
#define REMOTE_ANSWER_MS 120000u
/* A start is told at the latest so long after it, though its first read has no answer yet: what a
 * second message costs is nothing beside a command that takes longer. */
#define REMOTE_HOLD_MS 20u
/* Calls that wait for an answer; the worker takes no more (SERVE_REQUESTS_MAX). */
#define REMOTE_CALLS_MAX 1000u
/* Ended processes that this side still knows, for the case that the worker is lost. */
#define REMOTE_ENDED_MAX 256u

struct remote_options {
    const char *worker_bin;  /* to start; NULL = connect to `socket` */
    const char *socket;      /* of a worker that is there already */
    const char *durable_dir; /* with worker_bin: the durable worker there, started when none is */
    const char *dir;         /* parent of the private directory for the socket; NULL = temporary */
    uint64_t timeout_ms;     /* of a command that names none; 0 = RUN_TIMEOUT_DEFAULT_MS */
    uint64_t max_processes;  /* 0 = the worker's default */
    uint64_t max_workspace_processes;
};

/* NULL with RUNNER_UNAVAILABLE: no worker could be started, or nobody listens on the socket. The
 * loop is borrowed; after runner_free() run it until it is empty. */
struct runner *remote_runner_new(uv_loop_t *loop, const struct remote_options *o, struct err *e);

/* Over a stream that is connected already (an engine's exec, say). Both descriptors are taken; *out
 * -1 = `in` is both ways. */
struct runner *remote_runner_over(uv_loop_t *loop, int *in, int *out,
                                  const struct remote_options *o, struct err *e);

#endif
