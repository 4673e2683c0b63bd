/* sys/caps: the capabilities of this process, read by capget(2).
 * Must not: change them.
 */
#ifndef CODESPACE_SYS_CAPS_H
#define CODESPACE_SYS_CAPS_H

#include <stdint.h>

/* Effective and permitted sets or'ed together. 0 or -errno. */
int caps_get(uint64_t *ret);

#endif
