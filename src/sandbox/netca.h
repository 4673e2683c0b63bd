/* sandbox/netca: what commands trust where the proxy ends TLS (egress.inject with "tls":
 * "intercept").
 *
 * Theory. The proxy of such a workspace makes an authority of its own; commands have to trust it,
 * beside those of the system. So a file is laid into the view, the system's store and the
 * authority's certificate behind it, and the variables of sandbox/netenv name it. The system's
 * store is opened here, on the host's side, and goes to the proxy by descriptor (it verifies the
 * servers with it); the file comes back from the proxy through a pipe that bubblewrap reads while
 * it builds the view. No key is in any of this: it never leaves the proxy.
 *
 * The place is in /dev because that is a file system of the view's own in every view, and because
 * it stays when a command gets a fresh /tmp.
 *
 * Without such a rule nothing of this happens: no file, no variable, no descriptor.
 * Must not: change a file of the host's.
 */
#ifndef CODESPACE_SANDBOX_NETCA_H
#define CODESPACE_SANDBOX_NETCA_H

#include "base/err.h"
#include "wire/helper.h"
#include "wire/plan.h"

#define NETCA_FILE "/dev/codespace-ca.pem"

/* At prepare, when the mounts are written: the file's place and its descriptor. */
void netca_plan(const struct helper_request *r, struct plan *p);

/* A source of the plan that is this file, not one of the host's. */
bool netca_is_source(const char *source);

/* At run: the system's store and both ends of the pipe; all -1 without a rule. Errors:
 * SANDBOX_UNAVAILABLE. The caller closes. */
struct netca {
    int trust_fd, to_fd, from_fd;
};
int netca_open(const struct plan *p, struct netca *ret, struct err *e);

#endif
