/* sys/path: opening what a workspace-relative path names, and nothing else.
 *
 * Theory. A path from outside is text until it is opened, and is opened once: from the root's
 * descriptor, by openat2 with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS, so
 * the kernel itself guarantees that nothing outside was reached, whatever races go on. Where
 * openat2 is missing (or a filter denies it) a walk component by component with O_NOFOLLOW takes
 * its place. O_NONBLOCK keeps a FIFO from hanging us; who wants a regular file checks the type
 * after opening.
 *
 * Must not: return a descriptor for anything reached through a symbolic link, even one that stays
 * inside. Must not: use the path again after it was opened.
 */
#ifndef CODESPACE_SYS_PATH_H
#define CODESPACE_SYS_PATH_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#define PATH_LEN_MAX 4096
#define PATH_COMPONENTS_MAX 256

/* Lexical rule: relative, not empty, no NUL (by type), '\\' is a separator like '/', "." dropped,
 * ".." resolved but never above the root. Writes at most cap bytes to `out` ("" for the root
 * itself). 0, -EXDEV (absolute or leaves the root), -ENAMETOOLONG, -EINVAL (empty). */
int path_normalise(const char *path, char *out, size_t cap);

/* Open `path` (normalised; "" is the root) beneath root_fd with `flags` (O_CLOEXEC,
 * O_NONBLOCK and O_NOCTTY are added) and `mode` for O_CREAT. A descriptor, or -errno; -ELOOP when a
 * component is a symbolic link, -EXDEV when resolution would leave the root. */
int path_open_beneath(int root_fd, const char *path, int flags, mode_t mode);

/* Open for reading and check that it is a regular file; *ret_st is its fstat. -EISDIR for a
 * directory, -ENXIO for any other special file. One openat2 and one fstat: the type is looked at
 * after opening, so a FIFO is opened (never waited for) and a device that an operator put into a
 * workspace is opened read-only, without becoming a controlling terminal, and closed at once. */
int path_open_regular(int root_fd, const char *path, struct stat *ret_st);

/* Open (O_PATH) the directory that holds the last component; *ret_leaf points into `path`. */
int path_open_parent(int root_fd, const char *path, const char **ret_leaf);

/* Open (O_PATH) the directory `path` and make it and its missing parents with `mode` on the way.
 * *ret_existing is the length of the part of `path` that was there before (strlen(path) when all
 * was); it is set also when -errno is returned, so that a caller can take away what was made. */
int path_make_directory(int root_fd, const char *path, mode_t mode, size_t *ret_existing);

/* For tests and for the fallback test: never use openat2 in this process from now on. */
void path_force_walk(void);

#endif
