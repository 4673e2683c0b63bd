/* proxy/sniff: which name the first bytes of a tunnel tell the server (C10: domain fronting).
 *
 * A TLS hello says it in its server name, an HTTP request in its Host. Other protocols are not
 * known and pass at once: bytes are held back only while they can still become one of the two, so
 * no protocol waits for bytes that its client does not send. Only the first message of a tunnel is
 * looked at. Pure; must not: judge.
 */
#ifndef CODESPACE_PROXY_SNIFF_H
#define CODESPACE_PROXY_SNIFF_H

#include "wire/host.h"

enum sniff_result {
    SNIFF_MORE,    /* more bytes are needed to tell */
    SNIFF_OTHER,   /* neither TLS nor HTTP */
    SNIFF_NAMED,   /* ret->host */
    SNIFF_UNNAMED, /* TLS or HTTP without a name, or with one that is no host */
};

struct sniff {
    const char *layer; /* "tls" or "http" */
    struct host host;
};

enum sniff_result sniff_first_bytes(const char *data, size_t n, struct sniff *ret);

#endif
