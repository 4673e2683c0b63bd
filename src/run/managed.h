/* run/managed: one managed process: its descriptors, its clock, its end.
 *
 * Theory. A managed process is a record that outlives its process. managed_feed() is the only place
 * where its state changes: it asks the table (run/process) what an event means and does that. The
 * work is split by concept over launch.c (start), stdio.c (output and input), control.c
 * (what the sandbox says), end.c (kill, reap, status) and wait.c (who waits for output or the end).
 *
 * A record is freed by managed_free() when its handles have closed, never inside a callback, so a
 * function that has called out may still use it.
 *
 * Must not: be kept by pointer over a turn of the loop by anybody but the runner's table.
 */
#ifndef CODESPACE_RUN_MANAGED_H
#define CODESPACE_RUN_MANAGED_H

#include "base/buf.h"
#include "base/list.h"
#include "run/call.h"
#include "run/follow.h"
#include "run/gate.h"
#include "run/outlog.h"
#include "run/process.h"
#include "run/rules.h"
#include "run/runner.h"
#include "run/sweep.h"
#include "run/watch.h"
#include "wire/helper.h"

#include <uv.h>

/* One read of output. Shared by all processes of a runner. */
#define MANAGED_READ_BYTES 65536u
/* Reads of one process in one turn of the loop; then the others get theirs. */
#define MANAGED_READS_PER_TURN 2
/* Asked for the output pipes: three times the throughput of the kernel's 64 KiB. */
#define MANAGED_PIPE_BYTES 262144
/* From the helper's answer to `started`: bubblewrap takes 8 ms, 60 with hundreds of mounts. */
#define MANAGED_START_MS 10000u
/* A wrapper whose control connection closed gets this long to end by itself, so that its own status
 * is known. */
#define MANAGED_NUDGE_MS 500u
/* After the command's end: how long a pipe may stay open that somebody else holds (E1). */
#define MANAGED_DRAIN_MS 200u
/* How long a wrapper may outlive its verdict. */
#define MANAGED_LINGER_MS 1000u
/* Kept of bubblewrap's text, for the reason. */
#define MANAGED_WORDS_MAX 1024u

struct managed;

/* What a managed process needs from its runner. */
struct home {
    uv_loop_t *loop;
    struct list yard;    /* run/grave */
    struct list waiters; /* of all processes, by waiter.all */
    const char *helper;
    char *const *helper_env;
    struct warm *warm; /* NULL: every command starts cold */
    char *scratch;     /* MANAGED_READ_BYTES */
    struct buf page;   /* of the answer that is being given */
    uint64_t next_ticket;
    uint64_t next_serial;
    struct rules_book rules;
    struct spill_budget spill;            /* where and how much output beyond the ring is kept */
    void (*on_kept)(struct managed *m);   /* the command has ended, what it left has not */
    void (*on_ended)(struct managed *m);  /* it has become readable only; no call out of it */
    void (*on_over)(struct managed *m);   /* last thing: its place on its root is free */
    void (*on_failed)(struct managed *m); /* nothing ran: take it out and managed_free() it */
};

/* How it ended. */
struct managed_end {
    enum run_termination termination;
    int exit_code;
    int signal;
    uint64_t cpu_us, max_rss_kib;
    uint32_t background;
    char *reason;
    struct strv left; /* lines of run_status.background_pids */
    struct strv removed, created;
    struct strv denials; /* lines of wire/denial */
};

struct managed {
    struct list link; /* in the runner's table: live or ended */
    struct home *home;
    char *id;
    const struct workspace *ws;
    enum process_state state;
    bool sandboxed;
    bool tty;
    bool keep; /* what the command leaves lives on */
    bool kept; /* it has ended and something does, or did: the end and its time are the command's */

    /* What was asked for; argv and env are dropped after the start. */
    struct strv argv, env;
    char *cwd;
    uint16_t rows, cols;
    uint64_t timeout_ms, idle_timeout_ms;
    char *command; /* the beginning of argv, for people */
    uint64_t serial;
    uint64_t sequence;
    struct pass pass; /* its turn on its root */
    bool admitted;    /* it has come */

    /* The start. */
    bool shares_network; /* with the other commands of its zygote */
    bool warm; /* handed to the workspace's zygote (run/warm); there is no wrapper of its own */
    bool cold; /* a zygote failed to take it: not again */
    uint64_t zygote;    /* which one: warm_serial() */
    bool quiet;         /* its control socket is not listened to yet: control_listen() */
    bool hung_up;       /* our half of its control connection is closed */
    struct strv guards; /* what process 1 inside guards (wire/helper) */
    struct err *failure;
    run_ticket ticket; /* of the exec call; 0 when it was answered */
    run_exec_fn done;
    void *user;

    /* The child. With a terminal `out` is its master and `in`, `err` stay closed. */
    struct anchor anchor;
    struct alarm alarm;
    struct alarm idle;
    uint64_t active_ms; /* of the loop's clock: last output or input */
    struct watch in, out, err, control, pidfd;
    struct rules rules; /* to its own egress proxy */
    int terminal;       /* our side of a terminal that nobody inside holds any more; -1 = none */
    pid_t pid;
    int init_fd;         /* of process 1 inside, from its receipt to its last word; -1 = none */
    struct sweep *sweep; /* in its place */
    bool reaped;
    bool began;          /* the command was executed, so process 1 inside ends the rest */
    bool session_killed; /* with those of others; nothing is left to signal */

    struct buf input; /* waits for stdin */
    bool input_eof;   /* stdin ends after `input` */
    struct outlog log;
    struct follow follow;
    struct buf line;  /* control line in the making */
    struct buf words; /* bubblewrap's text */

    enum run_termination intent; /* why we end it; RUN_END_NONE = we do not */
    struct run_terminate how;    /* what TERMINATE means */
    bool stopped;                /* by our signal */
    uint64_t held_signals;       /* to be sent when it starts: bit n-1 is signal n */
    char *output_failed;         /* sentence for run_status; NULL = not made yet */
    bool kill_asked;             /* process 1 was told to KILL; the wrapper is next */
    struct managed_end end;
    /* By the monotonic clock: when its start was ordered, it was executed, it ended; 0 = not yet.
     */
    uint64_t ordered_us, began_us, over_us;
    uint64_t started_us, ended_us;                      /* the last two by the wall clock */
    uint64_t retired_ms;                                /* by the loop's clock */
    const char **left, **removed, **created, **denials; /* views of end's lists for run_status */
    struct list waiters;
};

/* managed.c */
struct managed *managed_new(struct home *home, const struct run_exec *x, uint64_t timeout_ms,
                            run_exec_fn done, void *user);
/* It has to wait for its turn, so long. */
void managed_await_turn(struct managed *m, uint64_t wait_ms);
void managed_feed(struct managed *m, enum process_event event);
/* Kill what is alive, close everything, answer nobody; the record goes when its handles have. */
void managed_free(struct managed *m);
/* Milliseconds since the epoch. */
uint64_t managed_wall_ms(void);
/* By the monotonic clock, which process 1 inside has, too. */
uint64_t managed_clock_us(void);
/* What process 1 inside says about a moment, as far as it can be true: not before `earliest`, not
 * after now. Else now. */
uint64_t managed_told_us(uint64_t told_us, uint64_t earliest_us);
bool managed_is_live(const struct managed *m);

/* launch.c: start it, or hand it to a zygote; PREPARED or REFUSED will be fed. */
void launch_prepare(struct managed *m);
/* It waits in PREPARING, for a warm sandbox that is being made or after launch_again(): its alarm
 * means that launch_prepare() is due. */
bool launch_is_due(const struct managed *m);
/* Its own helper has not answered yet, and what comes on the control socket is the answer. */
bool launch_awaits_answer(const struct managed *m);
/* That line; feeds PREPARED or REFUSED. */
void launch_take_answer(struct managed *m, const char *line, size_t n);
/* Write down that there will be none: the helper `what`. */
void launch_fail_unanswered(struct managed *m, const char *what);
/* The zygote did not take it, so it has not run: start it cold. False when that is not so. */
bool launch_again(struct managed *m);
/* It is prepared: on the host start it now; feeds STARTED or REFUSED there. */
void launch_spawn(struct managed *m);
/* Write down why it could not be started; the first reason stays. */
void launch_fail(struct managed *m, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for an errno of exec, with what to do about it. */
void launch_fail_exec(struct managed *m, int errnum);

/* stdio.c */
void stdio_on_output(struct watch *w, void *owner);
void stdio_on_input(struct watch *w, void *owner);
/* Wait for output. In a sandbox a command is listened to when it is known to run: process 1 says so
 * when it has not ended within a millisecond, and what one that ends before has written is read at
 * its end, so that it does not wake us three times. */
void stdio_listen(struct managed *m);
/* Read what is in the pipes now, within a bound. */
void stdio_drain(struct managed *m);
bool stdio_at_eof(const struct managed *m);
/* Take bytes for stdin. 0 or -1. */
int stdio_write(struct managed *m, const void *data, size_t n, bool eof, struct err *e);
/* Write what waits, and the end when it is due. 0, or -errno when nobody reads any more. */
int stdio_flush(struct managed *m);

/* control.c */
void control_on_ready(struct watch *w, void *owner);
/* A warm command that is not fed anything: its receipt would wake us only to be noted, and until
 * `started` PREPARING and STARTING are treated alike. So for CONTROL_QUIET_MS, which is when
 * `started` comes, its socket wakes us when the other side has said its last word, and not before.
 * control_listen() ends that: it reads what is there and waits for more. */
#define CONTROL_QUIET_MS 1
void control_listen(struct managed *m);
/* Read what is there and feed it. */
void control_read(struct managed *m);

/* Take the pidfd of process 1 from what came and was not read, and drop the rest: the record is
 * about to go. */
void control_take_init(struct managed *m);
void control_signal(struct managed *m, int signal);

/* end.c */
void end_on_pidfd(struct watch *w, void *owner);
void end_by_verdict(struct managed *m, const struct helper_verdict *v);
/* What the command left has ended, too. */
void end_by_over(struct managed *m, const struct helper_verdict *v);
void end_ask(struct managed *m, enum run_termination intent);
/* Asked again, as m->how says: the signal now, KILL when the shorter grace is over. */
void end_hasten(struct managed *m);
/* One signal to the command and what belongs to it. */
void end_signal(struct managed *m, int signal);
/* The same of one that was not started yet: it gets it at its start, as a process does that blocks
 * it, so one of a kind, and of stop and CONT the last. */
void end_hold_signal(struct managed *m, int signal);
void end_send_held(struct managed *m);
/* KILL by way of process 1, so that it can still tell what it cleared away; the second time, and on
 * the host, by force. */
void end_kill(struct managed *m);
/* Now: the control connection, the wrapper or the session. */
void end_kill_now(struct managed *m);
/* A warm command's control connection is gone: so is its process 1, and with it the rest. */
void end_by_silence(struct managed *m);
/* Name the end: an intent of ours comes before what the child did. */
void end_settle(struct managed *m);
void end_fini(struct managed_end *end);

/* wait.c */
void status_fill(struct managed *m, struct run_status *ret);
run_ticket wait_read(struct managed *m, const struct run_read *x, run_page_fn done, void *user);
/* Output came or the process ended: answer who is served by that. */
void wait_check(struct managed *m);
bool wait_cancel(struct home *home, run_ticket ticket);
/* Free all waiters of m without an answer. */
void wait_drop(struct managed *m);

#endif
