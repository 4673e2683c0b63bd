/* worker/serve: the runner protocol on the worker's side: requests in, answers and events out.
 *
 * Theory. Each request is a record of its own and is answered when its runner answers it, so a slow
 * one holds up no other. The first must be `hello`; a message of another version is answered and
 * then the stream is closed. The last RUNMSG_KEPT answers can be had again (`replay`). A cancelled
 * request is answered too, with CANCELLED, so each request has exactly one answer.
 *
 * What is bounded: requests in flight (SERVE_REQUESTS_MAX), workspaces (REGISTRY_WORKSPACES_MAX),
 * what waits to be written (run/link).
 *
 * Must not: outlive its stream. When that ends, `ended` is called and the program ends. A durable
 * one (worker/durable) has one stream after the other instead: what was asked by the last one is
 * given up, except for starts, which go on; nothing it asked is answered to the next.
 */
#ifndef CODESPACE_WORKER_SERVE_H
#define CODESPACE_WORKER_SERVE_H

#include "run/runner.h"

#include <uv.h>

/* Requests that wait for their answer; long polls of many readers. */
#define SERVE_REQUESTS_MAX 1024u
/* A durable worker hangs up on a connection that has not said hello so long after it was made. */
#define SERVE_HELLO_MS 5000u
/* A longer answer is not kept for replay. */
#define SERVE_KEPT_BYTES 65536u

struct serve_options {
    uv_loop_t *loop;
    struct runner *runner; /* borrowed; from local_runner_new() */
    int *in, *out;         /* taken; *out -1 = `in` is a socket; *in -1 = durable, none yet */
    uint64_t silence_ms;   /* end when nothing was heard for so long; 0 = never */
    void (*ended)(void *user);
    void *user;
};

/* Errors: INTERNAL when the descriptors cannot be watched (a regular file, say). */
struct serve *serve_new(const struct serve_options *o, struct err *e);
/* A durable worker's next stream: *fd is taken. When there is one already, the other side is told
 * who has it and is hung up on. 0, or -errno: not taken. */
int serve_attach(struct serve *s, int *fd);
/* The last stream has ended and its handles are still closing: attach on a later turn. */
bool serve_is_settling(const struct serve *s);

/* Before the runner is freed. The memory goes when the loop has turned, the workspaces by
 * serve_forget(), after the runner's processes are gone. */
void serve_close(struct serve *s);
void serve_forget(struct serve *s);

#endif
