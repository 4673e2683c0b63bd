/* mcp/lane: one at a time, in order of arrival.
 *
 * Theory. Patches of one workspace root must not run side by side, while different roots and
 * everything else go on. Each root has a lane; who enters it either has it or waits. A waiter can
 * quit. The loop's thread only, so there is no lock.
 *
 * Must not: hold more waiters than LANE_WAITERS_MAX; who comes then is told so at once.
 */
#ifndef CODESPACE_MCP_LANE_H
#define CODESPACE_MCP_LANE_H

#include "base/list.h"

#include <stdbool.h>

/* Waiters of one lane; the number is part of the public contract (workspace_info). */
#define LANE_WAITERS_MAX 64u

struct lane {
    struct list waiting;
    unsigned n;
    bool busy;
};

struct lane_wait {
    struct list node;
    void (*go)(struct lane_wait *w); /* the lane is yours now */
};

enum lane_entry { LANE_ENTERED, LANE_WAITS, LANE_FULL };

void lane_init(struct lane *l);

/* LANE_ENTERED: it is yours, `go` is not called. LANE_WAITS: `w` is linked until `go` or
 * lane_quit(). */
enum lane_entry lane_enter(struct lane *l, struct lane_wait *w);

/* Give the lane up; the next waiter's `go` runs before this returns. */
void lane_leave(struct lane *l);

/* Stop waiting. */
void lane_quit(struct lane *l, struct lane_wait *w);

#endif
