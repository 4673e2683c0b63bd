/* sandbox/codex_view: what the entries of a Codex permission profile mean as a view of ours.
 *
 * Theory. The policy's directory is the workspace; every other entry is a mount, a hidden path or a
 * pattern. Our layout puts them into tree order, which gives that program's rule that the deepest
 * entry decides. Entries for what does not exist are passed over as there.
 *
 * Must not: widen: what cannot be said in a view is refused.
 */
#ifndef CODESPACE_SANDBOX_CODEX_VIEW_H
#define CODESPACE_SANDBOX_CODEX_VIEW_H

#include "base/err.h"
#include "wire/codex.h"
#include "wire/view.h"

#include <stdbool.h>

/* The whole disk may be written and nothing narrows that. */
bool codex_view_full_write(const struct codex_profile *p);

/* The whole disk may be read, nothing is hidden and nothing may be written. */
bool codex_view_plain_read(const struct codex_profile *p);

/* `policy_cwd` is absolute. Errors: INVALID_COMMAND; *ret is to be freed in any case. */
int codex_view_make(const struct codex_profile *p, const char *policy_cwd, struct view *ret,
                    struct err *e);

/* Where the command starts, canonical: as told, or where we are, or the policy's directory. */
char *codex_view_cwd(const char *command_cwd, const char *policy_cwd);

#endif
