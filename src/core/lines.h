/* core/lines: a file's bytes as lines, and four ways in which a line can equal another.
 *
 * Theory. The bytes are never decoded and never copied: a line is an offset and a length, with its
 * ending kept apart, so whoever puts lines together again gets every other byte as it was. To
 * search for a run of lines, each line gets a fingerprint per level of tolerance, made when a level
 * is first asked for; the run is then looked up among fingerprints by Knuth-Morris-Pratt, so the
 * time is linear whatever the file repeats (F14), and a hit is confirmed by the bytes.
 *
 * Levels: exact; without trailing blanks; without blanks at both ends; and with Unicode's dashes,
 * quotes and spaces folded to ASCII's (F8), the set that Codex's own tool folds.
 *
 * Must not: treat a byte that is not UTF-8 as anything but itself.
 */
#ifndef CODESPACE_CORE_LINES_H
#define CODESPACE_CORE_LINES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines of one file; 12 bytes each and 8 more per level that is used. */
#define LINES_MAX (4u << 20)
/* Lines that all searches of one patch may look at together: a second or two. Only a patch made of
 * very many tolerant hunks for a very long file comes near. */
#define LINES_WORK_MAX (1ull << 30)
/* "Not there." */
#define LINES_NONE SIZE_MAX

enum lines_level { LINES_EXACT, LINES_TRAILING, LINES_TRIM, LINES_FOLDED, LINES_LEVELS };

/* A run of bytes that somebody else owns. */
struct text {
    const char *at;
    size_t len;
};

struct line {
    uint32_t at;  /* from the first byte of the file */
    uint32_t len; /* without the ending */
    uint8_t eol;  /* bytes of the ending: 0 (last line only), 1 (LF) or 2 (CR LF) */
};

struct lines {
    const char *bytes; /* borrowed */
    size_t bom;        /* bytes of a UTF-8 byte order mark, 0 or 3; not part of line 0 */
    bool has_crlf;
    struct line *items;
    size_t n;
    size_t cap;
    uint64_t *prints[LINES_LEVELS]; /* NULL until asked for */
    uint64_t work;                  /* lines that searches looked at */
    struct buf scratch;
};

/* Split; `bytes` must outlive it and be below 4 GiB. 0, or -EFBIG above LINES_MAX. */
int lines_init(struct lines *l, const char *bytes, size_t n);
/* As lines_init, where a line is what ends in LF: CR and a byte order mark are bytes of it. */
int lines_init_raw(struct lines *l, const char *bytes, size_t n);
void lines_fini(struct lines *l);

struct text lines_text(const struct lines *l, size_t i);

/* The ending of line i as bytes; when it has none, that of the line before it, else LF. */
struct text lines_ending(const struct lines *l, size_t i);

/* Are they equal on that level? */
bool lines_equal(struct lines *l, enum lines_level level, struct text a, struct text b);

/* First place at or after `from` where the n lines of `run` stand, or LINES_NONE. n > 0. */
size_t lines_find(struct lines *l, enum lines_level level, const struct text *run, size_t n,
                  size_t from);

/* The place at which most lines of `run` agree with the file (blanks at the ends aside), or
 * LINES_NONE when none does. For messages; linear time. */
size_t lines_nearest(struct lines *l, const struct text *run, size_t n);

/* Without blanks at both ends. */
struct text text_trim(struct text t);

#endif
