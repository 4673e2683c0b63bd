/* run/process: the life of a managed process as a table of states and events.
 *
 * Theory. Everything that can happen to a process is one of fourteen events; what it means depends
 * on where the process is. Pure: the table says the next state and what has to be done, run/managed
 * does it. Who wants to know what happens when a timeout meets an exit reads one row.
 *
 *   WAITING --sandbox--> PREPARING --prepared--> STARTING --started--> RUNNING
 *      `----------------host-------------------->'                       |  terminate, timer, idle
 *   any of these but RUNNING --refused--> FAILED (nothing ran)         ENDING (TERM was sent)
 *                                                                        |  timer
 *   RUNNING, ENDING, KILLING --verdict or reaped--> DRAINING           KILLING
 *                                   DRAINING --drained or timer--> ENDED
 *   RUNNING --kept--> KEPT (the command has ended, what it left lives on); from there as RUNNING
 *
 * There is one timer. What it means is the state's business: the limit of a wait, of a start, of
 * the command, of its grace, of reading what is left. (Silence has a clock of its own, which only
 * matters while the command runs.) The first intent to end a process wins; an end that was
 * known before keeps its own name, because DRAINING and ENDED ignore both.
 *
 * Must not: touch a descriptor, or leave a pair without a row.
 */
#ifndef CODESPACE_RUN_PROCESS_H
#define CODESPACE_RUN_PROCESS_H

/* X(id, name) */
#define PROCESS_STATES(X)                                                                          \
    X(WAITING, "waiting")     /* for the probe's answer, or for its turn (run/gate) */             \
    X(PREPARING, "preparing") /* the helper looks whether it can be, and how */                    \
    X(STARTING, "starting")   /* the view is being built */                                        \
    X(RUNNING, "running")                                                                          \
    X(KEPT, "kept")         /* the command has ended; what it left in the background has not */    \
    X(ENDING, "ending")     /* asked to end by TERM */                                             \
    X(KILLING, "killing")   /* KILL was sent, or is about to be: the wrapper is gone */            \
    X(DRAINING, "draining") /* the end is known; output is still in the pipes */                   \
    X(ENDED, "ended")                                                                              \
    X(FAILED, "failed") /* nothing ran; the record is about to go */

/* X(id, name) */
#define PROCESS_EVENTS(X)                                                                          \
    X(SANDBOX, "sandbox")   /* the probe works: prepare */                                         \
    X(HOST, "host")         /* no sandbox here, and none is demanded */                            \
    X(REFUSED, "refused")   /* it cannot be started; the reason is written down */                 \
    X(PREPARED, "prepared") /* the helper says that it can be, or the zygote has taken it */       \
    X(STARTED, "started")   /* the command was executed */                                         \
    X(VERDICT, "verdict")   /* process 1 inside told the end, and nothing is left */               \
    X(KEPT, "kept")         /* it told the command's end, and what is left lives on */             \
    X(LOST, "lost")         /* the control connection closed without a verdict */                  \
    X(REAPED, "reaped")     /* our child ended */                                                  \
    X(DRAINED, "drained")   /* output is at its end */                                             \
    X(TERMINATE, "terminate")                                                                      \
    X(CANCEL, "cancel") /* who asked for the start gave up */                                      \
    X(TIMER, "timer")                                                                              \
    X(IDLE, "idle") /* neither output nor input for its idle limit */

/* What the driver has to do. X(id, name) */
#define PROCESS_ACTIONS(X)                                                                         \
    X(UNDEFINED, "undefined") /* no row: a fault of ours */                                        \
    X(NOTHING, "nothing")                                                                          \
    X(PREPARE, "prepare")                                                                          \
    X(SPAWN, "spawn")                                                                              \
    X(ANNOUNCE, "announce") /* answer the start with the id; start the command's clock */          \
    X(REFUSE, "refuse")     /* answer the start with the failure; end what there is */             \
    X(DISCARD, "discard")   /* end what there is, answer nobody */                                 \
    X(TERMINATE, "terminate")                                                                      \
    X(HASTEN, "hasten") /* asked again: what was asked now comes before the rest of the grace */   \
    X(TIME_OUT, "time_out")                                                                        \
    X(IDLE_OUT, "idle_out")                                                                        \
    X(KEEP, "keep")   /* write the command's end down, answer who waits for it */                  \
    X(NUDGE, "nudge") /* give the wrapper a moment to end by itself */                             \
    X(KILL, "kill")                                                                                \
    X(DRAIN, "drain")   /* write the end down; read what is left, for a bounded time */            \
    X(FINISH, "finish") /* close everything, answer who waits */

enum process_state {
#define PROCESS_ENUM(id, name) PROCESS_##id,
    PROCESS_STATES(PROCESS_ENUM)
#undef PROCESS_ENUM
        PROCESS_STATE_MAX
};

enum process_event {
#define PROCESS_ENUM(id, name) PROCESS_ON_##id,
    PROCESS_EVENTS(PROCESS_ENUM)
#undef PROCESS_ENUM
        PROCESS_EVENT_MAX
};

enum process_action {
#define PROCESS_ENUM(id, name) PROCESS_DO_##id,
    PROCESS_ACTIONS(PROCESS_ENUM)
#undef PROCESS_ENUM
        PROCESS_ACTION_MAX
};

struct process_step {
    enum process_state next;
    enum process_action action;
};

/* What `event` means in `state`. Every pair has a row. */
struct process_step process_step(enum process_state state, enum process_event event);

const char *process_state_name(enum process_state state);
const char *process_event_name(enum process_event event);

#endif
