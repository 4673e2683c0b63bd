/* core/spread: one step for each of many items, by a few threads.
 *
 * Theory. Making a thousand files is nearly all the kernel's time, one call after the other; on two
 * processors half of it can go beside the rest. Each thread takes one run of neighbours, since
 * files of one directory stand together and two threads in one directory wait for each other. The
 * threads live for one call: they cost 50 us, and a pool of them would have to be kept, forked
 * around and ended. Where none can be made the caller does it all.
 *
 * Must not: be used for steps whose order matters, or for few items.
 */
#ifndef CODESPACE_CORE_SPREAD_H
#define CODESPACE_CORE_SPREAD_H

#include <stddef.h>

/* Fewer items are not worth a thread. */
#define SPREAD_FROM 64u
/* Threads at most, the caller's among them; never more than there are processors for us. */
#define SPREAD_THREADS_MAX 4u

/* 0, or what a step returns instead, which ends all of it soon. */
typedef int spread_fn(void *user, size_t i);

/* Run the step for all i below n, on any thread and in any order. 0, or the result of the failed
 * step with the smallest i, which is then *ret_failed. When it returns no thread is left. */
int spread(size_t n, spread_fn *step, void *user, size_t *ret_failed);

#endif
