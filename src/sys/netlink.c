/* sys/netlink: see netlink.h. */
#include "sys/netlink.h"

#include "base/mem.h"
#include "sys/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* The kernel answers at once; this is for one that does not. */
#define ANSWER_SECONDS 5

static void pad(struct netlink *nl)
{
    while (nl->out.len % NLMSG_ALIGNTO != 0)
        buf_putc(&nl->out, '\0');
}

/* Write a length into what is in the buffer already. */
static void set_length(struct netlink *nl, size_t at, const void *length, size_t n)
{
    memcpy(nl->out.data + nl->out.start + at, length, n);
}

void netlink_begin(struct netlink *nl, uint16_t type, uint16_t flags, const void *fixed, size_t n)
{
    const struct nlmsghdr head = {
        .nlmsg_type = type, .nlmsg_flags = flags, .nlmsg_seq = ++nl->sequence};
    nl->message = nl->out.len;
    buf_put(&nl->out, &head, sizeof(head));
    buf_put(&nl->out, fixed, n);
    pad(nl);
}

void netlink_end(struct netlink *nl)
{
    uint32_t length = (uint32_t)(nl->out.len - nl->message);
    set_length(nl, nl->message, &length, sizeof(length));
}

void netlink_put(struct netlink *nl, uint16_t type, const void *data, size_t n)
{
    const struct nlattr head = {.nla_len = (uint16_t)(NLA_HDRLEN + n), .nla_type = type};
    buf_put(&nl->out, &head, sizeof(head));
    buf_put(&nl->out, data, n);
    pad(nl);
}

void netlink_put_text(struct netlink *nl, uint16_t type, const char *text)
{
    netlink_put(nl, type, text, strlen(text) + 1);
}

void netlink_put_be32(struct netlink *nl, uint16_t type, uint32_t value)
{
    value = htonl(value);
    netlink_put(nl, type, &value, sizeof(value));
}

size_t netlink_open(struct netlink *nl, uint16_t type)
{
    size_t at = nl->out.len;
    netlink_put(nl, type | NLA_F_NESTED, "", 0);
    return at;
}

void netlink_close(struct netlink *nl, size_t nest)
{
    uint16_t length = (uint16_t)(nl->out.len - nest);
    set_length(nl, nest, &length, sizeof(length));
}

/* Each message that asked for it is answered by one with an errno, 0 when it was done. */
static int read_answers(int fd, unsigned answers)
{
    char data[8192];
    struct nlmsghdr head;
    while (answers > 0) {
        ssize_t n = fd_read(fd, data, sizeof(data));
        if (n <= 0)
            return n < 0 ? (int)n : -EPIPE;
        for (size_t at = 0; at + sizeof(head) <= (size_t)n; at += NLMSG_ALIGN(head.nlmsg_len)) {
            int error = 0;
            memcpy(&head, data + at, sizeof(head));
            if (head.nlmsg_len < NLMSG_LENGTH(sizeof(error)) || head.nlmsg_len > (size_t)n - at ||
                head.nlmsg_type != NLMSG_ERROR)
                break;
            memcpy(&error, data + at + NLMSG_HDRLEN, sizeof(error));
            if (error != 0)
                return error;
            answers -= answers > 0;
        }
    }
    return 0;
}

int netlink_socket(int protocol)
{
    const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    autofd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
        return -errno;
    return steal_fd(&fd);
}

int netlink_send_over(struct netlink *nl, int fd, unsigned answers)
{
    char stale[256];
    while (recv(fd, stale, sizeof(stale), MSG_DONTWAIT) >= 0) /* after a refusal some may be left */
        continue;
    ssize_t sent = fd_send(fd, buf_bytes(&nl->out), nl->out.len);
    int rc = sent == (ssize_t)nl->out.len ? 0 : sent < 0 ? (int)sent : -EMSGSIZE;
    if (rc == 0)
        rc = read_answers(fd, answers);
    buf_fini(&nl->out);
    return rc;
}

int netlink_send(struct netlink *nl, int protocol, unsigned answers)
{
    autofd int fd = netlink_socket(protocol);
    if (fd >= 0)
        return netlink_send_over(nl, fd, answers);
    buf_fini(&nl->out);
    return fd;
}
