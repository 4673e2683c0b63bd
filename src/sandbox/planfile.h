/* sandbox/planfile: the plan file on the way from `prepare` through `run` to process 1; or from
 * `start` to process 1, in memory.
 * Must not: be opened by path more than once (R11).
 */
#ifndef CODESPACE_SANDBOX_PLANFILE_H
#define CODESPACE_SANDBOX_PLANFILE_H

#include "base/err.h"
#include "wire/plan.h"

/* Open and remove the file at `path`. The descriptor, or -1; errors: PROCESS_SPAWN_FAILED. */
int planfile_take(const char *path, struct err *e);

/* Put the plan into a memory file, and where its arguments are into p->args_at. The descriptor
 * (caller closes) or -errno. */
int planfile_in_memory(struct plan *p);

/* Read the plan behind `fd` from its beginning. Errors: PARSE_ERROR. */
int planfile_read(int fd, struct plan *ret, struct err *e);

#endif
