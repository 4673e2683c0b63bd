/* sandbox/netwho: which process inside a refused packet came from.
 *
 * Theory. The proxy says the port that it came from. The network's own table (/proc/net) says which
 * socket has that port, and the descriptors of the processes inside say who holds it. All of it is
 * looked at after the refusal, for which the proxy holds the answer back a moment; a process that
 * has ended or closed meanwhile is not found, and then nothing is said. Commands that share a
 * network find their own processes only, because each process 1 looks in its own namespace.
 *
 * Must not: be used to allow anything; read what a process holds; look again and again for a
 * command that is refused again and again (NETWHO_LOOKS_MAX).
 */
#ifndef CODESPACE_SANDBOX_NETWHO_H
#define CODESPACE_SANDBOX_NETWHO_H

#include "wire/denial.h"

#include <stdbool.h>
#include <stdint.h>

/* Looks for one kind of refusal (wire/denial), so DENIAL_MAX times as many for a command. */
#define NETWHO_LOOKS_MAX 4
/* Of the network's table; processes and descriptors that are gone through. */
#define NETWHO_TABLE_MAX (1u << 20)
#define NETWHO_PROCESSES_MAX 1024
#define NETWHO_DESCRIPTORS_MAX 8192

/* Write into `d`, which was counted just now, who has that port, if it is found. */
void netwho_tell(bool udp, uint16_t port, struct denial *d);

#endif
