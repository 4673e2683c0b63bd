/* wire/helper: the small JSON protocol between a runner and codespace-linux-sandbox (R10).
 *
 * Theory. `prepare` reads one request on stdin and answers one line on stdout; `run --plan PATH`
 * is what the runner then starts as the managed process. While it runs, a stream socket given by
 * `--control-fd N` carries lines both ways: verdicts from our process 1 inside, text from
 * bubblewrap, requests from the runner. Closing the runner's end ends the sandbox, whatever it is
 * doing. The runner knows only this file of the sandbox.
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
 *    "proc":"fresh"|"inherited","devices":["/dev/dri/renderD128"],"debug":false,
 *    "limits":{"memory":N,"pids":N,"cpu_percent":N,"cpu_seconds":N,"file_size":N,"open_files":N},
 *    "cgroup_parent":"/sys/fs/cgroup/..."}
 *   "zygote":true asks for a sandbox that stays and takes commands (wire/warm); its argv stands for
 *   nothing. It is refused where only a fresh view is a whole one.
 * Answer:  {"type":"prepared","plan_path":"/..."}  exit 0
 *     or:  {"type":"error","message":"..."}         exit 1
 *
 * Control lines from the sandbox (one JSON object a line; a line that does not start with '{' is
 * text of bubblewrap and belongs into the reason of a wrapper failure):
 *   {"event":"started"}                                  the view stands, the command is about to
 * exec
 *   {"event":"exec_failed","errno":2}                    the command itself could not be executed
 *   {"event":"failed","code":N,"message":"..."}          wrapper failure, N from the exit table
 *   {"event":"exit","code":N, ...}                       the command exited with N
 *   {"event":"signal","signal":N, ...}                   the command died of signal N
 *     the last two with "background":N (processes that were left and killed),
 *     "cpu_us":N, "max_rss_kib":N, "removed":[".git"] (protected names the command created,
 *     taken away again), "created_repositories":["sub/.git"] (new ones that the command left)
 * Control lines to the sandbox:
 *   {"op":"signal","signal":15}                          to the command's process group
 * A socket that closes without exit, signal, exec_failed or failed means: the wrapper died.
 *
 * Must not: be trusted by either side. Both ends bound every length.
 */
#ifndef CODESPACE_WIRE_HELPER_H
#define CODESPACE_WIRE_HELPER_H

#include "base/buf.h"
#include "base/err.h"
#include "wire/view.h"

#include <stdbool.h>
#include <stdint.h>

#define HELPER_PROTOCOL 1

/* A whole request: argv and env may be large (E33), the kernel's own limit is 2 MiB by default. */
#define HELPER_REQUEST_MAX (4u << 20)
/* An answer or a control line. */
#define HELPER_LINE_MAX 16384u
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
};

/* Read {"memory":N,...} into *ret; errors carry `code`. */
struct json_object;
int helper_limits_read(struct json_object *obj, const char *where, struct helper_limits *ret,
                       enum err_code code, struct err *e);

struct helper_request {
    struct view view;
    char *cwd; /* absolute, inside the view */
    enum helper_network network;
    bool tty;
    bool zygote; /* no command: take commands later (wire/warm); argv stands for nothing */
    bool debug;  /* ptrace and its like work inside */
    struct helper_limits limits;
    char *cgroup_parent; /* directory in which a group is made; NULL = none */
    struct strv argv;
    struct strv env; /* K=V, on top of the defaults; later wins */
};

void helper_request_fini(struct helper_request *r);

/* Append the request as one JSON document. */
void helper_request_write(const struct helper_request *r, struct buf *out);

/* Parse and check: protocol, absolute paths, counts, non-empty argv[0], no NULs. Members that are
 * absent get the defaults of wire/view. Errors: INVALID_COMMAND with the member's name. */
int helper_request_read(const char *text, size_t n, struct helper_request *ret, struct err *e);

/* The answer of prepare. 0: *ret_plan is the path (caller frees). -1: the helper's own message as
 * PROCESS_SPAWN_FAILED, or that the answer was not understood. */
int helper_answer_read(const char *text, size_t n, char **ret_plan, struct err *e);
void helper_answer_write_plan(const char *plan_path, struct buf *out);
void helper_answer_write_error(const char *message, struct buf *out);

enum helper_event {
    HELPER_STARTED,
    HELPER_EXEC_FAILED,
    HELPER_FAILED,
    HELPER_EXIT,
    HELPER_SIGNAL,
    HELPER_TEXT, /* not an event: a line of bubblewrap's, in `message` */
};

/* Two lists of this size fit into a line however their names have to be written. */
#define HELPER_REMOVED_MAX 16
#define HELPER_NAME_MAX 128

struct helper_verdict {
    enum helper_event event;
    int value; /* exit code, signal number, errno or wrapper exit status */
    uint32_t background;
    uint64_t cpu_us;
    uint64_t max_rss_kib;
    char message[512];
    /* Paths relative to the workspace, cut at HELPER_NAME_MAX; "" after the last. */
    char removed[HELPER_REMOVED_MAX][HELPER_NAME_MAX];
    char created[HELPER_REMOVED_MAX][HELPER_NAME_MAX]; /* repositories */
};

/* One control line without its newline. Never fails: what is not an event is HELPER_TEXT. */
void helper_verdict_read(const char *line, size_t n, struct helper_verdict *ret);
/* Append the line with its newline. */
void helper_verdict_write(const struct helper_verdict *v, struct buf *out);

/* {"op":"signal",...}: the signal number 1..64, or -EINVAL. */
int helper_signal_read(const char *line, size_t n);
void helper_signal_write(int signal, struct buf *out);

#endif
