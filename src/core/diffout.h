/* core/diffout: the difference of two contents as one file of a unified diff, in git's form.
 *
 * Theory. Bytes, not text: what core/udiff reads back gives exactly the second content from the
 * first, whatever they hold. Three lines of context, as git and diff write, so that git apply and
 * patch take it too. Names with a byte that is not plain are quoted as git quotes them.
 *
 * Must not: leave anything out; what would be too long is an error.
 */
#ifndef CODESPACE_CORE_DIFFOUT_H
#define CODESPACE_CORE_DIFFOUT_H

#include "base/buf.h"
#include "core/lines.h"

#include <sys/stat.h>

#define DIFFOUT_CONTEXT 3

struct diff_side {
    const char *path;  /* NULL: the file is not there */
    struct text bytes; /* below 4 GiB */
    mode_t mode;       /* only the executable bits count */
};

/* Append the section; nothing when the sides do not differ. Two paths that differ are a rename. 0,
 * or -EFBIG when `out` would have more than `max` bytes or a side has more lines than LINES_MAX.
 * *budget as in linediff(). */
int diffout_write(struct buf *out, const struct diff_side *old, const struct diff_side *new,
                  size_t max, uint64_t *budget);

#endif
