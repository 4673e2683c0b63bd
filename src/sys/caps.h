/* sys/caps: the capabilities of this process: reading them and giving all of them up.
 * Must not: gain any.
 */
#ifndef CODESPACE_SYS_CAPS_H
#define CODESPACE_SYS_CAPS_H

#include <stdint.h>

/* Effective and permitted sets or'ed together. 0 or -errno. */
int caps_get(uint64_t *ret);

/* Give up every capability for good: the bounding set as far as it is ours to change (that needs
 * CAP_SETPCAP), then effective, permitted, inheritable and with them ambient. 0 or -errno. */
int caps_drop_all(void);

/* The two halves of it: the bounding set, which what we hold is not touched by, and what we hold.
 */
int caps_drop_bounding(void);
int caps_drop_held(void);

#endif
