/* run/follow: who reads a log as it grows, and how far.
 *
 * Theory. A reader is nothing but its reads: one that goes on where the last one ended follows the
 * log. What a follower has not read yet is worth keeping (run/spill) for as long as he goes on
 * reading; a look at the beginning, or at the end, is not. A few are told apart; who stays away for
 * FOLLOW_MS is forgotten, so a client that is gone holds no disk.
 *
 * Must not: make a command wait.
 */
#ifndef CODESPACE_RUN_FOLLOW_H
#define CODESPACE_RUN_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#define FOLLOW_READERS_MAX 4
/* From one read to the next. */
#define FOLLOW_MS 3000u

struct follow {
    struct {
        uint64_t next; /* where the next read of it begins */
        uint64_t ms;   /* of the last one */
        bool follows;  /* it has gone on once */
    } readers[FOLLOW_READERS_MAX];
};

/* A read from `from` ended at `next`. Times are of the loop's clock and never 0. */
void follow_note(struct follow *f, uint64_t from, uint64_t next, uint64_t now_ms);

/* Does anybody follow now? Then *ret_from is where the slowest of them is. */
bool follow_from(const struct follow *f, uint64_t now_ms, uint64_t *ret_from);

#endif
