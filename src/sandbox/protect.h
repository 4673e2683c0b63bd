/* sandbox/protect: the names directly under a writable workspace that stay as they are (H3).
 *
 * Theory. A name that exists becomes a read-only mount point: it can be neither written nor
 * renamed. A name that does not exist gets no mount point, because that would have to be made on
 * the host and would stay there when we are killed (A7-A9); it is handed to the guard inside
 * (sandbox/guard), as is a symbolic link (A14), which cannot be mounted over by itself. Where a
 * link or a `.git` file points into a writable place, the target is protected too, and every
 * directory on the way becomes a mount point of its own, so that none can be renamed away (A1, A2).
 *
 * Must not: create anything, or fail because one entry is odd.
 */
#ifndef CODESPACE_SANDBOX_PROTECT_H
#define CODESPACE_SANDBOX_PROTECT_H

#include "sandbox/layout.h"
#include "wire/view.h"

/* Add the mounts to `l`, which must hold the workspace and all writable mounts, and the guarded
 * names to p->guards. */
void protect_add(const struct view *v, struct layout *l, struct plan *p);

#endif
