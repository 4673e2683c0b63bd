/* run/outlog: what a process has written, as one log with byte offsets and two streams.
 *
 * Theory. Offsets count every byte the process ever wrote, in the order it reached us. The newest
 * RUN_RING_BYTES are kept in a ring; older ones are dropped, and a reader whose cursor lies before
 * them is told so (it is told about itself: what another reader missed is not its loss). A bit per
 * byte says which stream it came from, so any mixture of the two costs the same and loses nothing.
 *
 * Memory grows with what was written: nothing, then 4 KiB, then doubled up to the ring's size. The
 * ring only wraps at full size, which is why growing never has to move a byte to a new place.
 *
 * Must not: block, know about processes, or be told its size from outside.
 */
#ifndef CODESPACE_RUN_OUTLOG_H
#define CODESPACE_RUN_OUTLOG_H

#include "base/buf.h"
#include "run/runner.h"

struct outlog {
    char *ring;
    uint64_t *tags; /* bit set = stderr; NULL until the first byte of stderr */
    size_t cap;     /* a power of two */
    uint64_t total; /* bytes ever written */
};

/* A zeroed outlog is empty and ready. */
void outlog_fini(struct outlog *l);

/* `stream` is RUN_STDOUT or RUN_STDERR. */
void outlog_append(struct outlog *l, enum run_stream stream, const void *bytes, size_t n);

/* Offset of the oldest byte that is still there. */
uint64_t outlog_retained_from(const struct outlog *l);

struct outlog_page {
    uint64_t cursor; /* where the next read goes on */
    bool lost;       /* bytes between the asked cursor and this page were dropped */
};

/* Append to `out` up to `max` bytes of `stream` (RUN_COMBINED: both) from `cursor` on. With
 * `whole_chars` the page does not end inside a UTF-8 character, unless `final` says that no more
 * will come; it may then exceed a `max` below 4. Bytes of the other stream are skipped, and the new
 * cursor is beyond them. A cursor beyond the end gives an empty page and stays. */
void outlog_read(const struct outlog *l, uint64_t cursor, enum run_stream stream, size_t max,
                 bool whole_chars, bool final, struct buf *out, struct outlog_page *ret);

#endif
