/* run/runner: the interface to whoever owns managed processes.
 *
 * Theory. A runner is `struct runner` with a table of operations. Two implementations: in-process
 * (run/local) and behind the framed protocol (run/remote). Nothing above this header knows
 * where a command runs. Everything is asynchronous because one of the two is: an operation answers
 * through its callback, exactly once, on the loop's thread, possibly before the call returns. What
 * a callback receives is borrowed until it returns. A call may be given up by its ticket: then its
 * callback is not called. Ids, never pointers, name processes.
 *
 * Processes belong to the runner, not to the client that started them (R6). When the runner is
 * freed every process and all its descendants are killed (R7).
 *
 * Must not: call a model, keep state on disk, or know the MCP protocol.
 */
#ifndef CODESPACE_RUN_RUNNER_H
#define CODESPACE_RUN_RUNNER_H

#include "base/err.h"
#include "core/registry.h"
#include "wire/probe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Wall-clock limit of a command when the caller names none, and the largest one to ask for. */
#define RUN_TIMEOUT_DEFAULT_MS 600000u
#define RUN_TIMEOUT_MAX_MS 86400000u
/* Live processes of a runner (CODESPACE_MAX_PROCESSES). */
#define RUN_PROCESSES_DEFAULT 64u
#define RUN_PROCESSES_MAX 4096u
/* Commands that may wait for their turn on one root (exclusive), and for how long. */
#define RUN_QUEUE_MAX 64u
#define RUN_TURN_DEFAULT_MS 30000u
#define RUN_TURN_MAX_MS 600000u
/* Ended processes stay readable this long and at most so many, oldest first out. */
#define RUN_RETAIN_MS 900000u
#define RUN_RETAIN_MAX 64u
/* Output kept in memory per process; older bytes are dropped and told. */
#define RUN_RING_BYTES 262144u
/* Bytes that may wait for a process to read its stdin. */
#define RUN_STDIN_MAX (1u << 20)
/* Longest long poll. */
#define RUN_WAIT_MAX_MS 600000u
/* One page of output: default and largest. (An answer of 1 MiB no longer fits into what the
 * programs keep of freed storage, and was slower for it.) */
#define RUN_PAGE_DEFAULT 32768u
#define RUN_PAGE_MAX (512u << 10)
/* From TERM to KILL when a process is ended by us, and the longest to ask for. */
#define RUN_GRACE_MS 500u
#define RUN_GRACE_MAX_MS 60000u
/* Processes in one answer of a list. */
#define RUN_LIST_MAX 100u
/* Shown of a command in a list. */
#define RUN_COMMAND_SHOWN 200u
/* Of the processes that a command left behind, so many are named. */
#define RUN_BACKGROUND_NAMED_MAX 16u
/* Output kept in a private file per process beyond the ring: half of it the head, half the tail. */
#define RUN_SPILL_BYTES (32u << 20)
/* The same over all processes of a runner. */
#define RUN_SPILL_TOTAL_BYTES (1u << 30)
/* Kept there beyond that, of all processes, for readers that follow (run/follow) and are behind. */
#define RUN_SPILL_FOLLOW_BYTES (1u << 30)

/* A process that the gateway starts for itself (the search program of a call) has an id that begins
 * like this. It changes nothing, so it does not wait for an exclusive command; lists do not show
 * it; it takes no place among the ended ones that are kept; and ending it when it has ended drops
 * its record. */
#define RUN_OWN_PREFIX "own-"

struct runner;

enum run_state { RUN_RUNNING, RUN_EXITED };

enum run_termination {
    RUN_END_NONE,           /* running */
    RUN_END_EXITED,         /* by itself: exit_code */
    RUN_END_SIGNALED,       /* by a signal: signal */
    RUN_END_TIMEOUT,        /* by its wall-clock limit */
    RUN_END_TERMINATED,     /* by terminate */
    RUN_END_WRAPPER_FAILED, /* the sandbox failed; the command's own end is not known */
    RUN_END_LOST,           /* its fate is not known */
    RUN_END_LIMIT,          /* by a limit other than its wall clock: silence (idle_timeout_ms) */
};

/* What becomes of the processes that a command leaves behind when it ends. */
enum run_background {
    RUN_BACKGROUND_KILL, /* killed and counted */
    RUN_BACKGROUND_KEEP, /* they live on, within the limits of the command, until the last one has
                            ended; refused where nobody would hold them (R13) */
};

/* Do commands of a workspace start warm now? */
enum run_warm { RUN_WARM_UNKNOWN, RUN_WARM_OFF, RUN_WARM_ON };

enum run_stream { RUN_COMBINED, RUN_STDOUT, RUN_STDERR };

struct run_exec {
    const struct workspace *ws;
    char *const *argv; /* NULL-terminated; checked by the caller */
    const char *cwd;   /* relative to the root, normalised; NULL = the root */
    char *const *env;  /* K=V; NULL = none */
    bool tty;
    uint16_t rows, cols;    /* of the terminal; 0 = 24 x 80 */
    uint64_t timeout_ms;    /* 0 = the runner's default */
    const char *stdin_data; /* NULL: stdin stays open for write; else written, then EOF */
    size_t stdin_len;
    const char *process_id;   /* to be used for it; NULL = a fresh one */
    uint64_t idle_timeout_ms; /* end it after so much silence (no output, no input); 0 = never */
    enum run_background background;
    bool exclusive;             /* nothing else runs on its root meanwhile */
    uint64_t exclusive_wait_ms; /* for its turn; 0 = RUN_TURN_DEFAULT_MS */
    /* The read that the caller makes from inside its answer, of the process that it gets there
     * (process_id is not used); NULL = none. A runner on a stream has that page brought along, and
     * keeps the answer back for it, for a moment. */
    const struct run_read *first;
};

/* How to end a process. */
struct run_terminate {
    int signal;        /* first; 0 = SIGTERM. SIGKILL leaves no grace */
    bool has_grace;    /* else RUN_GRACE_MS */
    uint64_t grace_ms; /* until KILL */
};

struct run_status {
    const char *process_id;
    const char *workspace_id;
    enum run_state state;
    enum run_termination termination;
    int exit_code;      /* with RUN_END_EXITED */
    int signal;         /* with RUN_END_SIGNALED; 0 else */
    const char *reason; /* a sentence when there is more to say; "" else */
    bool sandboxed;
    bool tty;
    bool eof; /* no more output will come */
    uint64_t output_total;
    uint64_t output_retained_from;
    uint64_t started_ms, ended_ms; /* wall clock since the epoch; ended 0 while running */
    uint64_t timeout_ms;
    uint64_t cpu_us, max_rss_kib; /* of the whole command; 0 while unknown */
    uint32_t background;          /* descendants that were left at its end */
    bool background_alive;        /* some of them still run; else they were killed or have ended */
    /* The first RUN_BACKGROUND_NAMED_MAX of them, "PID NAME": numbered as the command saw them (in
     * its sandbox; else the host's), named as they call themselves. NULL-terminated. */
    const char *const *background_pids;
    const char *const *removed; /* protected names it created, taken away; NULL-terminated */
    const char *const *denials; /* what was refused, lines of wire/denial; known at the end */
    const char *weaker;         /* walls that an operator gave up for it; "" = none */
    const char *const *created; /* repositories it made and left; NULL-terminated */
    bool shares_network;        /* its loopback is the one of its workspace's warm commands */
    const char *command;        /* the beginning of its argv, for people */
    uint64_t serial;            /* in order of the starts, from 1 */
    uint64_t sequence;          /* grows with every change of this process */
    uint64_t idle_timeout_ms;
    bool stopped;              /* by our signal, and not continued */
    uint64_t output_dropped;   /* bytes between head and tail that nobody can read any more */
    const char *output_failed; /* a sentence when output could not be stored in full; "" else */
};

/* Where a read begins. */
enum run_from {
    RUN_FROM_OFFSET,     /* at byte `cursor` */
    RUN_FROM_LINE,       /* at line `cursor`, from 0, lines of both streams together */
    RUN_FROM_TAIL_BYTES, /* `cursor` bytes before the end */
    RUN_FROM_TAIL_LINES, /* `cursor` lines before the end; a last one without an end counts */
};

struct run_read {
    const char *process_id;
    uint64_t cursor; /* byte offset in the combined log */
    enum run_stream stream;
    uint64_t max_bytes; /* 0 = RUN_PAGE_DEFAULT */
    uint64_t wait_ms;   /* answer when there is output after the cursor, at the end, or then */
    bool until_exit;    /* wait for the end only (wait_ms of exec_command) */
    bool whole_chars;   /* do not end a page inside a UTF-8 character unless it is the end */
    enum run_from from;
    bool clean; /* as a terminal would show it: run/clean */
};

struct run_page {
    const char *bytes; /* of the asked stream only */
    size_t len;
    uint64_t cursor; /* where the next read goes on */
    bool lost;       /* bytes between the asked cursor and this page were dropped */
    uint64_t retained_from;
    struct run_status status;
    uint64_t start;   /* offset of the first byte of this page */
    uint64_t time_ms; /* when that byte came, wall clock; 0 = not known */
};

struct run_list {
    const char *workspace_id; /* NULL = all */
    uint64_t after;           /* serial of the last one seen; 0 = from the first */
    uint64_t max;             /* 0 = RUN_LIST_MAX */
    bool live_only;
};

struct run_listing {
    const struct run_status *items; /* by serial */
    size_t n;
    bool more; /* ask again with `after` = the last serial */
};

/* failure NULL = success. */
/* A failure RUNNER_LOST may come with a process id: whether it runs is not known. */
typedef void (*run_exec_fn)(void *user, const char *process_id, const struct err *failure);
typedef void (*run_page_fn)(void *user, const struct run_page *page, const struct err *failure);
typedef void (*run_status_fn)(void *user, const struct run_status *status,
                              const struct err *failure);
typedef void (*run_done_fn)(void *user, const struct err *failure);
typedef void (*run_list_fn)(void *user, const struct run_listing *list, const struct err *failure);
typedef void (*run_probe_fn)(void *user, const struct probe_result *result);
typedef void (*run_warm_fn)(void *user, enum run_warm warm);

/* What became of new egress rules where commands run: those that obey them now, and those for which
 * that is not so, with the first reason why ("" = none). Ids, NULL-terminated. */
struct run_rules {
    const char *const *changed;
    const char *const *others;
    const char *why;
};
typedef void (*run_rules_fn)(void *user, const struct run_rules *outcome,
                             const struct err *failure);

/* Names a pending call for runner_cancel(); 0 = the call has already answered. */
typedef uint64_t run_ticket;

struct runner_ops {
    run_ticket (*exec)(struct runner *r, const struct run_exec *x, run_exec_fn done, void *user);
    run_ticket (*read)(struct runner *r, const struct run_read *x, run_page_fn done, void *user);
    run_ticket (*status)(struct runner *r, const char *id, run_status_fn done, void *user);
    run_ticket (*write)(struct runner *r, const char *id, const void *data, size_t n, bool eof,
                        run_done_fn done, void *user);
    run_ticket (*resize)(struct runner *r, const char *id, uint16_t rows, uint16_t cols,
                         run_done_fn done, void *user);
    run_ticket (*terminate)(struct runner *r, const char *id, run_done_fn done, void *user);
    run_ticket (*terminate_by)(struct runner *r, const char *id, const struct run_terminate *how,
                               run_done_fn done, void *user);
    run_ticket (*signal)(struct runner *r, const char *id, int signal, run_done_fn done,
                         void *user);
    run_ticket (*list)(struct runner *r, const struct run_list *x, run_list_fn done, void *user);
    void (*probe)(struct runner *r, run_probe_fn done, void *user);
    run_ticket (*warm)(struct runner *r, const char *workspace_id, run_warm_fn done, void *user);
    run_ticket (*rules)(struct runner *r, const struct workspace *ws, run_rules_fn done,
                        void *user);
    void (*cancel)(struct runner *r, run_ticket ticket);
    void (*free)(struct runner *r);
};

struct runner {
    const struct runner_ops *ops;
};

/* Start a command. Errors: PROCESS_SPAWN_FAILED (nothing ran), PROCESS_LIMIT,
 * WORKSPACE_PROCESS_LIMIT, SANDBOX_UNAVAILABLE, WORKSPACE_BUSY (its turn did not come),
 * RESOURCE_QUEUE_FULL, INVALID_COMMAND (background: keep on the host), RUNNER_UNAVAILABLE,
 * RUNNER_LOST. A cancelled exec whose process was already started is killed. */
run_ticket runner_exec(struct runner *r, const struct run_exec *x, run_exec_fn done, void *user);

/* Output and status in one answer. Errors: PROCESS_NOT_FOUND. */
run_ticket runner_read(struct runner *r, const struct run_read *x, run_page_fn done, void *user);

run_ticket runner_status(struct runner *r, const char *id, run_status_fn done, void *user);

/* Answers when the bytes were taken over. Errors: PROCESS_NOT_FOUND, STDIN_CLOSED, STDIN_FULL
 * (nothing was taken; RUN_STDIN_MAX bytes wait already), PROCESS_NOT_RUNNING. On a terminal eof
 * sends the terminal's end-of-file character. */
run_ticket runner_write(struct runner *r, const char *id, const void *data, size_t n, bool eof,
                        run_done_fn done, void *user);

/* Errors: PROCESS_NOT_FOUND, PROCESS_NOT_RUNNING, PROCESS_NOT_TTY. */
run_ticket runner_resize(struct runner *r, const char *id, uint16_t rows, uint16_t cols,
                         run_done_fn done, void *user);

/* TERM, then KILL after RUN_GRACE_MS; the whole tree. Answers at once; ending an ended process is
 * fine. Errors: PROCESS_NOT_FOUND. */
run_ticket runner_terminate(struct runner *r, const char *id, run_done_fn done, void *user);

/* The same as asked. A second call comes before the rest of the first one's grace. */
run_ticket runner_terminate_by(struct runner *r, const char *id, const struct run_terminate *how,
                               run_done_fn done, void *user);

/* One signal, 1..64: in the sandbox to the command's process group, on the host to its session.
 * Not an end of ours: what it does is the command's business. STOP and CONT are remembered in the
 * status. Errors: PROCESS_NOT_FOUND, PROCESS_NOT_RUNNING, INVALID_ARGUMENT. */
run_ticket runner_signal(struct runner *r, const char *id, int signal, run_done_fn done,
                         void *user);

/* The live ones and the ended ones that are still kept, a page at a time. */
run_ticket runner_list(struct runner *r, const struct run_list *x, run_list_fn done, void *user);

/* Whether and how commands are sandboxed here; probed once, later calls get the cached answer. */
void runner_probe(struct runner *r, run_probe_fn done, void *user);

/* Does a command of this workspace start warm now? RUN_WARM_UNKNOWN when the runner cannot tell. */
run_ticket runner_warm(struct runner *r, const char *workspace_id, run_warm_fn done, void *user);

/* ws->egress was replaced: bring it to the workspace's commands that run and have a network. New
 * connections are judged by it from the answer on, and what stands and is refused by it is closed;
 * commands that start later have it anyway. A command that is just being started starts with it.
 * `ws` may go before the answer. Errors: LIMIT_EXCEEDED, RUNNER_UNAVAILABLE, RUNNER_LOST (who obeys
 * is not known). */
run_ticket runner_rules(struct runner *r, const struct workspace *ws, run_rules_fn done,
                        void *user);

void runner_cancel(struct runner *r, run_ticket ticket);

/* Kills what is alive, waits for nothing, frees. Calls that wait are not answered any more. NULL is
 * fine. */
void runner_free(struct runner *r);

const char *run_state_name(enum run_state s);
const char *run_termination_name(enum run_termination t);

#endif
