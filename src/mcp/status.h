/* mcp/status: a process's status as members of an answer. exec_command, read_process and
 * process_status tell it with the same names. */
#ifndef CODESPACE_MCP_STATUS_H
#define CODESPACE_MCP_STATUS_H

#include "base/jsonw.h"
#include "run/runner.h"

/* state, and once it has ended: exit_code or signal, termination, reason, background, removed. Keys
 * that do not apply are left out. */
void status_write_end(struct jsonw *w, const struct run_status *s);

/* "linux-sandbox" or "none", as the public contract has it. */
const char *status_sandbox(const struct run_status *s);

#endif
