/* wire/socks: SOCKS version 5 (RFC 1928), the server's half.
 *
 * Only what the proxy serves is understood: no authentication (a password on a loopback inside a
 * sandbox protects nothing), CONNECT, names and both kinds of address. A name arrives with its
 * length, so it may hold any byte; wire/host decides what is one.
 *
 * Must not: look anything up.
 */
#ifndef CODESPACE_WIRE_SOCKS_H
#define CODESPACE_WIRE_SOCKS_H

#include "base/buf.h"
#include "wire/host.h"

#define SOCKS_VERSION 5
/* version, count and 255 methods; version, command, 0, type, length, 255 bytes, port. */
#define SOCKS_MESSAGE_MAX 262

enum socks_reply {
    SOCKS_OK = 0,
    SOCKS_FAILED = 1,
    SOCKS_NOT_ALLOWED = 2,
    SOCKS_NETWORK_UNREACHABLE = 3,
    SOCKS_HOST_UNREACHABLE = 4,
    SOCKS_REFUSED = 5,
    SOCKS_EXPIRED = 6,
    SOCKS_NO_COMMAND = 7,
    SOCKS_NO_ADDRESS_TYPE = 8,
};

struct socks_request {
    size_t size; /* bytes of the message */
    struct host host;
    uint16_t port;
    enum socks_reply reply; /* what to answer when it is refused */
};

/* The greeting. 1: complete, *ret_size bytes, and *ret_no_auth tells whether the client can do
 * without authentication. 0: more bytes are needed. -1: not SOCKS 5. */
int socks_greeting_parse(const char *data, size_t n, size_t *ret_size, bool *ret_no_auth);

/* The request. 1: complete. 0: more bytes are needed. -1: refused with ret->reply; `e` says why. */
int socks_request_parse(const char *data, size_t n, struct socks_request *ret, struct err *e);

/* Answers to the two. The bound address in a reply is 0.0.0.0:0: clients make no use of it and
 * where the host dials from is not the sandbox's business. */
void socks_greeting_answer(bool accepted, struct buf *out);
void socks_reply_write(enum socks_reply reply, struct buf *out);

#endif
