/* run/follow: see follow.h. */
#include "run/follow.h"

void follow_note(struct follow *f, uint64_t from, uint64_t next, uint64_t now_ms)
{
    int oldest = 0;
    for (int i = 0; i < FOLLOW_READERS_MAX; i++) {
        if (f->readers[i].ms != 0 && f->readers[i].next == from) {
            f->readers[i].follows |= next > from;
            f->readers[i].next = next;
            f->readers[i].ms = now_ms;
            return;
        }
        if (f->readers[i].ms < f->readers[oldest].ms)
            oldest = i;
    }
    f->readers[oldest].next = next;
    f->readers[oldest].ms = now_ms;
    f->readers[oldest].follows = false;
}

bool follow_from(const struct follow *f, uint64_t now_ms, uint64_t *ret_from)
{
    bool found = false;
    for (int i = 0; i < FOLLOW_READERS_MAX; i++) {
        bool counts = f->readers[i].follows && now_ms - f->readers[i].ms <= FOLLOW_MS;
        if (counts && (!found || f->readers[i].next < *ret_from))
            *ret_from = f->readers[i].next;
        found |= counts;
    }
    return found;
}
