/* sandbox/filter: which system calls a sandboxed command does not get.
 *
 * Theory. Default allow with a table of refusals. The namespaces, the empty capability sets and
 * no_new_privs are the walls; the filter takes away what tunnels under them: calls that see other
 * processes' memory, new user namespaces (which would give capabilities back), the mount family,
 * kernel interfaces with a history of faults (io_uring, bpf, perf, userfaultfd, keyrings), terminal
 * injection, and socket families that are not cut off by a network namespace (VSOCK) or that no
 * build needs. Own loopback servers, socketpairs and AF_UNIX stay usable (C7).
 *
 * It should be short and tree-shaped: loading costs 1.3 us per compare that the kernel walks, at
 * every start. It depends on nothing that is known at run time, so it is made when the project is
 * built (sandbox/filter_gen writes it as an array) and no library is run or linked for it. The
 * table is sandbox/filter_gen.c. It must not compare arguments in 64 bits where the kernel looks at
 * 32 (E24): a set high bit would slip past.
 *
 * FILTER_NAMESPACES lets a command make user namespaces, and process, network, IPC, host name and
 * cgroup namespaces in them. There it has every capability, over what belongs to them alone. So
 * whatever would reach the view from there stays refused (mount namespaces, entering any namespace,
 * all that mounts), and what only a network of its own brings within reach is refused in addition:
 * raw and packet sockets, and options that program the packet filter.
 */
#ifndef CODESPACE_SANDBOX_FILTER_H
#define CODESPACE_SANDBOX_FILTER_H

#include "base/buf.h"

#include <stdbool.h>

/* What an operator allows; a set. */
#define FILTER_DEBUG 1u      /* a command may look into its own processes (ptrace and its like) */
#define FILTER_NAMESPACES 2u /* it may make user namespaces; see above */
#define FILTER_FLAGS_ALL (FILTER_DEBUG | FILTER_NAMESPACES)

/* Append the program (struct sock_filter[]) to `out`. */
void filter_add(unsigned flags, struct buf *out);

/* For a command that runs without namespaces of its own: the same, and without `network` no socket
 * but AF_UNIX. */
void filter_add_alone(bool network, struct buf *out);

#endif
