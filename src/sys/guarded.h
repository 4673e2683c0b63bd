/* sys/guarded: a path that is to stay absent, or to stay one link, looked at and put right.
 *
 * Theory. The path is looked up beneath a root's descriptor, and nothing on the way is followed. A
 * directory on the way that has become a link, so that the path appears behind it, is taken away
 * itself. Process 1 inside (sandbox/guard) and the runner outside (run/sweep) do the same thing, so
 * it is one.
 *
 * Must not: follow a link, touch what is outside of the root, or keep a descriptor for every level
 * of a tree.
 */
#ifndef CODESPACE_SYS_GUARDED_H
#define CODESPACE_SYS_GUARDED_H

#include <stdbool.h>

/* Whether `path` (relative to root_fd, normal) is as it was: absent when `link` is "", else a
 * symbolic link with that text. What cannot be looked at counts as absent. */
bool guarded_is_right(int root_fd, const char *path, const char *link);

/* Make it so. `passes` as for rmtree(). With `force` a directory of ours whose permissions are in
 * the way gets them for a moment. *ret_touched is set when it was not right. 0 or -errno. */
int guarded_put_right(int root_fd, const char *path, const char *link, unsigned passes, bool force,
                      bool *ret_touched);

#endif
