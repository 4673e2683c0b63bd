/* proxy/door: the listeners that the sandbox can reach.
 *
 * A listening socket comes by descriptor, made inside the sandbox's network namespace, so nothing
 * on the host can reach it and the proxy needs no place in the file system. Two kinds: the door
 * that programs are told of (HTTP and SOCKS, told apart by the first byte), and the one to which
 * every connection to a stand-in address is carried. A third kind is on the host's side: a port of
 * the sandbox that is published.
 */
#ifndef CODESPACE_PROXY_DOOR_H
#define CODESPACE_PROXY_DOOR_H

#include "proxy/proxy.h"

/* Connections accepted before others get their turn. */
#define DOOR_TURN_MAX 64

enum door_kind { DOOR_PROXY, DOOR_TRANSPARENT, DOOR_PUBLISH };

struct door {
    struct proxy *proxy;
    enum door_kind kind;
    uint16_t port; /* DOOR_PUBLISH: inside */
    struct source source;
    struct timer pause; /* the system is out of descriptors or memory: wait a little */
    int paused_fd;
};

/* Takes fd, a listening stream socket. 0 or -errno. */
int door_open(struct door *d, struct proxy *p, enum door_kind kind, int *fd);
void door_close(struct door *d);

#endif
