/* sandbox/netns: the network of a command that may use one: a namespace with nothing in it but a
 * loopback, on which every destination leads to the proxy's door.
 *
 * Theory. The namespace belongs to a user namespace of its own that is made before bubblewrap is
 * started, so no privilege inside the view, not even one that a command should never get, is one
 * over this network. In it every IPv4 address is local (a route, as for transparent proxies), so a
 * connection goes nowhere else by construction; one rule carries every TCP connection that is not
 * for the loopback to the transparent door, one every DNS query to the name server, and one each
 * granted port of the host's own loopback. What no rule takes is refused by the kernel: other UDP
 * finds no socket, IPv6 finds no route.
 *
 * The door's ports are below 1024, where no command can listen: they are in nobody's way.
 *
 * Must not: be entered by a process that still needs the host's network.
 */
#ifndef CODESPACE_SANDBOX_NETNS_H
#define CODESPACE_SANDBOX_NETNS_H

#include "base/err.h"
#include "sys/netrules.h"

#include <stddef.h>
#include <stdint.h>

#define NETNS_PORT_PROXY 880 /* HTTP and SOCKS, in the variables of sandbox/netenv */
#define NETNS_PORT_TRANSPARENT NETRULES_PORT_TRANSPARENT
#define NETNS_PORT_NAMES NETRULES_PORT_NAMES

/* Move this process into such a namespace, with its own user ids, and set it up. `local_ports`:
 * ports of the loopback that are carried to the door, too. Errors: SANDBOX_UNAVAILABLE with the
 * step that failed; this process is of no use then. */
int netns_enter(const uint16_t *local_ports, size_t n, struct err *e);

#endif
