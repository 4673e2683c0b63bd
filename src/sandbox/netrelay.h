/* sandbox/netrelay: in a zygote: what the workspace's proxy refuses, passed on to every command.
 *
 * Theory. Commands of one workspace that are started warm share one network and one proxy, and a
 * connection does not say whose it is. So each process 1 gets all events that come while its
 * command runs, over a socket of its own. Before it tells the end it asks ("?") and goes on when it
 * has the answer ("."): what the proxy said until then has come before it.
 *
 * Must not: keep an event for who does not read.
 */
#ifndef CODESPACE_SANDBOX_NETRELAY_H
#define CODESPACE_SANDBOX_NETRELAY_H

#include <stdbool.h>
#include <stddef.h>

struct netrelay {
    int epoll_fd; /* readable: netrelay_on_event(); -1 = the network is restricted */
    int proxy_fd;
    int *ends; /* ours, of each child; -1 = gone */
    size_t n, cap;
};

/* `proxy_fd` as netdoor_wait() left it; stays the caller's. 0 or -errno. */
int netrelay_init(struct netrelay *r, int proxy_fd);
void netrelay_fini(struct netrelay *r);

/* One more child: *ret_end is for it. 0 or -errno. */
int netrelay_add(struct netrelay *r, int *ret_end);

void netrelay_on_event(struct netrelay *r);

/* In the child, when it takes a command: what came before is not for it. False when the proxy has
 * ended. */
bool netrelay_discard(int end);

/* In the child: everything that came before, counted in `list`. */
struct denial;
void netrelay_catch_up(int end, struct denial *list);

#endif
