/* sys/landlock: what a process may do with files, TCP and others' sockets, by the kernel's
 * Landlock.
 *
 * Theory. The interface grows by versions; a version that is asked for something it does not know
 * refuses the whole set. So what is asked for is cut to what this kernel knows, and the caller is
 * told the version, because a lower one keeps less. Rights on files are all the ones that change
 * something; what Landlock does not know in any version (modes, owners, times, attributes of files,
 * connecting to a socket by its path) it cannot keep.
 *
 * Must not: be taken for a view; it hides nothing.
 */
#ifndef CODESPACE_SYS_LANDLOCK_H
#define CODESPACE_SYS_LANDLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* What the versions added, as far as we use it. */
#define LANDLOCK_FILES 1    /* writing, making, removing */
#define LANDLOCK_REFER 2    /* moving and linking between directories is not refused always */
#define LANDLOCK_TRUNCATE 3 /* truncating */
#define LANDLOCK_TCP 4      /* bind and connect */
#define LANDLOCK_DEVICES 5  /* ioctl on devices */
#define LANDLOCK_SCOPES 6   /* abstract sockets of others, signals to others */

/* The version, 0 = none here. */
int landlock_version(void);

struct landlock_ask {
    const char *const *writable; /* where files may be changed, NULL-terminated; missing ones are
                                    left out. NULL: everywhere */
    bool no_tcp;
};

/* Bits of the kernel's access_fs, access_net and scoped. */
struct landlock_rights {
    uint64_t files, net, scopes;
};

/* What a kernel of that version is asked to handle: all that is to be kept and that it knows. */
struct landlock_rights landlock_rights_of(int version, const struct landlock_ask *ask);

/* landlock_apply() as a kernel of that version would be asked; a newer one takes it, too. */
int landlock_apply_version(int version, const struct landlock_ask *ask);

/* For this process and its descendants, for good. Needs no_new_privs. 0, -EOPNOTSUPP when a version
 * is missing without which nothing of what was asked would be kept, or -errno. */
int landlock_apply(const struct landlock_ask *ask);

#endif
