/* sys/netlink: requests to the kernel's network configuration (rtnetlink, nf_tables), built and
 * sent by hand.
 *
 * Theory. The programs of a run are static and small, and say a handful of things to the kernel. A
 * message is a header, a fixed part and nested attributes; lengths are set when a message or a nest
 * is closed. Several messages go out as one batch, and the first refusal counts.
 *
 * Must not: be given a value from outside without its size.
 */
#ifndef CODESPACE_SYS_NETLINK_H
#define CODESPACE_SYS_NETLINK_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

struct netlink {
    struct buf out;
    size_t message; /* where the open message begins */
    uint32_t sequence;
};

/* Begin a message of `type` with its fixed part. */
void netlink_begin(struct netlink *nl, uint16_t type, uint16_t flags, const void *fixed, size_t n);
void netlink_end(struct netlink *nl);

void netlink_put(struct netlink *nl, uint16_t type, const void *data, size_t n);
void netlink_put_text(struct netlink *nl, uint16_t type, const char *text);
/* As nf_tables wants numbers: in network byte order. */
void netlink_put_be32(struct netlink *nl, uint16_t type, uint32_t value);
/* What netlink_close() takes. */
size_t netlink_open(struct netlink *nl, uint16_t type);
void netlink_close(struct netlink *nl, size_t nest);

/* Send all messages to the kernel and take in `answers` of them. 0, or the first refusal as -errno.
 * The buffer is empty afterwards. */
int netlink_send(struct netlink *nl, int protocol, unsigned answers);
/* The same over a socket of netlink_socket(). */
int netlink_send_over(struct netlink *nl, int fd, unsigned answers);

/* A socket of this process's network; it stays that network's wherever it is handed to. */
int netlink_socket(int protocol);

#endif
