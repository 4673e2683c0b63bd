/* core/exact: the hunks of a unified diff, applied as the bytes they are.
 *
 * Theory. A unified diff says everything: each line with its CR, whether the last line has an
 * ending, and where it stood. So its hunks are first taken at their word: the old lines are
 * compared as bytes, the new ones are written as bytes. The place is the one that the header says,
 * if its two numbers agree with each other and the lines stand there; else the only place in the
 * file where they stand, which is told as fuzzy. Two such places are refused: the nearest of them
 * could be the wrong one. What fits nowhere as bytes is tried with tolerance by core/hunk.
 *
 * Must not: tolerate anything.
 */
#ifndef CODESPACE_CORE_EXACT_H
#define CODESPACE_CORE_EXACT_H

#include "core/hunk.h"

/* A hunk stands nowhere; nothing was appended. */
#define EXACT_MISS 1

/* Apply to the n bytes of the file `path` (for messages) and append the result to `out`. *ret_moved
 * becomes true when some place is not the one in its header. 0, EXACT_MISS, or -1: INVALID_PATCH
 * (two places), LIMIT_EXCEEDED. */
int exact_apply(const char *path, const char *bytes, size_t n, const struct hunk *hunks,
                size_t n_hunks, struct buf *out, uint64_t *work, bool *ret_moved, struct err *e);

/* exact_apply(), then hunks_apply() for what it misses; *ret_fuzzy as in both. */
int exact_or_tolerant(const char *path, const char *bytes, size_t n, const struct hunk *hunks,
                      size_t n_hunks, struct buf *out, uint64_t *work, bool *ret_fuzzy,
                      struct err *e);

#endif
