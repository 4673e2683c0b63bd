/* run/spill: output that has left the ring: a private file without a name, head and tail kept.
 *
 * Theory. Output leaves the ring in blocks of SPILL_BLOCK, aligned in the log, so what the log says
 * about a block (its stream tags, its lines) is one record. The first half of what is kept is the
 * head of the log for good; the second half is the newest blocks. What lies between is dropped, and
 * the log can say how much. Somebody who follows the log (run/follow) and is behind gets more: what
 * he has not read yet is kept beyond the limit, as far as RUN_SPILL_FOLLOW_BYTES goes for all of
 * the runner, and given back to the disk as he reads on. So he misses nothing, and the command does
 * not wait for him. The file is opened with O_TMPFILE on a disk (or created and unlinked at once
 * where the file system cannot do that), mode 0600, and goes with its descriptor, whatever ends us.
 *
 * A write that fails (a full disk, the runner's total) ends the spilling of that process: what was
 * stored stays readable, the ring goes on, and `failed` says why. The command never notices.
 *
 * Must not: be kept in memory (a memfd would be), be found by name, or block on a reader.
 */
#ifndef CODESPACE_RUN_SPILL_H
#define CODESPACE_RUN_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPILL_BLOCK 65536u
/* A bit per byte: set = stderr. */
#define SPILL_TAG_WORDS (SPILL_BLOCK / 64u)
/* A place in the file: a block, and its tags behind it. */
#define SPILL_PLACE (SPILL_BLOCK + SPILL_BLOCK / 8u)

/* Shared by all processes of a runner. */
struct spill_budget {
    char *dir;          /* NULL = SPILL_DIR_DEFAULT or TMPDIR */
    uint64_t bytes;     /* per process; 0 = no file */
    uint64_t total_max; /* of all */
    uint64_t total_used;
    uint64_t follow_max; /* beyond `bytes`, of all */
    uint64_t follow_used;
};

/* Per process, as CODESPACE_SPILL_MIB says (1 to 1024); 0 = it says nothing that can be used. */
uint64_t spill_asked_bytes(void);

void spill_budget_init(struct spill_budget *b, uint64_t bytes, const char *dir);
void spill_budget_fini(struct spill_budget *b);

enum spill_tags { SPILL_ALL_STDOUT, SPILL_ALL_STDERR, SPILL_MIXED };

struct spill_block {
    uint64_t lines_before; /* newlines in the log before this block */
    uint32_t lines;        /* in it */
    uint32_t place;        /* in the file */
    uint8_t tags;          /* enum spill_tags */
};

/* Zeroed with `budget` set is ready; without it nothing is ever stored. */
struct spill {
    struct spill_budget *budget;
    int fd;                   /* valid when half > 0 */
    int failed;               /* 0, or the errno that ended it; EDQUOT = the runner's total */
    uint64_t half;            /* bytes of the head, and of the tail; 0 = not opened */
    uint64_t end;             /* [0, end) of the log has been put here */
    struct spill_block *head; /* a record per block of it */
    struct spill_block *tail; /* the same, a ring of cap_tail (a power of two) by block number */
    size_t cap_tail;
    uint64_t tail_first;  /* number of its first block */
    bool wanted;          /* somebody follows */
    uint64_t wanted_from; /* and has not read from there on */
    uint32_t n_places;    /* that the file has */
    uint32_t *spare;      /* places that nothing is in */
    size_t n_spare, cap_spare;
    size_t n_empty;                   /* the first of them have been given back to the disk */
    uint64_t charged, charged_follow; /* to the budget */
};

void spill_fini(struct spill *s);

/* Store the next block. `tags` NULL = all stdout. 0, or -errno: not stored, and nothing will be. */
int spill_put(struct spill *s, const char *bytes, const uint64_t *tags,
              const struct spill_block *about);

/* Somebody follows the log and has not read what lies from `from` on. */
void spill_follow(struct spill *s, uint64_t from);
/* Nobody does any more. */
void spill_unfollow(struct spill *s);

/* Is byte `offset` of the log stored? Then *ret_end is the end of what is stored in one piece from
 * there. Else *ret_end is where the next stored piece begins, or UINT64_MAX. */
bool spill_has(const struct spill *s, uint64_t offset, uint64_t *ret_end);

/* The record of the stored block that holds `offset`. */
const struct spill_block *spill_block_at(const struct spill *s, uint64_t offset);

/* Read n stored bytes that lie in one block. 0 or -errno. */
int spill_read(const struct spill *s, uint64_t offset, void *out, size_t n);
/* The tags of the whole block that holds `offset`. 0 or -errno. */
int spill_read_tags(const struct spill *s, uint64_t offset, uint64_t out[SPILL_TAG_WORDS]);

#endif
