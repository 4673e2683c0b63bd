/* wire/runmsg: the runner protocol, version 5: what gateway and worker say to each other (R5).
 *
 * Theory. A message is one JSON object in a frame (wire/frame), over any byte stream:
 *
 *   {"protocol":5,"kind":"request","request_id":"r-1","op":{"op":"exec","data":{...}}}
 *   {"protocol":5,"kind":"response","request_id":"r-1","ok":true,
 *    "result":{"type":"exec","data":{...}}}
 *   {"protocol":5,"kind":"response","request_id":"r-1","ok":false,
 *    "error":{"code":"PROCESS_NOT_FOUND","sys":0,"message":"..."}}
 *   {"protocol":5,"kind":"event","event":{"type":"process_exited","data":{...}}}
 *
 * The first request is `hello`. A request may be answered at any time and in any order; each is
 * answered once. A process ends with the event process_exited, which carries its last status; a
 * stream that ends without it means that the process's fate is not known, never exit code 0. Every
 * status carries `sequence`, which grows with each change of that process, so an older one that
 * comes later is recognised. `ping` is the heartbeat. `replay` asks for one of the last
 * RUNMSG_KEPT answers of this connection again: a repetition, not a recovery.
 *
 * Most commands end soon, and who starts one waits for that. So an exec may carry the first read of
 * its process (`first`): when that read has its answer within `hold_ms` of the start, both go in
 * one, and a page that says `exited` there stands for the event. Else the answer is the start
 * alone, and the read is asked as any other. Either way an exec has one answer; one that is
 * cancelled while it is held ends its process.
 *
 * What a peer that is older does not know is never sent to it: hello and welcome say how far each
 * side goes (RUNMSG_LEVEL), and a welcome says no more than its hello did. Who says nothing knows
 * only what every peer of this version does, and one of those refuses a hello that says it; it is
 * greeted again without.
 *
 * Each payload is a struct and a table of its members: one table writes it, reads it and frees it.
 * Bytes travel as base64, but for those of a page of output, of which there can be gigabytes: they
 * stand as they are behind the object, after a NUL, to the end of the frame. Errors travel as the
 * names of base/err. Pure.
 *
 * Must not: accept a member that no table names, a number out of its range, or a list without a
 * limit; the version says what a message may hold.
 */
#ifndef CODESPACE_WIRE_RUNMSG_H
#define CODESPACE_WIRE_RUNMSG_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define RUNMSG_PROTOCOL 5u
/* Within that version. 1: exec has `first`. 2: limits have `data`. */
#define RUNMSG_LEVEL 2u
/* Answers that a connection remembers. */
#define RUNMSG_KEPT 32u
/* A request's id is a word of ours. */
#define RUNMSG_ID_MAX 64u
/* Any other string: what the kernel refuses with a reason of its own must get that far. */
#define RUNMSG_STRING_MAX (4u << 20)
/* Strings of a list: as wire/helper's argv. */
#define RUNMSG_STRINGS_MAX 16384u
#define RUNMSG_ITEMS_MAX 1024u
/* The client asks with `ping` so often, and gives up a worker that was silent so long. */
#define RUNMSG_PING_MS 10000u
#define RUNMSG_SILENCE_MS 60000u

enum runmsg_kind { RUNMSG_REQUEST, RUNMSG_RESPONSE, RUNMSG_EVENT };

/* X(id, name, struct of the request, struct of the result) */
#define RUNMSG_OPS(X)                                                                              \
    X(HELLO, hello, hello, welcome)                                                                \
    X(EXEC, exec, exec, started)                                                                   \
    X(READ, read, read, page)                                                                      \
    X(STATUS, status, id, status)                                                                  \
    X(WRITE, write, write, nothing)                                                                \
    X(RESIZE, resize, resize, nothing)                                                             \
    X(TERMINATE, terminate, terminate, nothing)                                                    \
    X(SIGNAL, signal, signal, nothing)                                                             \
    X(LIST, list, list, listing)                                                                   \
    X(PROBE, probe, nothing, probe)                                                                \
    X(WARM, warm, place, warmth)                                                                   \
    X(RULES, rules, rules, ruled)                                                                  \
    X(CANCEL, cancel, replay, nothing)                                                             \
    X(PING, ping, nothing, nothing)                                                                \
    X(REPLAY, replay, replay, nothing)

enum runmsg_op {
#define RUNMSG_ENUM(id, name, request, result) RUNMSG_##id,
    RUNMSG_OPS(RUNMSG_ENUM)
#undef RUNMSG_ENUM
        RUNMSG_OP_MAX
};

/* Items of one kind, owned. */
struct runmsg_items {
    void *items;
    size_t n;
};

struct runmsg_nothing {
    uint64_t unused;
};

struct runmsg_hello {
    char *program;
    uint64_t level;
};

struct runmsg_welcome {
    uint64_t protocol;
    char *worker_id; /* fresh for each worker: ids of another one mean nothing here */
    char *version;
    uint64_t epoch; /* how many connections it has welcomed, this one included */
    bool durable;   /* its processes outlive the connection */
    uint64_t level; /* of both; not above the hello's */
};

struct runmsg_mount {
    char *path;
    bool writable;
};

struct runmsg_limits {
    uint64_t memory, pids, cpu_percent, cpu_seconds, file_size, open_files, data;
};

/* All that a runner's policy looks at; a member of core/registry that is not here would be a rule
 * that the worker does not keep (a test compares the sizes). */
struct runmsg_workspace {
    char *id, *root;
    uint64_t dev, ino; /* of the root; 0 = whatever is there */
    uint64_t profile, network, sandbox, read;
    struct runmsg_items mounts; /* struct runmsg_mount */
    struct strv hide, hidden, env, protect, deny_read, devices;
    uint64_t git, network_scope;
    bool shared_tmp, inherited_proc, debug, user_namespaces;
    struct runmsg_limits limits;
    char *cgroup_parent;
    char *egress; /* a policy of wire/egress as text; "" = none */
    struct strv publish;
};

struct runmsg_read {
    char *process_id;
    uint64_t cursor, stream, max_bytes, wait_ms;
    bool until_exit, whole_chars, clean;
    uint64_t from;
};

struct runmsg_exec {
    struct runmsg_workspace workspace;
    char *process_id;
    struct strv argv, env;
    char *cwd;
    bool tty;
    uint64_t rows, cols, timeout_ms, idle_timeout_ms, background;
    bool exclusive;
    uint64_t exclusive_wait_ms;
    bool has_stdin;
    struct buf stdin_data;
    bool has_first;
    struct runmsg_read first; /* of the process itself: names none */
    uint64_t hold_ms;         /* how long the answer may wait for that of `first` */
};

struct runmsg_id {
    char *process_id;
};

struct runmsg_status {
    char *process_id, *workspace_id;
    uint64_t state, termination, exit_code, signal;
    char *reason, *command, *output_failed;
    bool sandboxed, tty, eof, stopped;
    uint64_t output_total, output_retained_from, output_dropped;
    uint64_t started_ms, ended_ms, timeout_ms, idle_timeout_ms, cpu_us, max_rss_kib, background;
    uint64_t serial, sequence;
    struct strv background_pids;
    struct strv removed;
    struct strv denials;
    char *weaker;
    struct strv created;
    bool background_alive, shares_network;
};

struct runmsg_page {
    struct buf bytes;
    uint64_t n_bytes; /* of them, so that a page that was cut is not taken for a shorter one */
    uint64_t cursor, start, time_ms, retained_from;
    bool lost;
    struct runmsg_status status;
};

/* A command runs, or ran. */
struct runmsg_started {
    char *process_id;
    bool has_page;
    struct runmsg_page page; /* of the exec's `first` */
};

struct runmsg_write {
    char *process_id;
    struct buf data;
    bool eof;
};

struct runmsg_resize {
    char *process_id;
    uint64_t rows, cols;
};

struct runmsg_terminate {
    char *process_id;
    uint64_t signal, grace_ms;
    bool has_grace;
};

struct runmsg_signal {
    char *process_id;
    uint64_t signal;
};

struct runmsg_list {
    char *workspace_id; /* NULL = all */
    uint64_t after, max;
    bool live_only;
};

struct runmsg_listing {
    struct runmsg_items items; /* struct runmsg_status */
    bool more;
};

struct runmsg_place {
    char *workspace_id;
};

struct runmsg_warmth {
    uint64_t state; /* enum run_warm */
};

/* New egress rules for all commands of a workspace: those that run, and those that start with them
 * later say so themselves. */
struct runmsg_rules {
    char *workspace_id;
    char *egress; /* a policy of wire/egress as text */
};

/* Which processes obey them now, for which that is not so, and why. */
struct runmsg_ruled {
    struct strv changed, others;
    char *why;
};

struct runmsg_probe {
    char *result; /* JSON of wire/probe */
};

struct runmsg_replay {
    char *request_id;
};

struct runmsg {
    enum runmsg_kind kind;
    char *request_id;  /* NULL with an event */
    enum runmsg_op op; /* RUNMSG_OP_MAX with a failure, and with the event process_exited */
    bool failed;
    struct err failure; /* when failed */
    void *data;         /* the struct of op and kind; runmsg_status with the event; NULL = failed */
};

void runmsg_fini(struct runmsg *m);

/* The struct that belongs to op and kind, zeroed, as m->data. */
void *runmsg_new_data(struct runmsg *m, enum runmsg_kind kind, enum runmsg_op op);

/* Append the message. Members that are 0, false, NULL or empty are left out. */
void runmsg_write(const struct runmsg *m, struct buf *out);

/* 0. 1: the message is of another version; kind and request_id are filled when they are there. -1:
 * not a message (PARSE_ERROR, INVALID_REQUEST, LIMIT_EXCEEDED with the member); *ret still holds
 * what was read before the fault (the request_id), for the answer. Call runmsg_fini in all cases.
 */
int runmsg_read(const char *text, size_t n, struct runmsg *ret, struct err *e);

const char *runmsg_op_name(enum runmsg_op op);

#endif
