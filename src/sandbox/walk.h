/* sandbox/walk: every entry below a directory, the shallow ones first.
 *
 * Theory. Breadth first, so that a limit cuts off the depth of the tree and not a part of its top.
 * Types come with the entries, so nothing is looked at that is not a directory to enter. Links are
 * never followed; a directory that cannot be read is passed over, unless the visitor wants to know:
 * whoever owns it can open it later. Memory is bounded by the limit.
 *
 * With listings (sandbox/listings) a directory that has not changed is not read again. It is looked
 * at, by its name in its parent, whose descriptor was opened beneath the root without following a
 * link; so no part of the path can lead elsewhere, and a link, a directory put in its place, or one
 * mounted on it is told by device, inode and ctime. Whatever is not certain is read. What is told,
 * and in which order, is the same.
 *
 * Must not: fail because a tree changes under it.
 */
#ifndef CODESPACE_SANDBOX_WALK_H
#define CODESPACE_SANDBOX_WALK_H

#include "sandbox/listings.h"

#include <stdbool.h>
#include <stddef.h>

/* Called for each entry: `path` is relative to the root. Whether to enter it, when it is a
 * directory. */
typedef bool (*walk_visit)(void *arg, const char *path, bool is_directory);

/* 0 when all was seen, 1 when `max` entries were seen and there are more, or -errno for the root.
 */
int walk_tree(const char *root, size_t max, walk_visit visit, void *arg);

/* Called for a directory that was to be entered and cannot be read. */
typedef void (*walk_closed)(void *arg, const char *path);

/* As walk_tree(). */
int walk_tree_closed(const char *root, size_t max, walk_visit visit, walk_closed closed, void *arg);

/* The same for a visitor that asks for directories and entries called LISTINGS_NAME or
 * LISTINGS_HEAD only: of the others some are told and some are not. `known` may be NULL. */
int walk_known(const char *root, size_t max, struct listings *known, walk_visit visit, void *arg);

#endif
