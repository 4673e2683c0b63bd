/* sys/leaf: a fresh private directory for a socket (R4), or for what lives as long as its runner.
 *
 * Theory. The directory is made 0700 by mkdir itself, under a parent that is never chmodded, with a
 * name that nobody can know before. `/`, `/tmp`, `/var/tmp` and the home directory are refused as
 * the parent that somebody named: they are mistakes (a trailing slash, an empty variable), and what
 * is meant is a directory below them.
 *
 * Whoever uses the directory holds it (a shared lock, which goes with the process). One that nobody
 * holds was left by processes that were all killed at once; the next one to make a directory beside
 * it takes it away.
 *
 * Must not: use a directory that was there already, or sweep one that is not ours or held.
 */
#ifndef CODESPACE_SYS_LEAF_H
#define CODESPACE_SYS_LEAF_H

#include <stdbool.h>

/* Is this, made canonical, one of the refused ones? */
bool leaf_is_forbidden(const char *parent);

/* A leaf that nobody holds is swept when it is so old: one that was just made is held soon. */
#define LEAF_SWEEP_AGE_S 60

/* Make a fresh directory under `parent`, which is made (0700) when it is missing. NULL = TMPDIR, or
 * /tmp. 0 and *ret_path (caller frees, and removes the directory), or -errno: -EPERM a forbidden
 * parent, -EINVAL one that is not absolute. */
int leaf_make(const char *parent, char **ret_path);

/* Say that the leaf at `path` is in use, for as long as the descriptor is open. It or -errno. */
int leaf_hold(const char *path);

/* Remove the leaves of our user under `parent` that nobody holds and that are so old. leaf_make()
 * does it by itself. */
void leaf_sweep(const char *parent, unsigned min_age_s);

#endif
