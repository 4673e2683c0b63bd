/* core/udiff: unified diffs as text: git's form and GNU diff's.
 *
 *   diff --git a/x b/x          git's header, with any of: old mode, new mode, new file mode,
 *                               deleted file mode, rename from/to, copy from/to, similarity index,
 *                               dissimilarity index, index
 *   --- a/x  or  /dev/null      a name ends at a TAB; what follows is a time. Names in quotes are
 *   +++ b/x  or  /dev/null      read as git writes them ("\303\251")
 *   @@ -1,2 +1,3 @@ anything    a hunk: exactly so many ' ', '-' and '+' lines follow
 *   \ No newline at end of file belongs to the line before it
 *
 * Text before the first header (a mail) and behind a mail's signature is passed over; anywhere else
 * a line that belongs to nothing is refused, since it may be a part of a hunk whose counts are
 * wrong.
 *
 * Names. Whether "a/" and "b/" are to be taken off is never guessed: a pair of names that differ in
 * their first component only says yes, a pair of equal names says no, a name whose other side is
 * /dev/null says yes when it begins with one of git's prefixes; when the sections of a patch
 * disagree, it is refused until the caller says how many components to take off.
 *
 * Sources: GNU diffutils' manual, "Detailed Unified"; git-diff(1), "Generating patch text with -p".
 *
 * Must not: look at files, or decide what a path may be; skip what it does not understand. Binary
 * patches, symbolic links and submodules are refused.
 */
#ifndef CODESPACE_CORE_UDIFF_H
#define CODESPACE_CORE_UDIFF_H

#include "core/hunk.h"

/* Most components that a caller may have taken off. */
#define UDIFF_STRIP_MAX 64

/* Parse n bytes into *ret, which borrows from them; the caller runs patch_doc_fini(). `strip` is a
 * number of components or PATCH_STRIP_AUTO. n is at most PATCH_INVERSE_MAX. Errors: INVALID_PATCH,
 * LIMIT_EXCEEDED; then *ret is untouched. */
int udiff_parse(const char *text, size_t n, int strip, struct patch_doc *ret, struct err *e);

/* Does the text begin as one? Its first line that is not blank decides. */
bool udiff_begins(const char *text, size_t n);

#endif
