/* mcp/lane: see lane.h. */
#include "mcp/lane.h"

void lane_init(struct lane *l)
{
    *l = (struct lane){0};
    list_init(&l->waiting);
}

enum lane_entry lane_enter(struct lane *l, struct lane_wait *w)
{
    list_init(&w->node);
    if (!l->busy) {
        l->busy = true;
        return LANE_ENTERED;
    }
    if (l->n >= LANE_WAITERS_MAX)
        return LANE_FULL;
    list_append(&l->waiting, &w->node);
    l->n++;
    return LANE_WAITS;
}

void lane_leave(struct lane *l)
{
    ensure(l->busy);
    if (list_empty(&l->waiting)) {
        l->busy = false;
        return;
    }
    struct lane_wait *next = container_of(l->waiting.next, struct lane_wait, node);
    lane_quit(l, next);
    next->go(next);
}

void lane_quit(struct lane *l, struct lane_wait *w)
{
    ensure(!list_empty(&w->node) && l->n > 0);
    list_remove(&w->node);
    l->n--;
}
