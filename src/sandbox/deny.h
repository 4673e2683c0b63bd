/* sandbox/deny: patterns of files that are not to be read, as masks.
 *
 * Theory. A pattern means what is there when the plan is made; what a command makes later by such a
 * name is its own. The whole workspace is looked at once for all patterns, within a limit that
 * refuses rather than forgets. A directory that matches, or of which a pattern takes everything
 * ("keys/" and "keys/" with two stars), becomes one mask, so the cost follows the number of matches
 * and not what lies below them (A22). Where a pattern depends on the directories above its match,
 * those are fixed, so that the next command does not find the file under another name.
 *
 * Must not: follow a link; what a link leads to is matched under its own name.
 */
#ifndef CODESPACE_SANDBOX_DENY_H
#define CODESPACE_SANDBOX_DENY_H

#include "sandbox/layout.h"
#include "wire/view.h"

/* Entries of a workspace that patterns are tried on; about 1 us each. */
#define DENY_SCAN_MAX 1000000u

/* Errors: INVALID_COMMAND with the pattern, LIMIT_EXCEEDED. */
int deny_add(const struct view *v, struct layout *l, struct err *e);

#endif
