/* run/outlog: what a process has written, as one log with byte offsets and two streams.
 *
 * Theory. Offsets count every byte the process ever wrote, in the order it reached us. The newest
 * RUN_RING_BYTES are kept in a ring; older ones go to a file (run/spill) that keeps head and tail.
 * What neither has is dropped, and a reader whose cursor lies there is told so (it is told about
 * itself: what another reader missed is not its loss). A bit per byte says which stream it came
 * from, so any mixture of the two costs the same and loses nothing. Lines are counted by block as
 * they leave the ring, so a line is found without reading what lies before its block.
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
#include "run/spill.h"

/* Moments that are remembered; when they are full every second one goes. */
#define OUTLOG_MARKS_MAX 256u

struct outlog_mark {
    uint64_t offset, ms;
};

struct outlog {
    char *ring;
    uint64_t *tags; /* bit set = stderr; NULL until the first byte of stderr */
    size_t cap;     /* a power of two */
    uint64_t total; /* bytes ever written */
    struct spill spill;
    uint64_t counted_to;    /* a multiple of SPILL_BLOCK: what has been offered to the spill */
    uint64_t lines_counted; /* newlines before that */
    struct outlog_mark *marks;
    size_t n_marks, cap_marks;
    uint64_t mark_gap_ms; /* nearer ones are not told apart */
};

/* A zeroed outlog is empty and ready; with spill.budget set it keeps more than its ring. */
void outlog_fini(struct outlog *l);

/* `stream` is RUN_STDOUT or RUN_STDERR. */
void outlog_append(struct outlog *l, enum run_stream stream, const void *bytes, size_t n);

/* Room for the next bytes, to be read into it directly: at most SPILL_BLOCK. NULL while the log is
 * small: then outlog_append() is for them. */
char *outlog_room(struct outlog *l, size_t *ret_n);
/* n bytes were put there. */
void outlog_commit(struct outlog *l, enum run_stream stream, size_t n);

/* The bytes that come now come at that time (milliseconds, wall clock). */
void outlog_mark(struct outlog *l, uint64_t ms);

/* From here to the end nothing is missing. */
uint64_t outlog_retained_from(const struct outlog *l);
/* How many bytes nobody can read any more. */
uint64_t outlog_dropped(const struct outlog *l);
/* When the byte at `offset` came, as exactly as is known; 0 = not at all. */
uint64_t outlog_time(const struct outlog *l, uint64_t offset);

/* Where line `line` (from 0, both streams together) begins; the end of the log when there are not
 * so many lines. A line that was dropped gives an offset in the dropped part, which reads on behind
 * it. */
uint64_t outlog_find_line(const struct outlog *l, uint64_t line);
/* Where the last n lines begin; what stands behind the last newline is a line. */
uint64_t outlog_find_tail(const struct outlog *l, uint64_t n);

struct outlog_page {
    uint64_t start;  /* offset of the first byte */
    uint64_t cursor; /* where the next read goes on */
    bool lost;       /* bytes between the asked cursor and this page were dropped */
};

/* Append to `out` up to `max` bytes of `stream` (RUN_COMBINED: both) from `cursor` on. With
 * `whole_chars` the page does not end inside a UTF-8 character, unless `final` says that no more
 * will come; it may then exceed a `max` below 4. Bytes of the other stream are skipped, and the new
 * cursor is beyond them. A page does not reach over a dropped part. A cursor
 * beyond the end gives an empty page and stays. */
void outlog_read(const struct outlog *l, uint64_t cursor, enum run_stream stream, size_t max,
                 bool whole_chars, bool final, struct buf *out, struct outlog_page *ret);

#endif
