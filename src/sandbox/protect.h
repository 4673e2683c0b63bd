/* sandbox/protect: paths in writable places that stay as they are (H3).
 *
 * Theory. A path that exists becomes a read-only mount point: it can be neither written nor
 * renamed, and every directory on the way becomes a mount point of its own, so that none can be
 * renamed away (A1, A2). A path that does not exist gets no mount point, because that would have to
 * be made on the host and would stay there when we are killed (A7-A9); it is handed to the guard
 * inside (sandbox/guard), as is a symbolic link (A14), which cannot be mounted over by itself; what
 * a link leads to is protected as well, and every link on the way there.
 *
 * Must not: create anything, or fail because one entry is odd.
 */
#ifndef CODESPACE_SANDBOX_PROTECT_H
#define CODESPACE_SANDBOX_PROTECT_H

#include "sandbox/layout.h"
#include "wire/view.h"

/* Protect one absolute path. Where it is not in a writable place there is nothing to do. */
void protect_path(const char *path, struct layout *l, struct plan *p);

/* Protect the link at `path` and every link on the way that it names; where it leads, one step on
 * (caller frees): what stands there is still to be protected. NULL when that is nowhere, or is
 * being protected already. */
char *protect_link(const char *path, struct layout *l, struct plan *p);

/* `text` with its directories resolved and its last name as it is; NULL when they are not there. */
char *protect_place(const char *text);

/* Protect what the view asks for: its list, and every repository of the workspace. `l` must hold
 * the workspace and all writable mounts. */
void protect_add(const struct view *v, struct layout *l, struct plan *p);

#endif
