/* sandbox/environ: the environment that a sandboxed command starts with.
 *
 * Theory. Nothing is inherited: the table of wire/view, what follows from the request (terminal,
 * identity, markers, git's trust in the workspace), then the request's own entries. Later wins and
 * a name stands once. Must not: read the helper's own environment.
 */
#ifndef CODESPACE_SANDBOX_ENVIRON_H
#define CODESPACE_SANDBOX_ENVIRON_H

#include "base/str.h"
#include "wire/helper.h"

#include <stdbool.h>

void environ_build(const struct helper_request *r, struct strv *ret);

/* The same for a command whose plan was made earlier: `base` is that plan's environment, the rest
 * is the command's. */
void environ_lay_over(const struct strv *base, bool tty, const char *cwd,
                      const struct strv *entries, struct strv *ret);

/* Its two halves: the copy, which can be made before there is a command, and the command's part, in
 * that copy. */
void environ_copy(const struct strv *base, struct strv *ret);
void environ_lay(struct strv *env, bool tty, const char *cwd, const struct strv *entries);

#endif
