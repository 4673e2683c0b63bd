/* sandbox/nethosts: the view's /etc/hosts where the network is enabled.
 *
 * Theory. A program asks /etc/hosts before it asks a name server, and then connects to the address
 * that stands there, of which nothing is inside: the connection would be refused, or end at a
 * server of the sandbox's own, and no rule would have been asked. So in the view the file names
 * this machine alone, and every other name goes to the door's name server. What the host's file
 * says still counts: the proxy reads it and dials accordingly (proxy/resolve).
 *
 * Must not: change a file of the host's, or show one that is not a plain file there.
 */
#ifndef CODESPACE_SANDBOX_NETHOSTS_H
#define CODESPACE_SANDBOX_NETHOSTS_H

#include "wire/plan.h"

/* At prepare, when the mounts are written. */
void nethosts_plan(struct plan *p);

#endif
