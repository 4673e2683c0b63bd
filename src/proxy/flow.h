/* proxy/flow: one direction of bytes, from one end to the other.
 *
 * Theory. Bytes are copied through the scratch block as long as they are few. When the reads keep
 * coming back full, the flow takes a pipe from a pool and lets the kernel move pages from socket to
 * socket (splice), which saves one copy of two on each side. The pipe goes back when the flow goes
 * quiet, so the pool is as large as the number of busy flows, and bounded; without a pipe the copy
 * goes on.
 *
 * Must not: read while output of the receiving end waits: that is the whole of flow control.
 */
#ifndef CODESPACE_PROXY_FLOW_H
#define CODESPACE_PROXY_FLOW_H

#include "proxy/end.h"

/* Pipes for splicing, two descriptors each. */
#define FLOW_PIPES_MAX 64
/* Bytes in flight in one pipe: what has come is mostly taken in one piece, which costs a third less
 * than in pieces of the default size (64 KiB). More has no further effect, and the pipes of one
 * user have a limit (pipe-user-pages-soft). */
#define FLOW_PIPE_SIZE (512 << 10)
/* The send buffer of a busy end that is near (the kernel keeps twice this). Left alone it grows to
 * megabytes, as a long way needs them; the way inside has no length, and what waits there has left
 * the CPU's cache when it is read. This saves a tenth to a fifth of the CPU time of server, proxy
 * and client together; half as much buffer saves the same and takes three times the turns. */
#define FLOW_NEAR_BUFFER (256 << 10)
/* A flow gives way to others after this many bytes. */
#define FLOW_TURN_MAX (2u << 20)
/* Full reads in a row that make a flow busy. */
#define FLOW_BUSY 2

struct flow_pipe {
    int fd[2];
};

struct flow_pool {
    struct flow_pipe idle[FLOW_PIPES_MAX];
    unsigned n_idle;
    unsigned n_all;
};

struct flow {
    struct flow_pipe pipe; /* fd[0] < 0: none */
    size_t in_pipe;
    unsigned full_reads;
};

enum flow_result {
    FLOW_WAIT, /* an end has to become ready */
    FLOW_MORE, /* there is more to do, but others are due */
    FLOW_DONE, /* `*left` bytes were carried and everything is sent */
    FLOW_EOF,  /* the sender has finished and everything is sent */
    FLOW_FAIL, /* an end failed */
};

void flow_init(struct flow *f);
/* Give the pipe back. What it still holds is lost. */
void flow_fini(struct flow_pool *pool, struct flow *f);

/* Carry up to *left bytes (UINT64_MAX: until the end of file); *left is lowered by what was taken
 * from `from`. *ret_moved: some bytes moved. */
enum flow_result flow_pump(struct flow_pool *pool, struct flow *f, struct end *from, struct end *to,
                           char *scratch, uint64_t *left, bool *ret_moved);

#endif
