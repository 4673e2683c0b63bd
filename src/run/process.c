/* run/process: see process.h. */
#include "run/process.h"

#include "base/mem.h"

#include <stdint.h>

struct row {
    uint8_t next;
    uint8_t action;
};

#define GO(state, action)                                                                          \
    {                                                                                              \
        PROCESS_##state, PROCESS_DO_##action                                                       \
    }

/* clang-format off */
static const struct row table[PROCESS_STATE_MAX][PROCESS_EVENT_MAX] = {
    [PROCESS_WAITING] = {
        [PROCESS_ON_SANDBOX]   = GO(PREPARING, PREPARE),
        [PROCESS_ON_HOST]      = GO(STARTING, SPAWN),
        [PROCESS_ON_REFUSED]   = GO(FAILED, REFUSE),
        [PROCESS_ON_PREPARED]  = GO(WAITING, NOTHING),
        [PROCESS_ON_STARTED]   = GO(WAITING, NOTHING),
        [PROCESS_ON_VERDICT]   = GO(WAITING, NOTHING),
        [PROCESS_ON_KEPT]      = GO(WAITING, NOTHING),
        [PROCESS_ON_LOST]      = GO(WAITING, NOTHING),
        [PROCESS_ON_REAPED]    = GO(WAITING, NOTHING),
        [PROCESS_ON_DRAINED]   = GO(WAITING, NOTHING),
        [PROCESS_ON_TERMINATE] = GO(FAILED, REFUSE),
        [PROCESS_ON_CANCEL]    = GO(FAILED, DISCARD),
        [PROCESS_ON_TIMER]     = GO(FAILED, REFUSE),
        [PROCESS_ON_IDLE]      = GO(WAITING, NOTHING),
    },
    [PROCESS_PREPARING] = {
        [PROCESS_ON_SANDBOX]   = GO(PREPARING, NOTHING),
        [PROCESS_ON_HOST]      = GO(PREPARING, NOTHING),
        [PROCESS_ON_REFUSED]   = GO(FAILED, REFUSE),
        [PROCESS_ON_PREPARED]  = GO(STARTING, SPAWN),
        [PROCESS_ON_STARTED]   = GO(PREPARING, NOTHING),
        [PROCESS_ON_VERDICT]   = GO(PREPARING, NOTHING),
        [PROCESS_ON_KEPT]      = GO(PREPARING, NOTHING),
        [PROCESS_ON_LOST]      = GO(PREPARING, NUDGE),
        [PROCESS_ON_REAPED]    = GO(FAILED, REFUSE),
        [PROCESS_ON_DRAINED]   = GO(PREPARING, NOTHING),
        [PROCESS_ON_TERMINATE] = GO(FAILED, REFUSE),
        [PROCESS_ON_CANCEL]    = GO(FAILED, DISCARD),
        [PROCESS_ON_TIMER]     = GO(FAILED, REFUSE),
        [PROCESS_ON_IDLE]      = GO(PREPARING, NOTHING),
    },
    [PROCESS_STARTING] = {
        [PROCESS_ON_SANDBOX]   = GO(STARTING, NOTHING),
        [PROCESS_ON_HOST]      = GO(STARTING, NOTHING),
        [PROCESS_ON_REFUSED]   = GO(FAILED, REFUSE),
        [PROCESS_ON_PREPARED]  = GO(STARTING, NOTHING),
        [PROCESS_ON_STARTED]   = GO(RUNNING, ANNOUNCE),
        [PROCESS_ON_VERDICT]   = GO(STARTING, NOTHING), /* the driver says STARTED before it */
        [PROCESS_ON_KEPT]      = GO(STARTING, NOTHING),
        [PROCESS_ON_LOST]      = GO(STARTING, NUDGE),
        [PROCESS_ON_REAPED]    = GO(FAILED, REFUSE),
        [PROCESS_ON_DRAINED]   = GO(STARTING, NOTHING),
        [PROCESS_ON_TERMINATE] = GO(FAILED, REFUSE),
        [PROCESS_ON_CANCEL]    = GO(FAILED, DISCARD),
        [PROCESS_ON_TIMER]     = GO(FAILED, REFUSE),
        [PROCESS_ON_IDLE]      = GO(STARTING, NOTHING),
    },
    [PROCESS_RUNNING] = {
        [PROCESS_ON_SANDBOX]   = GO(RUNNING, NOTHING),
        [PROCESS_ON_HOST]      = GO(RUNNING, NOTHING),
        [PROCESS_ON_REFUSED]   = GO(DRAINING, DRAIN), /* the wrapper failed after the start */
        [PROCESS_ON_PREPARED]  = GO(RUNNING, NOTHING),
        [PROCESS_ON_STARTED]   = GO(RUNNING, NOTHING),
        [PROCESS_ON_VERDICT]   = GO(DRAINING, DRAIN),
        [PROCESS_ON_KEPT]      = GO(KEPT, KEEP),
        [PROCESS_ON_LOST]      = GO(KILLING, NUDGE),
        [PROCESS_ON_REAPED]    = GO(DRAINING, DRAIN),
        [PROCESS_ON_DRAINED]   = GO(RUNNING, NOTHING),
        [PROCESS_ON_TERMINATE] = GO(ENDING, TERMINATE),
        [PROCESS_ON_CANCEL]    = GO(ENDING, TERMINATE),
        [PROCESS_ON_TIMER]     = GO(ENDING, TIME_OUT),
        [PROCESS_ON_IDLE]      = GO(ENDING, IDLE_OUT),
    },
    [PROCESS_KEPT] = {
        [PROCESS_ON_SANDBOX]   = GO(KEPT, NOTHING),
        [PROCESS_ON_HOST]      = GO(KEPT, NOTHING),
        [PROCESS_ON_REFUSED]   = GO(DRAINING, DRAIN),
        [PROCESS_ON_PREPARED]  = GO(KEPT, NOTHING),
        [PROCESS_ON_STARTED]   = GO(KEPT, NOTHING),
        [PROCESS_ON_VERDICT]   = GO(DRAINING, DRAIN),
        [PROCESS_ON_KEPT]      = GO(KEPT, NOTHING),
        [PROCESS_ON_LOST]      = GO(KILLING, NUDGE),
        [PROCESS_ON_REAPED]    = GO(DRAINING, DRAIN),
        [PROCESS_ON_DRAINED]   = GO(KEPT, NOTHING),
        [PROCESS_ON_TERMINATE] = GO(ENDING, TERMINATE),
        [PROCESS_ON_CANCEL]    = GO(KEPT, NOTHING), /* its start was answered long ago */
        [PROCESS_ON_TIMER]     = GO(ENDING, TIME_OUT),
        [PROCESS_ON_IDLE]      = GO(ENDING, IDLE_OUT),
    },
    [PROCESS_ENDING] = {
        [PROCESS_ON_SANDBOX]   = GO(ENDING, NOTHING),
        [PROCESS_ON_HOST]      = GO(ENDING, NOTHING),
        [PROCESS_ON_REFUSED]   = GO(DRAINING, DRAIN),
        [PROCESS_ON_PREPARED]  = GO(ENDING, NOTHING),
        [PROCESS_ON_STARTED]   = GO(ENDING, NOTHING),
        [PROCESS_ON_VERDICT]   = GO(DRAINING, DRAIN),
        [PROCESS_ON_KEPT]      = GO(KILLING, KILL), /* what it left is not kept from an end that was asked for */
        [PROCESS_ON_LOST]      = GO(KILLING, NUDGE),
        [PROCESS_ON_REAPED]    = GO(DRAINING, DRAIN),
        [PROCESS_ON_DRAINED]   = GO(ENDING, NOTHING),
        [PROCESS_ON_TERMINATE] = GO(ENDING, HASTEN),
        [PROCESS_ON_CANCEL]    = GO(ENDING, NOTHING),
        [PROCESS_ON_TIMER]     = GO(KILLING, KILL),
        [PROCESS_ON_IDLE]      = GO(ENDING, NOTHING),
    },
    [PROCESS_KILLING] = {
        [PROCESS_ON_SANDBOX]   = GO(KILLING, NOTHING),
        [PROCESS_ON_HOST]      = GO(KILLING, NOTHING),
        [PROCESS_ON_REFUSED]   = GO(KILLING, NOTHING),
        [PROCESS_ON_PREPARED]  = GO(KILLING, NOTHING),
        [PROCESS_ON_STARTED]   = GO(KILLING, NOTHING),
        [PROCESS_ON_VERDICT]   = GO(DRAINING, DRAIN),
        [PROCESS_ON_KEPT]      = GO(KILLING, KILL),
        [PROCESS_ON_LOST]      = GO(KILLING, NOTHING),
        [PROCESS_ON_REAPED]    = GO(DRAINING, DRAIN),
        [PROCESS_ON_DRAINED]   = GO(KILLING, NOTHING),
        [PROCESS_ON_TERMINATE] = GO(KILLING, NOTHING),
        [PROCESS_ON_CANCEL]    = GO(KILLING, NOTHING),
        [PROCESS_ON_TIMER]     = GO(KILLING, KILL),
        [PROCESS_ON_IDLE]      = GO(KILLING, NOTHING),
    },
    [PROCESS_DRAINING] = {
        [PROCESS_ON_SANDBOX]   = GO(DRAINING, NOTHING),
        [PROCESS_ON_HOST]      = GO(DRAINING, NOTHING),
        [PROCESS_ON_REFUSED]   = GO(DRAINING, NOTHING),
        [PROCESS_ON_PREPARED]  = GO(DRAINING, NOTHING),
        [PROCESS_ON_STARTED]   = GO(DRAINING, NOTHING),
        [PROCESS_ON_VERDICT]   = GO(DRAINING, NOTHING),
        [PROCESS_ON_KEPT]      = GO(DRAINING, NOTHING),
        [PROCESS_ON_LOST]      = GO(DRAINING, NOTHING),
        [PROCESS_ON_REAPED]    = GO(DRAINING, NOTHING),
        [PROCESS_ON_DRAINED]   = GO(ENDED, FINISH),
        [PROCESS_ON_TERMINATE] = GO(DRAINING, NOTHING),
        [PROCESS_ON_CANCEL]    = GO(DRAINING, NOTHING),
        [PROCESS_ON_TIMER]     = GO(ENDED, FINISH),
        [PROCESS_ON_IDLE]      = GO(DRAINING, NOTHING),
    },
    [PROCESS_ENDED] = {
        [PROCESS_ON_SANDBOX]   = GO(ENDED, NOTHING),
        [PROCESS_ON_HOST]      = GO(ENDED, NOTHING),
        [PROCESS_ON_REFUSED]   = GO(ENDED, NOTHING),
        [PROCESS_ON_PREPARED]  = GO(ENDED, NOTHING),
        [PROCESS_ON_STARTED]   = GO(ENDED, NOTHING),
        [PROCESS_ON_VERDICT]   = GO(ENDED, NOTHING),
        [PROCESS_ON_KEPT]      = GO(ENDED, NOTHING),
        [PROCESS_ON_LOST]      = GO(ENDED, NOTHING),
        [PROCESS_ON_REAPED]    = GO(ENDED, NOTHING),
        [PROCESS_ON_DRAINED]   = GO(ENDED, NOTHING),
        [PROCESS_ON_TERMINATE] = GO(ENDED, NOTHING),
        [PROCESS_ON_CANCEL]    = GO(ENDED, NOTHING),
        [PROCESS_ON_TIMER]     = GO(ENDED, NOTHING),
        [PROCESS_ON_IDLE]      = GO(ENDED, NOTHING),
    },
    [PROCESS_FAILED] = {
        [PROCESS_ON_SANDBOX]   = GO(FAILED, NOTHING),
        [PROCESS_ON_HOST]      = GO(FAILED, NOTHING),
        [PROCESS_ON_REFUSED]   = GO(FAILED, NOTHING),
        [PROCESS_ON_PREPARED]  = GO(FAILED, NOTHING),
        [PROCESS_ON_STARTED]   = GO(FAILED, NOTHING),
        [PROCESS_ON_VERDICT]   = GO(FAILED, NOTHING),
        [PROCESS_ON_KEPT]      = GO(FAILED, NOTHING),
        [PROCESS_ON_LOST]      = GO(FAILED, NOTHING),
        [PROCESS_ON_REAPED]    = GO(FAILED, NOTHING),
        [PROCESS_ON_DRAINED]   = GO(FAILED, NOTHING),
        [PROCESS_ON_TERMINATE] = GO(FAILED, NOTHING),
        [PROCESS_ON_CANCEL]    = GO(FAILED, NOTHING),
        [PROCESS_ON_TIMER]     = GO(FAILED, NOTHING),
        [PROCESS_ON_IDLE]      = GO(FAILED, NOTHING),
    },
};
/* clang-format on */

struct process_step process_step(enum process_state state, enum process_event event)
{
    ensure(state < PROCESS_STATE_MAX && event < PROCESS_EVENT_MAX);
    const struct row *r = &table[state][event];
    return (struct process_step){r->next, r->action};
}

#define NAME(id, name) name,

const char *process_state_name(enum process_state state)
{
    static const char *const names[] = {PROCESS_STATES(NAME)};
    return names[state];
}

const char *process_event_name(enum process_event event)
{
    static const char *const names[] = {PROCESS_EVENTS(NAME)};
    return names[event];
}
