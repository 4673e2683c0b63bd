/* sandbox/loopback: the loopback interface of a new network namespace. */
#ifndef CODESPACE_SANDBOX_LOOPBACK_H
#define CODESPACE_SANDBOX_LOOPBACK_H

/* Set `lo` of our network namespace up, as bubblewrap does for a cold start; the kernel gives it
 * 127.0.0.1 and ::1. Needs CAP_NET_ADMIN in the user namespace that owns it. 0 or -errno. */
int loopback_up(void);

#endif
