/* mcp/aside: one standing thread that does one thing beside its caller.
 *
 * Theory. A durable patch waits for the disk twice at the same time: for its plan in the ledger and
 * for its new files. The caller is a thread of the pool already and does one of them; the other is
 * handed over here. The pool cannot take it: all its threads may wait for such a hand-over, and
 * then none is left. Making a thread for each patch takes a tenth of the patch's time. The thread
 * begins with the first hand-over, so a server that is never asked for a patch has none.
 *
 * It holds one job. Whoever comes while it is busy (another workspace's patch) does its own.
 *
 * Must not: be handed what another thread must see started before it goes on.
 */
#ifndef CODESPACE_MCP_ASIDE_H
#define CODESPACE_MCP_ASIDE_H

#include <stdbool.h>

struct aside;

/* The caller frees. No thread yet. */
struct aside *aside_new(void);
/* When no job runs. */
void aside_free(struct aside *a);

/* True: fn(user) runs beside the caller, who must aside_wait() before `user` goes. False: nothing
 * runs, the caller does it. a NULL: false. */
bool aside_begin(struct aside *a, void (*fn)(void *user), void *user);
/* Until the caller's job has run. */
void aside_wait(struct aside *a);

#endif
