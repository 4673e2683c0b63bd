/* core/udiff_head: what the header lines of one file of a unified diff say, and what they mean
 * together: which path, which kind of change, which mode.
 *
 * Must not: be used by others than core/udiff.
 */
#ifndef CODESPACE_CORE_UDIFF_HEAD_H
#define CODESPACE_CORE_UDIFF_HEAD_H

#include "core/hunk.h"

/* A name as written, without quotes; NULL = not given. */
struct udiff_head {
    size_t line; /* of the patch */
    bool git;
    char *both[2]; /* of "diff --git", when that line says them for certain */
    char *name[2]; /* of "---" and "+++" */
    bool null[2];  /* ... when they are /dev/null, or a time that means it */
    char *from;    /* of rename and copy */
    char *to;
    bool copy;
    bool created;
    bool deleted;
    bool old_mode; /* given */
    bool new_mode;
    unsigned mode; /* the new one, 0 = not given */
};

void udiff_head_fini(struct udiff_head *h);

/* Read one line of git's extended header. 1 when it is one, 0 when not, -1 refused. */
int udiff_head_extended(struct udiff_head *h, struct text line, struct err *e);

/* "diff --git ..." (without those words). */
int udiff_head_git(struct udiff_head *h, struct text rest, struct err *e);

/* "--- ..." (side 0) or "+++ ..." (side 1), without those four bytes. */
int udiff_head_name(struct udiff_head *h, int side, struct text rest, struct err *e);

/* How many components to take off, from all heads of a patch. */
int udiff_heads_strip(const struct udiff_head *heads, size_t n, int *ret, struct err *e);

/* Fill path, kind, mode of the section. */
int udiff_head_apply(const struct udiff_head *h, int strip, struct patch_section *s, struct err *e);

#endif
