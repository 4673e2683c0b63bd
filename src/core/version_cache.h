/* core/version_cache: the versions of files that were hashed before, so that reading a window of a
 * large file again does not read all of it.
 *
 * Theory. A file that has the same device, inode, size, and times of content and of inode as when
 * it was hashed has the same bytes: the kernel sets the last of these and nobody can set it back.
 * The clock behind it is coarse, so a file is only remembered when its times lie back long enough
 * that a later write must change them. A fixed number of entries, each place for a few files, the
 * oldest goes. Any thread may ask.
 *
 * Must not: be asked about files of file systems without such times (a pseudo file has size 0 and
 * is never remembered).
 */
#ifndef CODESPACE_CORE_VERSION_CACHE_H
#define CODESPACE_CORE_VERSION_CACHE_H

#include "core/version.h"

#include <stdbool.h>
#include <sys/stat.h>

/* Files that are remembered; 120 bytes each. */
#define VERSION_CACHE_MAX 2048u

struct version_cache;

struct version_cache *version_cache_new(void);
void version_cache_free(struct version_cache *c);

/* True and *ret when the version of that file is known. */
bool version_cache_get(struct version_cache *c, const struct stat *st, char ret[FILES_VERSION_LEN]);

/* Remember: *st was the file's both before and after it was hashed. */
void version_cache_put(struct version_cache *c, const struct stat *st, const char *version);

#endif
