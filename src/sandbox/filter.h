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
 * every start. It must not compare arguments in 64 bits where the kernel looks at 32 (E24): a set
 * high bit would slip past.
 */
#ifndef CODESPACE_SANDBOX_FILTER_H
#define CODESPACE_SANDBOX_FILTER_H

#include "base/buf.h"
#include "base/err.h"

/* Append the program (struct sock_filter[]) to `out`. */
int filter_build(struct buf *out, struct err *e);

#endif
