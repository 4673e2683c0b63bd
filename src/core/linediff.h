/* core/linediff: which lines of two files are not common to both.
 *
 * Theory. Myers' O(ND) search for the middle of a shortest edit script, divide and conquer, so the
 * memory is linear. What makes it bounded: the search for one middle stops after a number of
 * differences that falls with the size of the files and with what was spent (LINEDIFF_WORK_MAX),
 * and then goes on from the point that came furthest. The result is always a correct difference;
 * for very different large files it is not the shortest one. Source: E. W. Myers, "An O(ND)
 * Difference Algorithm and Its Variations", 1986.
 *
 * Must not: look at anything but equality of whole lines, endings included.
 */
#ifndef CODESPACE_CORE_LINEDIFF_H
#define CODESPACE_CORE_LINEDIFF_H

#include "core/lines.h"

/* Steps for all files of one patch together, about: some hundred milliseconds. */
#define LINEDIFF_WORK_MAX (1u << 26)

/* Both of lines_init_raw(). *budget is what is left of LINEDIFF_WORK_MAX and becomes less; when it
 * is used up the answer is quick and rough. removed[i] becomes true for lines of `a` that go,
 * added[i] for lines of `b` that come; both zeroed by the caller. The others are common, in order.
 */
void linediff(const struct lines *a, const struct lines *b, bool *removed, bool *added,
              uint64_t *budget);

#endif
