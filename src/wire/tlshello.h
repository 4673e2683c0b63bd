/* wire/tlshello: the server name in a TLS ClientHello (RFC 8446, RFC 6066), and nothing else of it.
 *
 * Used on the first bytes of a tunnel to compare the name a client tells the server with the name
 * it told the proxy. The handshake message may be spread over several records. Must not: judge
 * anything but the shape on the way to the name.
 */
#ifndef CODESPACE_WIRE_TLSHELLO_H
#define CODESPACE_WIRE_TLSHELLO_H

#include "wire/host.h"

/* A hello with post-quantum shares and a padded encrypted hello stays under 4 KiB. */
#define TLSHELLO_MAX 16384

enum tlshello_name { TLSHELLO_NONE, TLSHELLO_BAD, TLSHELLO_NAME };

struct tlshello {
    enum tlshello_name name;
    struct host host; /* TLSHELLO_NAME */
};

/* 1: a whole hello, *ret tells its name. 0: a hello so far, more bytes are needed. -1: not a TLS
 * hello, or longer than TLSHELLO_MAX. */
int tlshello_parse(const void *data, size_t n, struct tlshello *ret);

#endif
