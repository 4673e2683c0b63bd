/* core/journal_file: the journal's file: its layout, written and read.
 *
 *   byte 0     mark: "committed" or "idle", and the number of the record, in a block of its own
 *   byte 4096  record: "codespace-journal 1", number, length and digest of the payload, payload
 *
 * The payload is a row of fields that each end in NUL. Must not: be used by others than
 * core/journal.
 */
#ifndef CODESPACE_CORE_JOURNAL_FILE_H
#define CODESPACE_CORE_JOURNAL_FILE_H

#include "base/buf.h"
#include "core/journal.h"

#define JOURNAL_READY 1u

struct journal {
    int fd;
    uint64_t number; /* of the last record; begins at random */
    struct buf dirs; /* the part of the payload that "ready" repeats */
    struct stat root;
    bool recovered; /* what an earlier life left was dealt with */
};

/* A record that was read; items and paths point into `payload`. */
struct journal_record {
    struct buf payload;
    uint64_t number;
    bool ready;
    bool committed;
    uint64_t root_dev;
    uint64_t root_ino;
    struct journal_item *items;
    size_t n;
    struct strv dirs;
};

int journal_file_write(struct journal *j, bool ready, const struct journal_item *items, size_t n);
int journal_file_mark(struct journal *j, const char *mark, bool sync);

/* 1 when there is a whole record that is not idle, 0 when not, -errno. */
int journal_file_read(struct journal *j, struct journal_record *ret);
void journal_record_fini(struct journal_record *r);

#endif
