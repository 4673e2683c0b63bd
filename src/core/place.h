/* core/place: where in a file a hunk belongs, and what to say when it belongs nowhere.
 *
 * The rules are in core/hunk.h. Must not: be used by others than core/hunk.
 */
#ifndef CODESPACE_CORE_PLACE_H
#define CODESPACE_CORE_PLACE_H

#include "core/hunk.h"

struct placer {
    const char *path; /* for messages */
    struct lines *file;
    size_t from;        /* first line behind the hunk before */
    size_t hunk_number; /* for messages, from 1 */
    bool fuzzy;         /* some place was found with tolerance only */
};

struct place {
    size_t at;      /* line of the file at which the hunk's first line stands */
    size_t n_lines; /* lines of the hunk that count; separators at its end do not */
};

/* Find it. Errors: INVALID_PATCH. */
int place_hunk(struct placer *p, const struct hunk *h, struct place *ret, struct err *e);

/* A hunk's line as it stands against this file: a CR that only says CR LF, and a byte order mark
 * that the file has too, are not part of it. */
struct text place_text(const struct lines *file, const struct hunk_line *line);

#endif
