/* run/remote_core: what the files of run/remote share. Not for anybody else.
 *
 * remote.c has the life of the connection, remote_calls.c the table of requests that wait for their
 * answers, remote_ops.c the operations.
 */
#ifndef CODESPACE_RUN_REMOTE_CORE_H
#define CODESPACE_RUN_REMOTE_CORE_H

#include "run/known.h"
#include "run/link.h"
#include "run/remote.h"
#include "run/workerproc.h"

enum remote_state { REMOTE_STARTING, REMOTE_GREETING, REMOTE_UP, REMOTE_DOWN };

/* A start that is being told, and what came with it. */
struct first_answer {
    const char *process_id;
    const struct run_read *ask;
    struct runmsg_page *page; /* NULL: it was not ready after REMOTE_HOLD_MS */
};

struct remote {
    struct runner base;
    uv_loop_t *loop;
    struct anchor anchor;
    struct list yard;
    enum remote_state state;
    struct workerproc *proc;
    struct link link;
    struct alarm alarm; /* heartbeat, and calls that wait too long */
    struct list calls;
    size_t n_calls;
    uint64_t next_ticket;
    struct known_table known;
    bool probed;
    struct probe_result probe;
    char *why; /* it is down */
    /* of the options */
    char *worker_bin, *dir;
    char *socket;      /* of a worker that we connect to; NULL = always one of our own */
    char *durable_dir; /* of a durable worker that we start when there is none */
    char *worker_id;   /* of the last welcome */
    uint64_t epoch;
    bool durable;               /* what it has outlives the connection */
    uint64_t level;             /* of what it understands (RUNMSG_LEVEL) */
    char *refused;              /* why it did not take the first hello */
    bool again;                 /* it was started once more, and has not greeted yet */
    struct first_answer *first; /* while the caller of an exec is told */
    struct strv extra;
    uint64_t timeout_ms;
    bool freed;
};

/* A request that waits for its answer. */
struct call_out {
    struct list link;
    run_ticket ticket; /* its request_id is "r-<ticket>" */
    enum runmsg_op op;
    union {
        run_exec_fn exec;
        run_page_fn page;
        run_status_fn status;
        run_done_fn done;
        run_list_fn list;
        run_probe_fn probe;
        run_warm_fn warm;
        run_rules_fn rules;
    } fn;
    void *user;
    bool silent; /* nobody wants the answer: cancelled, or ours */
    bool sent;
    char *process_id;
    uint64_t cursor; /* of a read */
    bool has_first;
    struct run_read first; /* of an exec, sent with it */
    struct buf text;       /* until it is sent */
    uint64_t wait_ms, asked_ms;
};

/* remote.c: when the worker is lost: connect again, or, for an exec, start another one. 0 also when
 * there is one, and when none answers. Errors: RUNNER_UNAVAILABLE (it could not be started). */
int remote_reach(struct remote *r, bool for_exec, struct err *e);
void remote_free(struct runner *base);

/* remote_calls.c */
struct call_out *call_new(struct remote *r, enum runmsg_op op, void *user);
void call_free(struct remote *r, struct call_out *c);
/* Send `m` (which is freed) or keep it until the worker is there. The ticket, 0 = has failed. */
run_ticket call_dispatch(struct remote *r, struct call_out *c, struct runmsg *m);
/* One of ours, whose answer nobody waits for. */
void call_dispatch_silent(struct remote *r, struct runmsg *m);
/* Send what was kept. */
void calls_send_waiting(struct remote *r);
/* Take the answer to its caller. -1: it is none (RUNNER_LOST with what is wrong with it). */
int calls_answer(struct remote *r, struct runmsg *m, struct err *e);
/* Answer from what this side knows, and free the call. False when it knows nothing. */
bool call_tell_known(struct remote *r, struct call_out *c);
/* The worker is lost: answer all, honestly. */
void calls_give_up(struct remote *r);
/* Answer those that have waited too long. */
void calls_check_deadlines(struct remote *r);

/* remote_ops.c */
extern const struct runner_ops remote_ops;

#endif
