/* run/call: one question to the helper: bytes in, one short answer out, within a time limit.
 *
 * Theory. `probe` is a program that reads stdin, writes one line and ends. Both sides are bounded:
 * the answer by HELPER_LINE_MAX, the wait by a limit, what it says on stderr by CALL_WORDS_MAX.
 * Whatever goes wrong, the child is killed and reaped, and the caller gets one answer (none after
 * call_cancel).
 *
 * Must not: block the loop, or hold on to a helper that hangs.
 */
#ifndef CODESPACE_RUN_CALL_H
#define CODESPACE_RUN_CALL_H

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"

#include <stdint.h>
#include <uv.h>

/* A probe takes milliseconds; a helper that needs this long is broken. */
#define CALL_LIMIT_MS 5000u
/* Kept of its stderr, for the message. */
#define CALL_WORDS_MAX 512u

struct call_options {
    uv_loop_t *loop;
    struct list *yard; /* for its child; see run/grave */
    char *const *argv; /* argv[0] is the path */
    char *const *env;
    uint64_t limit_ms;
};

/* Either `failure`, or the whole answer with the exit code it came with. Borrowed. */
struct call_answer {
    const char *text;
    size_t len;
    int exit_code;
    const struct err *failure; /* PROCESS_SPAWN_FAILED: not started, too slow, too long, killed */
};

typedef void (*call_fn)(void *user, const struct call_answer *answer);

/* Ask. `input` is consumed (left empty). The answer comes later, exactly once, unless the call is
 * cancelled. NULL when it could not be started; then `e` says why and nothing comes. */
struct call *call_start(const struct call_options *o, struct buf *input, call_fn done, void *user,
                        struct err *e);

/* Give it up: the helper is killed, `done` is not called. NULL is fine. */
void call_cancel(struct call *c);

#endif
