/* worker/durable: a worker whose processes outlive its gateway (--durable DIR), opt-in.
 *
 * Theory. Somebody's directory, private to its user, is the worker's place: its socket
 * (DURABLE_SOCKET), a lock that says which worker has it, what helpers keep for a moment (`tmp`,
 * emptied at the start, so that what a kill left goes), and the words of the last end
 * (DURABLE_ENDED). One gateway at a time is served. When its connection ends the worker stays, with
 * its processes and their output, and waits for the next one, which finds them by their ids. When
 * none has come for idle_ms the worker ends itself and all of them, and writes down why; so nothing
 * stays for good.
 *
 * Must not: chmod a directory, take one that others can enter, or serve two gateways.
 */
#ifndef CODESPACE_WORKER_DURABLE_H
#define CODESPACE_WORKER_DURABLE_H

#include "base/err.h"
#include "run/watch.h"
#include "worker/serve.h"

/* Files of the directory. */
#define DURABLE_SOCKET "runner.sock"
#define DURABLE_LOCK "lock" /* with the process id of who holds it */
#define DURABLE_ENDED "ended"
#define DURABLE_TMP "tmp"

/* So long a worker waits for a gateway: a night and a day of nobody looking. */
#define DURABLE_IDLE_SECS 86400u
#define DURABLE_IDLE_SECS_MAX 2592000u

struct durable {
    char *dir;
    int lock, listener; /* -1 = none */
    /* once it serves */
    struct anchor anchor;
    struct watch watch;
    struct alarm alarm;
    struct serve *serve;
    uint64_t idle_ms;
    void (*ended)(void *user);
    void *user;
    const char *why; /* it ended by itself */
};

/* Take the directory, which is made when it is missing, and listen; TMPDIR is in it from here on.
 * Errors: CONFIG_INVALID (a place that is refused), RUNNER_UNAVAILABLE (another worker has it). */
int durable_open(struct durable *d, const char *dir, struct err *e);

/* Serve one gateway after the other. `ended` is called when nobody came for idle_ms. 0, or -errno.
 */
int durable_serve(struct durable *d, uv_loop_t *loop, struct serve *serve, uint64_t idle_ms,
                  void (*ended)(void *user), void *user);

/* The connection has ended: for serve's `ended`. */
void durable_detached(struct durable *d);

/* Write down why the worker ends, and let nobody connect any more; before the processes end, so
 * that whoever loses its connection can read the reason. */
void durable_close(struct durable *d, const char *why);
/* After the loop has run empty. */
void durable_free(struct durable *d);

#endif
