/* mcp/recorder: what the ledger learns after the caller has its answer.
 *
 * Theory. The begin and the end of a command, and the outcome of a patch that went as planned,
 * protect nothing: they say what can be found out again or is already true on the disk. So they
 * wait a moment in a queue and are written by the thread pool, in order, as many as there are at a
 * time, beside nobody's call. Whoever reads the ledger flushes first, so that no answer is older
 * than one that was given before. At the end of the server the queue is written; a server that is
 * killed loses the last RECORDER_DELAY_MS of it.
 *
 * Bounded: a ledger that cannot keep up (a full or dead disk) loses records above
 * RECORDER_QUEUE_MAX instead of memory; how many is counted and told (workspace_info,
 * ledger.unrecorded).
 *
 * Must not: carry what must be on the disk before something else happens.
 */
#ifndef CODESPACE_MCP_RECORDER_H
#define CODESPACE_MCP_RECORDER_H

#include "base/list.h"
#include "core/ledger.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* How long a record waits, so that a short command's begin and end are one write. */
#define RECORDER_DELAY_MS 20u
/* Records that may wait. */
#define RECORDER_QUEUE_MAX 16384u

/* To be embedded; `write` runs on a pool thread, once, and frees it. ledger NULL: it is dropped,
 * only free it. A write that failed returns false. */
struct record {
    struct list node;
    bool (*write)(struct record *r, struct ledger *l);
};

struct recorder;

/* Borrows both. The caller frees, on the loop's thread, when nothing else is left on the loop. */
struct recorder *recorder_new(uv_loop_t *loop, struct ledger *ledger);
/* Writes what waits. */
void recorder_free(struct recorder *r);

/* The batch of a record that was not taken. */
#define RECORDER_DROPPED UINT64_MAX

/* Take a record. On the loop's thread; it is written soon. Returns the number of its batch. */
uint64_t recorder_push(struct recorder *r, struct record *record);
/* Change a record of that batch before it is written: calls `change` and returns true, unless
 * writing began. */
bool recorder_amend(struct recorder *r, uint64_t batch, struct record *record,
                    void (*change)(struct record *record, void *user), void *user);
/* The same from a pool thread; it is written at the next flush or recorder_kick(). */
void recorder_push_quietly(struct recorder *r, struct record *record);
/* On the loop's thread: see that what waits is written. */
void recorder_kick(struct recorder *r);

/* Write all that was pushed before. Blocks: any thread but the loop's. */
void recorder_flush(struct recorder *r);

/* Does nothing wait, and is nothing being written? Any thread; true for this moment. */
bool recorder_idle(struct recorder *r);

/* Records that wait to be written. Any thread; true for this moment. */
unsigned recorder_waiting(struct recorder *r);

/* Records that were not written. */
uint64_t recorder_lost(struct recorder *r);

#endif
