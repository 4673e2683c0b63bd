/* sys/netrules: the rules of a sandbox's network that carry connections to the egress proxy's door.
 *
 * Theory. In a network namespace of ours (sandbox/netns) one rule carries every TCP connection that
 * is not for the loopback to the transparent door, one every DNS query to the name server, and one
 * each granted port of the loopback to the door, too. They are one chain, put as one transaction,
 * so there is no moment without them. Connections that stand keep the way they went.
 *
 * The socket is made inside the namespace. Whoever made its user namespace may go on using it from
 * outside, so the proxy changes the ports while commands run, and has no other power over them.
 *
 * Must not: be called with a socket of another network.
 */
#ifndef CODESPACE_SYS_NETRULES_H
#define CODESPACE_SYS_NETRULES_H

#include <stddef.h>
#include <stdint.h>

#define NETRULES_PORT_TRANSPARENT 881 /* where connections are carried to */
#define NETRULES_PORT_NAMES 53

/* For this process's network namespace: a descriptor (close-on-exec), or -errno. */
int netrules_socket(void);

/* The rules, in a namespace that has none. `local_ports`: of the loopback, carried to the door. 0
 * or -errno. */
int netrules_make(int fd, const uint16_t *local_ports, size_t n);

/* The same rules with other ports, at once and whole. On failure the old ones stay. */
int netrules_replace(int fd, const uint16_t *local_ports, size_t n);

#endif
