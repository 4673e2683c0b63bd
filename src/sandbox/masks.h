/* sandbox/masks: what process 1 lays over the view that bubblewrap built.
 *
 * Theory. bubblewrap reads the whole mount table again after each mount, so a view with n mounts
 * costs n times n, and it takes at most 9000 arguments. What covers or fixes a path that is there
 * already needs nothing of bubblewrap: process 1 does it by the kernel's mount interface, a few
 * system calls a path, before it gives its last capability away (H1). Each place is opened without
 * following links and mounted on by descriptor. Afterwards nothing inside can undo it: no
 * capability is left and the filter refuses the mount family.
 *
 * bubblewrap may have put us into a user namespace that does not own the mount namespace; then we
 * make one that it does.
 *
 * Must not: open anything by a path that a link could lead elsewhere, or keep a mount's descriptor.
 */
#ifndef CODESPACE_SANDBOX_MASKS_H
#define CODESPACE_SANDBOX_MASKS_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

/* So few that bubblewrap is faster. */
size_t masks_worth(bool namespaces);

/* Whether this kernel has what masks_lay() needs, and lets us call it. */
bool masks_possible(void);

/* Lay them in their order (struct plan.masks). Needs CAP_SYS_ADMIN. The caller has made sure that
 * it is process 1 of a sandbox: elsewhere the host would be covered. Errors: PATH_PROTECTED with
 * the path that is not as it was planned, SANDBOX_UNAVAILABLE. */
int masks_lay(const struct strv *masks, struct err *e);

#endif
