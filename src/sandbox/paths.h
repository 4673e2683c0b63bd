/* sandbox/paths: relations between absolute, normal paths, as text.
 * Must not: look at the file system.
 */
#ifndef CODESPACE_SANDBOX_PATHS_H
#define CODESPACE_SANDBOX_PATHS_H

#include <stdbool.h>

/* `path` is `dir` or lies below it. "/a" holds "/a/b" but not "/ab". */
bool paths_within(const char *path, const char *dir);

/* Order in which every directory comes right before all that lies below it. */
int paths_compare(const char *a, const char *b);

#endif
