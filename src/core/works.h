/* core/works: a piece of work that a model does while people add instructions to it.
 *
 * Theory. A work is active, then closing (its own task is done, what was queued for after it is
 * handed out), then closed. It exists to be finished without losing an instruction: works_finish
 * closes only when nothing that belongs to it waits. Instructions are core/intents. A work and its
 * instructions give no rights at all.
 *
 * Every change is one durable transaction: a person was told that it was taken. All functions block
 * on the ledger and may run on any thread. Errors of all: LEDGER_FAILED.
 *
 * Works are opened and finished by the gateway only, which counts the open ones in memory.
 *
 * Must not: show a model an instruction that was not claimed.
 */
#ifndef CODESPACE_CORE_WORKS_H
#define CODESPACE_CORE_WORKS_H

#include "base/err.h"
#include "core/ledger.h"

#include <stdbool.h>
#include <stdint.h>

/* Open works of a workspace: one per agent at it; more is a client that never finishes. */
#define WORKS_OPEN_MAX 256u
/* Bytes of a title. */
#define WORKS_TITLE_MAX 1024u
/* Rows of a list: default and largest. */
#define WORKS_PAGE_DEFAULT 50u
#define WORKS_PAGE_MAX 500u

enum work_state { WORK_ACTIVE, WORK_CLOSING, WORK_CLOSED_STATE };

const char *work_state_name(enum work_state s);

struct work {
    int64_t seq;
    char *work_id;
    char *workspace_id;
    char *title; /* NULL = none */
    enum work_state state;
    uint64_t queue_revision; /* grows with every change of the queue */
    uint64_t created_ms, closed_ms;
};

#define autowork __attribute__((cleanup(work_fini))) struct work
void work_fini(struct work *w);
void works_free(struct work *items, size_t n);

/* Open a work; it adopts the workspace's unattached drafts and queued instructions, and what was
 * meant for the next work becomes after_current_work. Errors: LIMIT_EXCEEDED (title),
 * RESOURCE_QUEUE_FULL. */
int works_open(struct ledger *l, const char *workspace_id, const char *title, struct work *ret,
               struct err *e);

/* Errors: WORK_NOT_FOUND. */
int works_get(struct ledger *l, const char *work_id, struct work *ret, struct err *e);

struct work_filter {
    const char *workspace_id; /* NULL = all */
    int64_t before;           /* the seq of the last one seen; 0 = from the newest */
    uint32_t limit;           /* 0 = WORKS_PAGE_DEFAULT */
};

/* Newest first. The caller frees with works_free. Errors: OUTPUT_LIMIT. */
int works_list(struct ledger *l, const struct work_filter *filter, struct work **ret, size_t *ret_n,
               struct err *e);

struct work_counts {
    enum work_state state;
    uint64_t queued;        /* on this work, next_work left out */
    uint64_t claimed;       /* handed out, not completed */
    uint64_t claimable_now; /* what works_claim would hand out, one after another */
    uint64_t queue_revision;
};

/* Counts, never texts. Errors: WORK_NOT_FOUND. */
int works_status(struct ledger *l, const char *work_id, struct work_counts *ret, struct err *e);

struct work_finish {
    bool closed;
    const char *reason; /* "pending_user_input" (static), or NULL */
    uint64_t queued;
    enum work_state state;
};

/* Try to close: instructions that are claimed, or queued for the next checkpoint, hold it open as
 * it is; those queued for after the work turn it to closing; else it closes, and drafts and
 * next_work instructions wait unattached for the next work. Errors: WORK_NOT_FOUND, WORK_CLOSED. */
int works_finish(struct ledger *l, const char *work_id, struct work_finish *ret, struct err *e);

struct work_hint {
    char work_id[64];
    uint32_t pending_user_items; /* queued or claimed, next_work left out */
    uint64_t queue_revision;
};

/* False: no work is open anywhere, and works_hint needs not be asked. No lock, no disk. */
bool works_any_open(const struct ledger *l);

/* The hint that tool results carry. work_id NULL: of the workspace's only open work. 1: *ret is
 * filled. 0: no such hint (unknown, closed or foreign work; none or several open). */
int works_hint(struct ledger *l, const char *workspace_id, const char *work_id,
               struct work_hint *ret, struct err *e);

#endif
