/* core/hunk: a patch as data, whatever format it was written in, and applying its hunks to bytes.
 *
 * Theory. A parser (core/v4a, core/udiff) turns text into a patch_doc that
 * borrows from the text. hunks_apply() finds the place of each hunk in turn, from where the one
 * before it ended, and puts the new file together: untouched lines are copied as bytes with their
 * own endings; context lines keep the file's own bytes even where the patch wrote them otherwise;
 * an inserted line takes the ending of the line it replaces, or of its neighbour. A final newline
 * that was missing stays missing, a byte order mark stays (F1, F2, F4, F6).
 *
 * Places. Anchors (the "@@" lines) are found first, each behind the one before. The old lines are
 * searched exactly, and the first place wins, as with Codex's tool; then with growing tolerance
 * (core/lines), and there two places that fit are refused, since a guess could hit the wrong one.
 * The hunks of a unified diff come here only when they fit nowhere as bytes (core/exact), and must
 * have a single place on every level.
 *
 * Must not: change a byte outside the lines that a hunk removes or adds; take more than linear
 * time in the file for each hunk.
 */
#ifndef CODESPACE_CORE_HUNK_H
#define CODESPACE_CORE_HUNK_H

#include "base/buf.h"
#include "base/err.h"
#include "core/lines.h"
#include "core/patch.h"

struct hunk_line {
    const char *at;
    uint32_t len;
    char op;     /* ' ', '-' or '+' */
    bool bare;   /* an empty line without its ' ': context, or only a separator */
    bool no_eol; /* unified diff: "\ No newline at end of file" stands behind it */
};

struct hunk {
    struct text *anchors;
    size_t n_anchors;
    size_t anchors_cap;
    struct hunk_line *lines;
    size_t n;
    size_t cap;
    bool at_end;       /* the old lines are the last of the file */
    size_t patch_line; /* where it begins in the patch text, from 1 */
    /* Unified diff: the place is the one that the header says or the only one; see core/exact. */
    bool numbered;
    bool at_known; /* the numbers of the header agree with the hunks before it */
    size_t at;     /* lines of the old file before it */
};

/* What a patch says of the executable bits. */
enum patch_mode { PATCH_MODE_KEEP, PATCH_MODE_PLAIN, PATCH_MODE_EXECUTABLE };

struct patch_section {
    enum patch_kind kind;
    char *path;         /* as written */
    char *move_to;      /* PATCH_MOVE: as written */
    struct buf content; /* PATCH_ADD */
    struct hunk *hunks; /* PATCH_UPDATE, PATCH_MOVE */
    size_t n;
    size_t cap;
    size_t patch_line;
    /* Unified diff. */
    bool exact; /* hunks are bytes first, see core/exact */
    bool copy;  /* PATCH_MOVE: the source stays */
    enum patch_mode mode;
    const struct patch_edit *edit; /* PATCH_UPDATE by an exact edit instead of hunks; borrowed */
};

struct patch_doc {
    struct patch_section *sections;
    size_t n;
    size_t cap;
    /* Renames, copies and deletions speak of the files as they were before the patch, in whatever
     * order they stand (git's rule); else the sections are carried out one after the other. */
    bool from_preimage;
};

void patch_doc_fini(struct patch_doc *d);
struct patch_section *patch_doc_add(struct patch_doc *d);
struct hunk *patch_section_add_hunk(struct patch_section *s);
void hunk_add_line(struct hunk *h, struct hunk_line line);

/* Apply to the n bytes of the file `path` (for messages) and append the result to `out`. *ret_fuzzy
 * becomes true when some place was found with tolerance only. *work counts the lines that searches
 * looked at, over all files of a patch. Errors: INVALID_PATCH that names file, hunk, nearest place
 * and first difference; LIMIT_EXCEEDED. */
int hunks_apply(const char *path, const char *bytes, size_t n, const struct hunk *hunks,
                size_t n_hunks, struct buf *out, uint64_t *work, bool *ret_fuzzy, struct err *e);

#endif
