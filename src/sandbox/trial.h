/* sandbox/trial: one real run of the sandbox whose command is our own report.
 * Must not: leave anything on disk, whoever is killed when, or a process; wait longer than told.
 */
#ifndef CODESPACE_SANDBOX_TRIAL_H
#define CODESPACE_SANDBOX_TRIAL_H

#include "base/err.h"
#include "sandbox/report.h"

#include <stdbool.h>

/* Prepare and run. Errors: SANDBOX_UNAVAILABLE with the words of who failed. */
int trial_run(bool inherited_proc, unsigned timeout_ms, struct report *ret, struct err *e);

/* Run `path` --version and take the first line of its output; "" when it does not answer. */
void trial_version(const char *path, unsigned timeout_ms, char *ret, size_t cap);

#endif
