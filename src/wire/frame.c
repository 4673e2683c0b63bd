/* wire/frame: see frame.h. */
#include "wire/frame.h"

#include <errno.h>
#include <string.h>

int frame_look(const struct buf *in, size_t *ret_len)
{
    const unsigned char *p = (const unsigned char *)buf_bytes(in);
    if (in->len < FRAME_HEAD)
        return 0;
    size_t len = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    if (len == 0 || len > FRAME_MAX)
        return -EBADMSG;
    if (in->len - FRAME_HEAD < len)
        return 0;
    *ret_len = len;
    return 1;
}

void frame_consume(struct buf *in, size_t len)
{
    buf_consume(in, FRAME_HEAD + len);
}

size_t frame_begin(struct buf *out)
{
    size_t begun = out->len;
    buf_put(out, "\0\0\0", FRAME_HEAD);
    return begun;
}

int frame_end(struct buf *out, size_t begun)
{
    size_t len = out->len - begun - FRAME_HEAD;
    if (len == 0 || len > FRAME_MAX) {
        buf_truncate(out, begun);
        return -EMSGSIZE;
    }
    unsigned char *head = (unsigned char *)out->data + out->start + begun;
    head[0] = (unsigned char)(len >> 24);
    head[1] = (unsigned char)(len >> 16);
    head[2] = (unsigned char)(len >> 8);
    head[3] = (unsigned char)len;
    return 0;
}
