/* proxy/end: one end of a connection: what was read and not used, what was accepted and not sent.
 *
 * Theory. Bytes are read into one scratch block that all connections share and are looked at there
 * through a window; only what is left over when a turn is done is copied into storage of the end's
 * own. So an idle connection holds no buffer. Output goes to the socket at once; only what the
 * socket does not take is kept, and nobody reads for an end that has output waiting, so each end
 * holds at most one block.
 *
 * Must not: be read while the window of another end lies in the same scratch block: clients and
 * servers have one each.
 */
#ifndef CODESPACE_PROXY_END_H
#define CODESPACE_PROXY_END_H

#include "base/buf.h"
#include "proxy/channel.h"
#include "proxy/loop.h"

#include <stddef.h>

/* One read: large enough that a copy through user space is near what splicing moves. */
#define END_BLOCK 65536u

struct end {
    struct source source;
    bool readable;  /* the kernel may have bytes or an end of file */
    bool writable;  /* the kernel may take bytes */
    bool hup;       /* the peer has closed: after the bytes comes the end */
    bool gone;      /* both directions are closed, or reset: nobody is there any more */
    bool eof;       /* the end of file was read */
    bool failed;    /* reset or another error: nothing more in either direction */
    bool shut;      /* our side is closed for writing */
    bool near;      /* on this host, and its send buffer is as the kernel likes */
    const char *at; /* the window */
    size_t len;
    struct buf kept; /* storage of the window between turns */
    struct buf out;
    struct channel *channel; /* NULL: the bytes are the socket's */
};

void end_init(struct end *e);
/* From now on the bytes go through a channel, which is taken; the output must be flushed and the
 * window empty. */
void end_set_channel(struct end *e, struct channel *ch);
/* Forget everything and close. */
void end_close(struct loop *l, struct end *e);
bool end_is_open(const struct end *e);

/* Take in what epoll said. */
void end_note(struct end *e, uint32_t events);

/* Read once more bytes behind the window. True when the window grew. `scratch` has END_BLOCK bytes.
 * *ret_full (may be NULL): the block was filled, there is probably more. */
bool end_fill(struct end *e, char *scratch, bool *ret_full);
void end_consume(struct end *e, size_t n);
/* Before the scratch block is used for another end: keep what is left of the window. */
void end_settle(struct end *e);

/* Send what is waiting; true when nothing is. */
bool end_flush(struct end *e);
/* Is anything waiting, ours or encoded? */
bool end_has_output(const struct end *e);
/* Send now, as much as the socket takes; the number of bytes. Nothing while output is waiting. */
size_t end_send(struct end *e, const char *data, size_t n);
/* Close our direction once; call when everything is flushed. */
void end_shutdown(struct end *e);
/* Make the close that follows a reset, so that the peer cannot take it for a proper end. */
void end_reset_on_close(struct end *e);

#endif
