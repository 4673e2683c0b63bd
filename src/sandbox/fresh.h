/* sandbox/fresh: what a command that is started warm gets for itself inside a view that stands.
 *
 * Theory. A zygote's children share its view and what is not state: network, host name, the
 * platform, the workspace. Everything in which two commands could meet unseen, or which shows
 * processes, is made anew for each: /proc of its own PID namespace, /tmp with its home, /dev/shm
 * and /dev/pts (the rest of /dev is read-only then). What the view has below /tmp is carried over.
 * A command of an ordinary user gets a user namespace of its own as well: the zygote has to be root
 * in its own one, because the kernel makes terminals (devpts) only where root is mapped.
 *
 * The view was built some time ago. A mount goes away when somebody on the host removes or renames
 * what it lies on, so before each command every mount of the view that lies on something of the
 * host is looked at again; one that is missing is a refusal, never a run with a hole (A1, A2). What
 * lies on a file system that bubblewrap made for the view has nobody outside who could move it.
 *
 * Must not: be called where code of a command has run.
 */
#ifndef CODESPACE_SANDBOX_FRESH_H
#define CODESPACE_SANDBOX_FRESH_H

#include "base/err.h"
#include "base/str.h"
#include "wire/plan.h"

#include <stdbool.h>

/* Mounts of a view that can be kept warm; each costs every command about 2 us. */
#define FRESH_MOUNTS_MAX 512u
/* Of these, the ones below /tmp. */
#define FRESH_CARRIED_MAX 64u

struct fresh {
    size_t n_mounts;     /* of the view */
    struct strv mounts;  /* the points of those that lie on something of the host */
    struct strv carried; /* the uppermost ones below /tmp */
    char *tmp_bytes;     /* size of the private /tmp; NULL = it is not private and stays */
    bool map;            /* the command gets its user's ids in a user namespace of its own */
    bool of_root;        /* the command is the host's root, by whatever number it sees itself */
    unsigned uid, gid;
};

/* In the zygote, once: make its mounts private and look at them. Errors: LIMIT_EXCEEDED,
 * SANDBOX_UNAVAILABLE. */
int fresh_init(struct fresh *f, const struct plan *p, struct err *e);
void fresh_fini(struct fresh *f);

/* In a child of the zygote with a PID and a mount namespace of its own: make what is to be fresh.
 * Capabilities are left over; giving them up is the next step. Errors: SANDBOX_UNAVAILABLE. */
int fresh_make(const struct fresh *f, struct err *e);

/* Are all mounts that somebody could have moved where they were? Errors: PATH_PROTECTED. */
int fresh_check(const struct fresh *f, struct err *e);

#endif
