/* sandbox/netenv: the variables that lead programs to the door (R17).
 *
 * Theory. Every program that connects is carried to the proxy without knowing (sandbox/netns), so
 * these variables are not a wall. They make programs tell the proxy what they want (a name instead
 * of an address, the method instead of an opaque tunnel), and tell them why they are refused. Those
 * that name exceptions are emptied. They come last, over what a request or an operator sets: two
 * answers to one question would be worse than either.
 *
 * Java, Go's dialler, git's own protocol, ssh and database clients need none.
 */
#ifndef CODESPACE_SANDBOX_NETENV_H
#define CODESPACE_SANDBOX_NETENV_H

#include "sandbox/netca.h"

#include <stddef.h>

/* Call `set` with each "NAME=VALUE". */
void netenv_each(void (*set)(void *user, const char *entry), void *user);

/* The same for the variables that name the file of sandbox/netca, where the proxy ends TLS; and one
 * of them, by which an environment shows that they are set. */
#define NETENV_CA_MARK "CODESPACE_CA_FILE=" NETCA_FILE
void netenv_each_ca(void (*set)(void *user, const char *entry), void *user);

#endif
