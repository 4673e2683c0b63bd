/* run/local: the runner that owns its processes in this program (the in-process home).
 *
 * Theory. One libuv loop thread. A command is started by the helper (wire/helper) and watched by
 * pidfd, pipes or PTY, a control socket and a timer. Its output goes into its log
 * (run/outlog). Its life is the table of run/process. Must not: block the loop, fork (posix_spawn
 * is vfork-like, so a large server spawns as fast as a small one).
 */
#ifndef CODESPACE_RUN_LOCAL_H
#define CODESPACE_RUN_LOCAL_H

#include "run/runner.h"

#include <uv.h>

struct local_options {
    const char *helper_path;          /* NULL = no helper: the probe says PROBE_NO_HELPER */
    uint64_t timeout_ms;              /* default limit; 0 = RUN_TIMEOUT_DEFAULT_MS */
    uint64_t max_processes;           /* 0 = RUN_PROCESSES_DEFAULT */
    uint64_t max_workspace_processes; /* of one workspace; 0 = as many as the runner's */
    const char *spill_dir;            /* for output beyond the ring; NULL = see run/spill */
    uint64_t spill_bytes;             /* per process; 0 = RUN_SPILL_BYTES */
    bool warm_off;  /* every command starts cold (run/warm); so with CODESPACE_WARM=0 */
    bool spill_off; /* keep the ring only */
};

/* Never fails. The loop is borrowed; the runner's handles close themselves on runner_free(), so run
 * the loop until it is empty after that. */
struct runner *local_runner_new(uv_loop_t *loop, const struct local_options *options);

/* Called at the end of every process that had started, with the last news of it (borrowed); twice
 * when it left something that lives on: at the command's end, and when that has ended, too. For
 * the worker. */
void local_runner_on_exit(struct runner *r,
                          void (*exited)(void *user, const struct run_status *status), void *user);

/* CODESPACE_LINUX_SANDBOX_BIN when set (even when it is no file: then there is no helper, R9), else
 * codespace-linux-sandbox beside this executable. Caller frees; NULL = none. */
char *local_find_helper(void);

#endif
