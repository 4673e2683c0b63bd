/* proxy/channel: what may lie between an end's socket and its bytes: a codec, such as TLS.
 *
 * Theory. An end (proxy/end) reads and sends plain bytes. With a channel it reads them through
 * `read`, which takes from the socket what it needs, and what it sends is encoded by `send` into
 * `wire`, which the end then writes to the socket. A channel always accepts what it is given, and
 * the end gives it nothing while `wire` is not empty: so it holds one block at most, and flow
 * control stays where it was.
 *
 * Must not: write to the socket by itself.
 */
#ifndef CODESPACE_PROXY_CHANNEL_H
#define CODESPACE_PROXY_CHANNEL_H

#include "base/buf.h"

#include <sys/types.h>

struct channel;

struct channel_ops {
    /* As fd_read(): bytes, 0 at a proper end, -EAGAIN when the socket has no more, or another
     * -errno; an end that is not a proper one is an error. */
    ssize_t (*read)(struct channel *ch, void *to, size_t n);
    /* Encode all n bytes into `wire`. 0 or -errno. */
    int (*send)(struct channel *ch, const void *data, size_t n);
    /* Encode the proper end of our direction. */
    void (*shutdown)(struct channel *ch);
    void (*free)(struct channel *ch);
};

struct channel {
    const struct channel_ops *ops;
    struct buf wire; /* for the socket */
};

#endif
