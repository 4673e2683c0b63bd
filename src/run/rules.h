/* run/rules: new egress rules for commands that run.
 *
 * Theory. Each egress proxy has a socket to its runner (proxy/control), which only the two hold: a
 * whole policy goes out as one line, and one line comes back: in force, or refused and nothing
 * changed. A channel is one such socket; a change is one policy on its way to all proxies of a
 * workspace, and is answered once, when each of them has answered, ended or taken too long. What it
 * says about a command is what that command's own proxy said.
 *
 * Must not: take a silence for a yes.
 */
#ifndef CODESPACE_RUN_RULES_H
#define CODESPACE_RUN_RULES_H

#include "base/buf.h"
#include "base/list.h"
#include "base/str.h"
#include "run/runner.h"
#include "run/watch.h"

/* The longest that a proxy may take over a new policy. */
#define RULES_ANSWER_MS 5000u
/* Changes that are on their way at once. */
#define RULES_CHANGES_MAX 64u

struct rules_change;

/* To one proxy. Zeroed and rules_init(): there is none, or it has ended. */
struct rules {
    struct watch watch;
    struct buf in, out;
    struct list waits; /* in the order of their policies */
    void (*settled)(struct rules *r, bool in_force, const char *policy);
};

void rules_init(struct rules *r);
/* Open one; *ret_theirs is for the helper (caller closes). 0 or -errno. */
int rules_open(struct rules *r, uv_loop_t *loop, struct anchor *anchor, int *ret_theirs);
/* Changes that still wait for it have failed here. */
void rules_close(struct rules *r);
bool rules_is_open(const struct rules *r);
/* Is a policy on its way? */
bool rules_is_busy(const struct rules *r);

/* The changes of a runner. */
struct rules_book {
    uv_loop_t *loop;
    struct list changes;
    size_t n;
};

void rules_book_init(struct rules_book *b, uv_loop_t *loop);
/* Nobody is answered any more. */
void rules_book_fini(struct rules_book *b);

/* Begin one; NULL with LIMIT_EXCEEDED. `policy` is what wire/egress writes. */
struct rules_change *rules_begin(struct rules_book *b, uint64_t ticket, const char *policy,
                                 run_rules_fn done, void *user, struct err *e);
/* Send it; it counts for the processes `ids`, which are taken. */
void rules_send(struct rules_change *c, struct rules *to, struct strv *ids);
/* All are sent: answer as soon as all have answered, perhaps now. The ticket, 0 = answered. */
uint64_t rules_sent(struct rules_change *c);
/* Nobody wants the answer. False when there is no such change. */
bool rules_cancel(struct rules_book *b, uint64_t ticket);

#endif
