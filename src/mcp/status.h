/* mcp/status: a process's status as members of an answer. exec_command, read_process,
 * process_status and list_processes tell it with the same names, and their schemas are made of the
 * same rows. */
#ifndef CODESPACE_MCP_STATUS_H
#define CODESPACE_MCP_STATUS_H

#include "base/jsonw.h"
#include "mcp/denials.h"
#include "run/runner.h"

/* Rows of an output schema for what status_write_end() writes. `always`: state is in every answer
 * of that tool. */
#define STATUS_END_ROWS(always)                                                                    \
    {"state", OUTPUT_STR, always, "running or exited."},                                           \
        {"exit_code", OUTPUT_INT, false, "Only when it exited by itself."},                        \
        {"signal", OUTPUT_OBJ, false, "number and name, when a signal ended it."},                 \
        {"termination", OUTPUT_STR, false,                                                         \
         "How it ended: exited, signaled, timeout, terminated, limit (silence), wrapper_failed "   \
         "(the sandbox broke), lost (not known)."},                                                \
        {"reason", OUTPUT_STR, false, "More about the end."},                                      \
        {"background", OUTPUT_INT, false, "Processes it left behind."},                            \
        {"background_pids", OUTPUT_OBJS, false,                                                    \
         "The first 16 of them, at its end: pid (as the command saw it) and name."},               \
        {"background_alive", OUTPUT_BOOL, false,                                                   \
         "Some of them still run (background: keep); terminate_process ends them. When false "     \
         "they were ended."},                                                                      \
        {"removed", OUTPUT_STRS, false, "Protected names it created, which were taken away."},     \
        {"created_repositories", OUTPUT_STRS, false,                                               \
         "Repositories it made; from the next command on they are protected."},                    \
        DENIALS_ROWS,                                                                              \
        {"stopped", OUTPUT_BOOL, false, "Stopped by a signal; CONT makes it go on."},              \
        {"output_dropped", OUTPUT_INT, false,                                                      \
         "Bytes between the head and the tail of its output that nobody can read any more."},      \
        {"output_failed", OUTPUT_STR, false, "Why its output could not be kept in full."},         \
        {"duration_ms", OUTPUT_INT, false, "From its start to its end."},                          \
        {"cpu_us", OUTPUT_INT, false, "Processor time of the whole command."},                     \
    {                                                                                              \
        "max_rss_kib", OUTPUT_INT, false, "Largest resident memory of one of its processes."       \
    }

/* state, and what applies of the rest; keys that do not apply are left out. */
void status_write_end(struct jsonw *w, const struct run_status *s);

/* All that is known of it, for process_status and list_processes. */
void status_write_all(struct jsonw *w, const struct run_status *s);

/* "linux-sandbox" or "none", as the public contract has it; "unknown" when it was lost with its
 * worker before that had told anything of it. */
const char *status_sandbox(const struct run_status *s);

/* Whose network a command has: "command" (its own, with a loopback of its own), "workspace" (shared
 * with other commands of its workspace), "host" (not sandboxed) or, as above, "unknown". */
const char *status_network_scope(const struct run_status *s);

#endif
