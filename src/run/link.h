/* run/link: messages of the runner protocol over one byte stream, on the loop.
 *
 * Theory. A link reads frames and hands their messages on, one after the other; it writes messages
 * as far as the stream takes them and keeps the rest. When the other side does not read, the rest
 * grows; from LINK_QUEUE_BYTES on the link stops reading too, so a peer that does not take its
 * answers gets no more of its questions answered, and memory stays bounded. The stream may be one
 * descriptor (a socket) or two (stdin and stdout).
 *
 * Must not: know what a message means; go on after a frame that was none.
 */
#ifndef CODESPACE_RUN_LINK_H
#define CODESPACE_RUN_LINK_H

#include "base/buf.h"
#include "run/watch.h"
#include "wire/runmsg.h"

#include <uv.h>

#define LINK_QUEUE_BYTES (4u << 20)
#define LINK_READ_BYTES 65536u
#define LINK_READS_PER_TURN 4

struct link;

struct link_ops {
    /* A frame's text, borrowed. */
    void (*message)(void *owner, const char *text, size_t n);
    /* The stream has ended or broken; nothing more comes. The link is closed. */
    void (*ended)(void *owner, const char *why);
};

struct link {
    struct watch in, out; /* out is closed when `in` is both ways */
    struct buf received, unsent;
    const struct link_ops *ops;
    void *owner;
    uint64_t heard_ms; /* of the loop's clock */
    bool open;
    bool closing; /* after what is unsent */
};

/* Both descriptors are taken (out -1: `in` is a socket). 0, or -errno and they are the caller's. */
int link_open(struct link *l, uv_loop_t *loop, struct anchor *anchor, int *in, int *out,
              const struct link_ops *ops, void *owner);
/* At once; `ended` is not called. Fine when it is closed. */
void link_close(struct link *l);
/* When all is written, or the peer is gone; `ended` is called then. Nothing is read any more. */
void link_finish(struct link *l);

/* False: the link is closed, or the message is larger than a frame may be. */
bool link_send(struct link *l, const struct runmsg *m);
/* The same for a message that is text already. */
bool link_send_text(struct link *l, const char *text, size_t n);

#endif
