/* sandbox/scope: a view, resolved against the file system as it is now.
 *
 * Theory. The request says what a command may see; this decides what that means on this host:
 * which directories of the platform exist and which are links (a usr-merged /bin stays a link),
 * what is protected, what is hidden. It may refuse a view that would not hold; it never widens
 * one. Must not: create anything on the host.
 */
#ifndef CODESPACE_SANDBOX_SCOPE_H
#define CODESPACE_SANDBOX_SCOPE_H

#include "base/err.h"
#include "wire/plan.h"
#include "wire/view.h"

/* Where HOME is inside: in the private /tmp, or in the private /dev/shm when /tmp is the host's. */
#define SCOPE_HOME "/tmp/home"
#define SCOPE_HOME_SHARED_TMP "/dev/shm/home"

/* Append the mounts to p->args and p->sources, the guarded names to p->guards. Errors:
 * INVALID_COMMAND with the path and the rule, LIMIT_EXCEEDED. */
int scope_build(const struct view *v, struct plan *p, struct err *e);

#endif
