/* sandbox/netlost: IPv6 that led nowhere.
 *
 * Theory. The network inside has no IPv6 route but the loopback's, so the kernel refuses each
 * attempt at once and sends nothing; it only counts (/proc/net/snmp6). The number over the life of
 * a command is what it and whoever shares its network tried: how often is known, where to is not.
 *
 * Must not: cost a command anything but a read at its end, and one at its start when its network is
 * older than it.
 */
#ifndef CODESPACE_SANDBOX_NETLOST_H
#define CODESPACE_SANDBOX_NETLOST_H

#include "wire/denial.h"

#include <stdint.h>

/* What the kernel has counted so far; -1 = it does not say (it has no IPv6 then). */
int64_t netlost_count(void);

/* Into `list`, what came since then. The count now. */
int64_t netlost_tell(int64_t before, struct denial *list);

#endif
