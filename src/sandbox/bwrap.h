/* sandbox/bwrap: which bubblewrap is run.
 *
 * Theory. The program that builds the walls must not come from where a command can write. So the
 * fixed places of the system come first, PATH only after them, and a candidate is passed over when
 * it lies in the workspace, is not a plain executable file, or can be changed by anybody. An
 * operator may name one with CODESPACE_BWRAP_BIN; then nothing else is tried.
 *
 * Must not: run it to ask its version; that is the probe's business and costs a start each time.
 */
#ifndef CODESPACE_SANDBOX_BWRAP_H
#define CODESPACE_SANDBOX_BWRAP_H

#include "base/err.h"

/* Its absolute path in *ret (caller frees). `workspace` is the directory to avoid (NULL = none).
 * Errors: SANDBOX_UNAVAILABLE. */
int bwrap_find(const char *workspace, char **ret, struct err *e);

#endif
