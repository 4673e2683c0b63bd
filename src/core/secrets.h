/* core/secrets: which secret places of this host a workspace's view would show, so that they are
 * hidden.
 *
 * Theory. The tables of wire/view say where secrets usually lie. A place of the tables is hidden
 * when an extra mount or the workspace itself would show it, and not when the operator named the
 * place itself, or something in it, as root or mount: naming it is the permission. The operator's
 * own `hide` list is added always. The result is one list of absolute paths that both the sandbox
 * and the file tools obey (A27). What only "read": "all" would show is not in it: the helper, which
 * applies the same tables to the platform and to the whole file system, hides it, and the file
 * tools do not reach it.
 *
 * Runs once at load, because it looks at the host: whose homes there are.
 * Must not: shorten the list silently; more than VIEW_PATHS_MAX places is an error.
 */
#ifndef CODESPACE_CORE_SECRETS_H
#define CODESPACE_CORE_SECRETS_H

#include "base/err.h"
#include "core/registry.h"

/* Fill ws->hidden from ws->hide, root, mounts and read. Errors: CONFIG_INVALID. */
int secrets_find(struct workspace *ws, struct err *e);

#endif
