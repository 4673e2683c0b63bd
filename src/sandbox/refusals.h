/* sandbox/refusals: process 1 hears of every call that the filter refuses, and says which.
 *
 * Theory. The plan's filter refuses with an errno. We load it with those answers changed into "ask
 * the listener" and give exactly the errno that the plan's program gives for the same call, by
 * running that program ourselves. So a command sees no difference, and the list of refused calls
 * comes from the layer that refused (G9, G10). ENOSYS stays in the kernel: it says "use the older
 * call" (clone3) and is no denial. Only refused calls cost anything: 4 to 6 us each of many, some
 * 20 us when process 1 has to be woken.
 *
 * The listener is process 1's alone: close-on-exec, in a process that nobody inside may look into.
 * A command that floods us with refused calls waits for its own answers; each turn of our loop
 * takes REFUSALS_BATCH of them and then looks at everything else. Calls are counted by kind, and
 * the number of kinds is bounded (wire/denial).
 *
 * A chain of filters has one listener at most. When there is one around us already, or the kernel
 * has none, the plan's filter is loaded as it is and the list says that it was not observed.
 *
 * Must not: let a call go on, read the caller's memory, or be what a command's end waits for.
 */
#ifndef CODESPACE_SANDBOX_REFUSALS_H
#define CODESPACE_SANDBOX_REFUSALS_H

#include "base/buf.h"
#include "wire/denial.h"

#include <linux/seccomp.h>

/* Answers in one turn of process 1's loop. */
#define REFUSALS_BATCH 32

struct refusals {
    int fd; /* the listener; -1 = not observed */
    struct buf filter;
    struct denial list[DENIAL_MAX];
};

/* Load `filter` (struct sock_filter[]), which is taken over, for this process and its descendants.
 * Needs no_new_privs. From here on this process must not make a call that the filter refuses: it
 * would wait for itself. 0 or -errno. */
int refusals_load(struct refusals *r, struct buf *filter);
void refusals_fini(struct refusals *r);

/* The listener is readable: answer. */
void refusals_on_event(struct refusals *r);

/* What the program says to a call: SECCOMP_RET_*, with its data. An instruction that no filter of
 * ours has counts as refused with EPERM. */
uint32_t refusals_judge(const struct buf *filter, const struct seccomp_data *call);

/* Rule and words for a refused call; ret_what has DENIAL_WHAT_MAX bytes. */
const char *refusals_name(const struct seccomp_data *call, char *ret_what);

#endif
