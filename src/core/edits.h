/* core/edits: an exact edit: so many places of these bytes become those bytes.
 *
 * Theory. No lines, no tolerance, no patterns: `old` must occur exactly `count` times, counted from
 * the front without overlap, or nothing changes and the answer tells how often it does occur and
 * where the nearest look-alike is. An empty `old` stands for the content of an empty or missing
 * file, and for nothing else. "$&" and "\1" in the replacement are bytes like others.
 *
 * Must not: decode; take more than linear time.
 */
#ifndef CODESPACE_CORE_EDITS_H
#define CODESPACE_CORE_EDITS_H

#include "core/patch.h"

/* Apply to the n bytes of the file `path` (for messages), append the result to `out`. Errors:
 * INVALID_PATCH, LIMIT_EXCEEDED. */
int edit_apply(const char *path, const char *bytes, size_t n, const struct patch_edit *edit,
               struct buf *out, struct err *e);

#endif
