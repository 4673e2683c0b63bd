/* sandbox/secrets: what stays hidden although its directory shows.
 *
 * Theory. With the platform view that is a short list below /etc. With the whole file system it is
 * the usual secret places of every home directory on the machine (from the user database, from
 * /home and from $HOME), the run-time sockets of engines and buses, every other socket
 * that listens, and other state. Only what
 * exists becomes an item; a link is followed, since what must not be read is its target.
 *
 * Must not: hide a directory of the platform because somebody's link leads there.
 */
#ifndef CODESPACE_SANDBOX_SECRETS_H
#define CODESPACE_SANDBOX_SECRETS_H

#include "sandbox/layout.h"
#include "wire/view.h"

void secrets_add(const struct view *v, struct layout *l);

#endif
