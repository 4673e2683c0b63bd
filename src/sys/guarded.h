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

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

/* A path is right when it is as it was: absent when `link` is "", else a symbolic link with that
 * text. What cannot be looked at is not right: whoever closed the way to it may have put something
 * there before.
 *
 * Of pairs, an absolute path and a link or "", the first at or after pair `from` that is not right;
 * their number when all are. A directory that holds several in a row is opened once, so this is for
 * when nobody inside changes what is on the way. */
size_t guarded_find_wrong(int root_fd, const struct strv *pairs, size_t from);

/* Make `path` (relative to root_fd, normal) right. `passes` as for rmtree(). With `force`
 * directories of ours whose permissions are in the way get them for a moment; what lies behind
 * somebody else's closed directory is out of our reach, and was out of the command's: 0.
 * *ret_touched is set when it was not right. 0 or -errno. */
int guarded_put_right(int root_fd, const char *path, const char *link, unsigned passes, bool force,
                      bool *ret_touched);

/* Is the way to `path` closed to us by a directory's permissions? */
bool guarded_is_closed(int root_fd, const char *path);

/* Is it closed by a directory of somebody else's? Then nobody with our rights gets there, nor can
 * he open it. */
bool guarded_is_out_of_reach(int root_fd, const char *path);

#endif
