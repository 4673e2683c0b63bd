/* wire/helper: the small JSON protocol between a runner and codespace-linux-sandbox (R10).
 *
 * Theory. `prepare` reads one request on stdin and answers one line on stdout; `run --plan PATH`
 * is what is then started as the managed process. `start --request-fd N` is both in one process,
 * without a plan on disk: it reads the request from that descriptor, and its answer is the first
 * line on the control socket. While it runs, a stream socket given by `--control-fd N` carries
 * lines both ways: verdicts from our process 1 inside, text from bubblewrap, requests from the
 * runner. Closing the runner's end ends the sandbox, whatever it is doing. The runner knows only
 * this file of the sandbox.
 *
 * What the runner owes the helper. It starts it without a controlling terminal of its own (with
 * `tty` the terminal becomes the command's, inside). The verdict is the end of the command; the
 * helper's process lasts a little longer, while the kernel clears the namespaces away, and may be
 * killed then. The helper leads its own process group: a runner that ends a sandbox closes the
 * socket, and kills the group when the helper's process has not ended within a second, or when it
 * has ended and the socket has not (bubblewrap was killed in the middle of its set-up).
 *
 * Request (protocol 1; the first six members are the public contract, the rest optional):
 *   {"protocol":1,"workspace_root":"/w","command_cwd":"/w/sub","writable_workspace":true,
 *    "network":"restricted","argv":["make"],
 *    "tty":false,"env":["K=V"],"read":"minimal"|"all","mounts":[{"path":"/x","writable":false}],
 *    "hidden":["/home/u/.ssh"],"protect":[".git",".agents",".codex","ci/deploy.sh"],
 *    "deny":["*.pem","keys/"],"git":"read-only"|"commit","tmp":"private"|"shared",
 *    "proc":"fresh"|"inherited","devices":["/dev/dri/renderD128"],"debug":false,"user_namespaces":false,
 *    "background":"kill"|"keep","network_scope":"workspace"|"command",
 *    "limits":{"memory":N,"pids":N,"cpu_percent":N,"cpu_seconds":N,"file_size":N,"open_files":N,
 *    "data":N},
 *    "cgroup_parent":"/sys/fs/cgroup/...","egress":{wire/egress},"publish":[3000]}
 *   "zygote":true asks for a sandbox that stays and takes commands (wire/warm); its argv stands for
 *   nothing. It is refused where only a fresh view is a whole one.
 * Answer:  {"type":"prepared","plan_path":"/...","guards":["/w/.git","", ...]}  exit 0
 *   guards: pairs of a protected path that is not there, or a link, and the link's text or "": what
 *   process 1 puts right, and the runner when process 1 was killed after its receipt.
 *     or:  {"type":"error","message":"..."}         exit 1
 *   The answer of `start` has no plan_path.
 *
 * An empty line with a descriptor is the receipt of process 1 (its pidfd): the guards are as they
 * were planned and the command is about to be executed. When there are no guards a cold start does
 * without; one without a descriptor says the same and leaves the guards to process 1 alone.
 * Control lines from the sandbox (one JSON object a line; a line that does not start with '{' is
 * text of bubblewrap and belongs into the reason of a wrapper failure):
 *   {"event":"started","at_us":N}                        the command was executed; N is the moment
 *                                                        before (CLOCK_MONOTONIC)
 *   {"event":"exec_failed","errno":2}                    the command itself could not be executed
 *   {"event":"failed","code":N,"message":"..."}          wrapper failure, N from the exit table
 *   {"event":"exit","code":N, ...}                       the command exited with N
 *   {"event":"signal","signal":N, ...}                   the command died of signal N
 *     the last two with "at_us":N (when it was reaped), "background":N (processes that were left
 * and killed), "background_pids":[{"pid":N,"name":"sleep"}] (the first of them, numbered as
 * inside), "cpu_us":N, "max_rss_kib":N, "removed":[".git"] (protected names the command created,
 *     taken away again), "created_repositories":["sub/.git"] (new ones that the command left),
 *     "oom_kills":N (processes that the kernel ended at the memory limit), "denials":[{"rule":
 *     "filter.trace","what":"ptrace","count":3}] (wire/denial)
 *   With "background":"keep" and processes left, the end carries "kept":true ("background" counts
 *   them) and process 1 lives on with them. When the last has ended:
 *   {"event":"over", ...}                                members as of an end, for all together
 * Control lines to the sandbox:
 *   {"op":"signal","signal":15}                          to the command's process group; after an
 *                                                        end with "kept" to all that is left
 * A socket that closes without exit, signal, exec_failed or failed means: the wrapper died.
 *
 * Must not: be trusted by either side. Both ends bound every length.
 */
#ifndef CODESPACE_WIRE_HELPER_H
#define CODESPACE_WIRE_HELPER_H

#include "base/buf.h"
#include "base/err.h"
#include "wire/denial.h"
#include "wire/egress.h"
#include "wire/handover.h"
#include "wire/view.h"

#include <stdbool.h>
#include <stdint.h>

#define HELPER_PROTOCOL 1

/* A whole request: argv and env may be large (E33), the kernel's own limit is 2 MiB by default. */
#define HELPER_REQUEST_MAX (4u << 20)
/* An answer or a control line. */
#define HELPER_LINE_MAX 32768u
#define HELPER_ARGV_MAX 16384u
#define HELPER_ENV_MAX 4096u

enum helper_network { HELPER_NETWORK_RESTRICTED, HELPER_NETWORK_ENABLED };

/* 0 = no limit. The first three need a cgroup. */
struct helper_limits {
    uint64_t memory;      /* bytes of all processes together */
    uint64_t pids;        /* processes and threads at once */
    uint64_t cpu_percent; /* of one processor: 150 is one and a half */
    uint64_t cpu_seconds; /* of one process (RLIMIT_CPU) */
    uint64_t file_size;   /* bytes of one file (RLIMIT_FSIZE) */
    uint64_t open_files;  /* in one process (RLIMIT_NOFILE) */
    uint64_t data;        /* bytes of one process's heap and stacks of threads (RLIMIT_DATA) */
};

/* Read {"memory":N,...} into *ret; errors carry `code`. */
struct json_object;
int helper_limits_read(struct json_object *obj, const char *where, struct helper_limits *ret,
                       enum err_code code, struct err *e);

/* Ports to be reached from the host: at most HANDOVER_PUBLISH_MAX items, which the caller has
 * checked. Errors carry `code`. */
int helper_publish_read(struct json_object *array, const char *where, uint16_t *ret_ports,
                        size_t *ret_n, enum err_code code, struct err *e);

struct helper_request {
    struct view view;
    char *cwd; /* absolute, inside the view */
    enum helper_network network;
    bool tty;
    bool zygote;          /* no command: take commands later (wire/warm); argv stands for nothing */
    bool debug;           /* ptrace and its like work inside */
    bool user_namespaces; /* the command may make some, with namespaces of other kinds in them */
    bool keep;            /* what the command leaves lives on */
    bool own_network;     /* of a zygote: each command gets a network namespace of its own */
    struct helper_limits limits;
    char *cgroup_parent;                    /* directory in which a group is made; NULL = none */
    struct egress_policy egress;            /* of an enabled network; zeroed allows nothing */
    uint16_t publish[HANDOVER_PUBLISH_MAX]; /* ports inside that the host can reach */
    size_t n_publish;
    struct strv argv;
    struct strv env; /* K=V, on top of the defaults; later wins */
};

void helper_request_fini(struct helper_request *r);

/* Append the request as one JSON document. */
void helper_request_write(const struct helper_request *r, struct buf *out);

/* Parse and check: protocol, absolute paths, counts, non-empty argv[0], no NULs. Members that are
 * absent get the defaults of wire/view. Errors: INVALID_COMMAND with the member's name. */
int helper_request_read(const char *text, size_t n, struct helper_request *ret, struct err *e);

/* The answer of prepare or start. 0: *ret_plan is the path (caller frees); NULL = there is none to
 * be expected. -1: the helper's own message as PROCESS_SPAWN_FAILED, or that the answer was not
 * understood. ret_guards (NULL = not wanted) gets pairs as of struct plan's guards. */
int helper_answer_read(const char *text, size_t n, char **ret_plan, struct strv *ret_guards,
                       struct err *e);
/* Of `guards` as many as the answer has room for (HELPER_LINE_MAX); without a path (NULL) it is
 * that of start. */
void helper_answer_write_plan(const char *plan_path, const struct strv *guards, struct buf *out);
void helper_answer_write_error(const char *message, struct buf *out);

enum helper_event {
    HELPER_STARTED,
    HELPER_EXEC_FAILED,
    HELPER_FAILED,
    HELPER_EXIT,
    HELPER_SIGNAL,
    HELPER_OVER, /* what the command left and was kept has ended, too */
    HELPER_TEXT, /* not an event: a line of bubblewrap's, in `message` */
};

/* Two lists of this size fit into a line however their names have to be written. */
#define HELPER_REMOVED_MAX 16
#define HELPER_NAME_MAX 128
/* Of the processes that were left, so many are named. */
#define HELPER_LEFT_MAX 16
/* The kernel's own limit of a process's name. */
#define HELPER_COMM_MAX 16

struct helper_left {
    uint32_t pid; /* as it is numbered inside */
    char name[HELPER_COMM_MAX];
};

struct helper_verdict {
    enum helper_event event;
    int value; /* exit code, signal number, errno or wrapper exit status */
    bool kept; /* with an end: what is left lives on, and `over` will follow */
    /* CLOCK_MONOTONIC: of `started` the moment before the command was executed, of an end the one
     * after it was reaped; 0 = not told. */
    uint64_t at_us;
    uint32_t background;
    struct helper_left left[HELPER_LEFT_MAX]; /* of `background`; pid 0 after the last */
    uint64_t cpu_us;
    uint64_t max_rss_kib;
    uint32_t oom_kills;
    char message[512];
    /* Paths relative to the workspace, cut at HELPER_NAME_MAX; "" after the last. */
    char removed[HELPER_REMOVED_MAX][HELPER_NAME_MAX];
    char created[HELPER_REMOVED_MAX][HELPER_NAME_MAX]; /* repositories */
    struct denial denials[DENIAL_MAX];                 /* rule "" after the last */
};

/* One control line without its newline. Never fails: what is not an event is HELPER_TEXT. */
void helper_verdict_read(const char *line, size_t n, struct helper_verdict *ret);
/* Append the line with its newline. */
void helper_verdict_write(const struct helper_verdict *v, struct buf *out);

/* {"op":"signal",...}: the signal number 1..64, or -EINVAL. */
int helper_signal_read(const char *line, size_t n);
void helper_signal_write(int signal, struct buf *out);

#endif
