/* proxy/control: the operator's side of a running proxy: its life and its rules.
 *
 * The life descriptor carries nothing; when its other end closes, the proxy ends. The control
 * descriptor, if there is one, carries one JSON object a line:
 *   {"op":"policy","policy":{...}}     a whole new policy, as at the start
 * It takes effect with the next request, look-up and connection, and ends the tunnels it refuses. A
 * policy that is not acceptable changes nothing. The outcome is an event on the status descriptor,
 * and the same line goes back over the control descriptor when that is a socket.
 *
 * Must not: be reachable from inside the sandbox.
 */
#ifndef CODESPACE_PROXY_CONTROL_H
#define CODESPACE_PROXY_CONTROL_H

#include "proxy/proxy.h"

struct control {
    struct proxy *proxy;
    struct source life;
    struct source source;
    struct buf line;
};

/* Takes both; control_fd may be -1. 0 or -errno. */
int control_start(struct control *c, struct proxy *p, int *life_fd, int *control_fd);
void control_stop(struct control *c);

#endif
