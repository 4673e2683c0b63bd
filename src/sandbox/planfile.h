/* sandbox/planfile: the plan file on the way from `prepare` through `run` to process 1.
 * Must not: be opened by path more than once (R11).
 */
#ifndef CODESPACE_SANDBOX_PLANFILE_H
#define CODESPACE_SANDBOX_PLANFILE_H

#include "base/err.h"
#include "wire/plan.h"

/* Open and remove the file at `path`. The descriptor, or -1; errors: PROCESS_SPAWN_FAILED. */
int planfile_take(const char *path, struct err *e);

/* Read the plan behind `fd` from its beginning. Errors: PARSE_ERROR. */
int planfile_read(int fd, struct plan *ret, struct err *e);

#endif
