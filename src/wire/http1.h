/* wire/http1: heads and bodies of HTTP/1.1 messages, strictly (RFC 9110, 9112).
 *
 * Theory. Request smuggling is two readers that disagree about where a message ends. So nothing is
 * repaired here: a bare LF or CR, a folded line, a blank before the colon, a NUL, two lengths, a
 * length beside a transfer coding, a coding other than "chunked", a list as a length: each ends the
 * conversation with a reason. What passes has one reading, and whoever forwards it writes the head
 * anew from the slices.
 *
 * A head is parsed where it lies. Each whole line is looked at once, however the bytes arrive: call
 * http1_head_parse() again with the same bytes and more after them; they may have moved. Slices are
 * offsets into those bytes, valid as long as the caller keeps them.
 *
 * Must not: allocate, look at a URL's meaning, or accept what the next reader may read differently.
 */
#ifndef CODESPACE_WIRE_HTTP1_H
#define CODESPACE_WIRE_HTTP1_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A head with its last CRLF: room for large cookies and tokens. */
#define HTTP1_HEAD_MAX 65536u
#define HTTP1_HEADERS_MAX 100u
#define HTTP1_METHOD_MAX 32u
/* The line before a chunk with its extensions, and all trailer lines of one body. */
#define HTTP1_CHUNK_LINE_MAX 1024u
#define HTTP1_TRAILERS_MAX 8192u

enum http1_kind { HTTP1_REQUEST, HTTP1_RESPONSE };

/* X(name, text): headers that framing and forwarding know. Others are HTTP1_OTHER. */
#define HTTP1_KNOWN_TABLE(X)                                                                       \
    X(HOST, "host")                                                                                \
    X(CONTENT_LENGTH, "content-length")                                                            \
    X(TRANSFER_ENCODING, "transfer-encoding")                                                      \
    X(CONNECTION, "connection")                                                                    \
    X(PROXY_CONNECTION, "proxy-connection")                                                        \
    X(KEEP_ALIVE, "keep-alive")                                                                    \
    X(TE, "te")                                                                                    \
    X(TRAILER, "trailer")                                                                          \
    X(UPGRADE, "upgrade")                                                                          \
    X(HTTP2_SETTINGS, "http2-settings")                                                            \
    X(EXPECT, "expect")                                                                            \
    X(PROXY_AUTHENTICATE, "proxy-authenticate")                                                    \
    X(PROXY_AUTHORIZATION, "proxy-authorization")

enum http1_known {
    HTTP1_OTHER,
#define HTTP1_KNOWN_ENUM(name, text) HTTP1_##name,
    HTTP1_KNOWN_TABLE(HTTP1_KNOWN_ENUM)
#undef HTTP1_KNOWN_ENUM
};

struct http1_slice {
    uint32_t at;
    uint32_t len;
};

struct http1_header {
    struct http1_slice name;
    struct http1_slice value; /* without blanks around it */
    enum http1_known known;
};

enum http1_body { HTTP1_BODY_NONE, HTTP1_BODY_LENGTH, HTTP1_BODY_CHUNKED, HTTP1_BODY_CLOSE };

struct http1_head {
    enum http1_kind kind;
    const char *data;                  /* the bytes as last given; slices are offsets into them */
    uint32_t size;                     /* of the whole head, set when it is complete */
    uint32_t scanned;                  /* lines before this are done */
    unsigned minor;                    /* HTTP/1.0 or HTTP/1.1 */
    struct http1_slice method, target; /* request */
    unsigned status;                   /* response */
    struct http1_slice reason;
    struct http1_header headers[HTTP1_HEADERS_MAX];
    uint32_t n_headers;
    enum http1_body body;
    uint64_t length;    /* HTTP1_BODY_LENGTH */
    int host, upgrade;  /* indexes of headers, -1 = none */
    bool keep_alive;    /* by version and Connection */
    bool wants_upgrade; /* Upgrade is there and Connection lists it */
    bool expect_continue;
    bool names_headers; /* Connection lists names of other headers */
};

void http1_head_init(struct http1_head *h, enum http1_kind kind);

/* 1: complete, the first h->size bytes are the head. 0: more bytes are needed. -1: refused:
 * PARSE_ERROR, or LIMIT_EXCEEDED with the limit's name. A response's body is set as for a request
 * other than HEAD and CONNECT. */
int http1_head_parse(struct http1_head *h, const char *data, size_t n, struct err *e);

/* The response answers a HEAD request: no body, whatever the headers say. */
void http1_head_answers_head(struct http1_head *h);

/* Where a slice lies now. */
static inline const char *http1_at(const struct http1_head *h, struct http1_slice s)
{
    return h->data + s.at;
}

/* Is the slice that text? http1_is_ci: in any case of letters. */
bool http1_is(const struct http1_head *h, struct http1_slice s, const char *text);
bool http1_is_ci(const struct http1_head *h, struct http1_slice s, const char *text);

/* The first header of that name, or NULL. *ret_more (may be NULL): there is another one. */
const struct http1_header *http1_find(const struct http1_head *h, const char *name, bool *ret_more);

/* Does a comma-separated list hold that token? */
bool http1_list_has(const struct http1_head *h, struct http1_slice list, const char *token);

/* Belongs to this connection only and is not forwarded (RFC 9110 7.6.1), or is rewritten by whoever
 * forwards: framing, Host, Connection and what it names. */
bool http1_is_hop(const struct http1_head *h, const struct http1_header *header);

/* Append "Name: value\r\n" for every header that is not http1_is_hop(). */
void http1_copy_headers(const struct http1_head *h, struct buf *out);

enum http1_chunk_state {
    HTTP1_CHUNK_SIZE,
    HTTP1_CHUNK_EXTENSION,
    HTTP1_CHUNK_SIZE_LF,
    HTTP1_CHUNK_DATA,
    HTTP1_CHUNK_DATA_CR,
    HTTP1_CHUNK_DATA_LF,
    HTTP1_CHUNK_TRAILER,
    HTTP1_CHUNK_TRAILER_NAME,
    HTTP1_CHUNK_TRAILER_VALUE,
    HTTP1_CHUNK_TRAILER_LF,
    HTTP1_CHUNK_END_LF,
    HTTP1_CHUNK_DONE,
};

struct http1_chunked {
    enum http1_chunk_state state;
    uint64_t left; /* bytes of the current chunk */
    uint32_t digits;
    uint32_t line;     /* bytes of the current size line */
    uint32_t trailers; /* bytes of all trailer lines */
};

void http1_chunked_init(struct http1_chunked *c);

/* Go on with n more bytes, up to the end of one run of payload. *ret_used bytes were taken; the
 * payload among them is *ret_payload_len bytes (perhaps 0) at *ret_payload. 1: the body has ended
 * with the bytes taken; 0: not yet; -1: malformed. */
int http1_chunked_step(struct http1_chunked *c, const char *data, size_t n, size_t *ret_used,
                       const char **ret_payload, size_t *ret_payload_len, struct err *e);

#endif
