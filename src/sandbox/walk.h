/* sandbox/walk: every entry below a directory, the shallow ones first.
 *
 * Theory. Breadth first, so that a limit cuts off the depth of the tree and not a part of its top.
 * Types come with the entries, so nothing is looked at that is not a directory to enter. Links are
 * never followed; a directory that cannot be read is passed over, because the command has the same
 * rights. Memory is bounded by the limit.
 *
 * Must not: fail because a tree changes under it.
 */
#ifndef CODESPACE_SANDBOX_WALK_H
#define CODESPACE_SANDBOX_WALK_H

#include <stdbool.h>
#include <stddef.h>

/* Called for each entry: `path` is relative to the root. Whether to enter it, when it is a
 * directory. */
typedef bool (*walk_visit)(void *arg, const char *path, bool is_directory);

/* 0 when all was seen, 1 when `max` entries were seen and there are more, or -errno for the root.
 */
int walk_tree(const char *root, size_t max, walk_visit visit, void *arg);

#endif
