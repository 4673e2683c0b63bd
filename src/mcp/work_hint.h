/* mcp/work_hint: `coordination` in the answers of tools: people have something to say.
 *
 * Theory. A model that works does not look into an inbox by itself, so the answers it gets anyway
 * say how many instructions wait: {work_id, pending_user_items, queue_revision}, for the work that
 * the call names with work_id, or for the only open one of its workspace. A call about a process is
 * about the workspace that owns it. The work is a hint and no more: an unknown one is no error.
 * While no work is open anywhere, it costs one comparison.
 *
 * Must not: ask the ledger on the loop, change an answer that has no hint, or fail a call.
 */
#ifndef CODESPACE_MCP_WORK_HINT_H
#define CODESPACE_MCP_WORK_HINT_H

#include "mcp/request.h"

/* Is a work open, and can the call have a hint? Any thread. */
bool work_hint_is_due(const struct request *rq);

/* Before an answer is closed, on the loop. True: `done` comes when the hint is there, or there is
 * none. False: no hint is wanted. */
bool work_hint_begin(struct request *rq, request_fn done);

/* Write it, when there is one. On the pool it is looked up at once. */
void work_hint_write(struct request *rq, bool on_pool);

/* The call is given up; it has ended. */
void work_hint_cancel(struct request *rq);
void work_hint_end(struct request *rq);

#endif
