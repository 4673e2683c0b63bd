/* wire/frame: messages in a byte stream: a length, then so many bytes.
 *
 * Theory. Four bytes of length, big-endian, then the message. The bytes may come in any pieces,
 * over any stream. A length of 0 or above FRAME_MAX is nobody's message: the stream is out of step
 * and cannot be used any more.
 *
 * Must not: look into a message, or take memory for a length before the bytes are there.
 */
#ifndef CODESPACE_WIRE_FRAME_H
#define CODESPACE_WIRE_FRAME_H

#include "base/buf.h"

#include <stdint.h>

/* Largest message. */
#define FRAME_MAX (16u << 20)
#define FRAME_HEAD 4u

/* Look at what has come so far. 1: a whole message of *ret_len bytes begins at buf_bytes(in) +
 * FRAME_HEAD; frame_consume() when it was dealt with. 0: more bytes are needed. -EBADMSG. */
int frame_look(const struct buf *in, size_t *ret_len);
void frame_consume(struct buf *in, size_t len);

/* Write a message in place: begin, append to `out`, end. begin returns what end wants. end is 0, or
 * -EMSGSIZE for an empty or too long message, which is taken out again. */
size_t frame_begin(struct buf *out);
int frame_end(struct buf *out, size_t begun);

#endif
