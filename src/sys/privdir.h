/* sys/privdir: a private directory with one private file in it, for handing something to a later
 * process of the same user by path.
 *
 * Theory. mkdtemp makes the directory 0700, so nobody else can plant, swap or read what is inside.
 * The taker trusts none of that: it opens without following links, checks owner, mode, type and
 * link count, and removes file and directory before the content is looked at, so a plan is used at
 * most once and a crash later leaves nothing behind (R11).
 *
 * Must not: follow a symbolic link at the leaf, or remove what did not pass the checks.
 */
#ifndef CODESPACE_SYS_PRIVDIR_H
#define CODESPACE_SYS_PRIVDIR_H

#include <stddef.h>

/* Write n bytes to a fresh file `name` (0600) in a fresh directory `parent`/`prefix`XXXXXX (0700).
 * 0 and *ret_path (caller frees), or -errno with nothing left behind. */
int privdir_write(const char *parent, const char *prefix, const char *name, const void *data,
                  size_t n, char **ret_path);

/* Remove what privdir_write() made and nobody will take; its directory too, when it is empty then.
 */
void privdir_discard(const char *path);

/* Open `path` for reading and remove it, and its directory when that begins with `prefix`. The
 * descriptor and *ret_size, or -errno: -EINVAL path not absolute, -EPERM not private (owner, mode,
 * type, links), -ELOOP a symbolic link, -EFBIG more than max bytes. */
int privdir_take(const char *path, const char *prefix, size_t max, size_t *ret_size);

#endif
