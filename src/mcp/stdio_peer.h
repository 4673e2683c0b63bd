/* mcp/stdio_peer: the transport over a pair of descriptors, one message a line.
 *
 * Theory. Every turn of the loop reads once, hands every complete line to the session, and writes
 * all answers with one write. When STDIO_OUT_MAX bytes of answers wait for the client to read them,
 * or STDIO_COMING_MAX are being put together, no more input is taken until there is room. A line
 * longer than STDIO_LENGTH_MAX is thrown away up to its newline and answered with an error.
 *
 * Neither descriptor may block, and O_NONBLOCK belongs to the open file, which we share with
 * whoever gave it to us (a terminal's shell would be left with it). So the file is opened a second
 * time through /proc/self/fd, for a flag of our own; where that does not work (sockets) the flag is
 * set and put back at the end. Regular files never block and cannot be polled: they are read in
 * idle turns.
 *
 * The end: end of input lets what is being worked on come to its answer (for STDIO_DRAIN_MS at
 * most) and gives up what waits for processes; an output that broke ends at once.
 *
 * Must not: block the loop, or write anything but messages.
 */
#ifndef CODESPACE_MCP_STDIO_PEER_H
#define CODESPACE_MCP_STDIO_PEER_H

#include "mcp/session.h"

/* Longest message. A patch of PATCH_TEXT_MAX escaped into JSON fits. */
#define STDIO_LENGTH_MAX (16u << 20)
/* Answers that may wait for the client before input waits too. */
#define STDIO_OUT_MAX (4u << 20)
/* Answers that may be in the making: eight of the largest reads, more than there are threads. */
#define STDIO_COMING_MAX (16u << 20)
/* One read; small enough that a turn stays short, large enough for hundreds of calls. */
#define STDIO_READ_BYTES 65536u
/* Time for calls that are being worked on when input ends. */
#define STDIO_DRAIN_MS 2000u

struct stdio_peer;

/* Called once, when the conversation is over. The transport must be freed later, not from inside
 * this function: calls may still be on the stack. */
typedef void (*stdio_peer_ended_fn)(void *user);

/* Takes both descriptors. Returns NULL and an err when they cannot be served. */
struct stdio_peer *stdio_peer_new(struct server *server, int in_fd, int out_fd,
                                  stdio_peer_ended_fn ended, void *user, struct err *e);

/* Cancels what is in flight and closes; run the loop afterwards, the memory goes with the last
 * handle. NULL is fine. */
void stdio_peer_free(struct stdio_peer *t);

#endif
