/* wire/http1: the chunked coding (RFC 9112 7.1), byte by byte between runs of payload.
 *
 * As strict as the heads: no blank in a size, CRLF and nothing else ends a line, extensions are
 * skipped but bounded and of visible bytes, trailers must be well-formed header lines. A trailer
 * cannot name framing: the receivers of this decoder do not act on trailers.
 */
#include "wire/http1.h"

#include <string.h>

void http1_chunked_init(struct http1_chunked *c)
{
    *c = (struct http1_chunked){.state = HTTP1_CHUNK_SIZE};
}

static int malformed(struct err *e, const char *why)
{
    return err_set(e, ERR_PARSE_ERROR, "HTTP: %s", why);
}

static int hex_value(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int step_size(struct http1_chunked *c, unsigned char b, struct err *e)
{
    int digit = hex_value(b);
    if (digit >= 0) {
        /* 15 digits are an exabyte and cannot overflow. */
        if (++c->digits > 15)
            return malformed(e, "a chunk size has more than 15 digits");
        c->left = c->left << 4 | (unsigned)digit;
        return 0;
    }
    if (c->digits == 0)
        return malformed(e, "a chunk must begin with its size in hexadecimal");
    if (b == '\r')
        c->state = HTTP1_CHUNK_SIZE_LF;
    else if (b == ';')
        c->state = HTTP1_CHUNK_EXTENSION;
    else
        return malformed(e, "after a chunk size only CRLF or ';' may follow");
    return 0;
}

static int step_extension(struct http1_chunked *c, unsigned char b, struct err *e)
{
    if (b == '\r')
        c->state = HTTP1_CHUNK_SIZE_LF;
    else if (b != '\t' && (b < 0x20 || b == 0x7f))
        return malformed(e, "a chunk extension holds a control character");
    else if (++c->line > HTTP1_CHUNK_LINE_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "HTTP1_CHUNK_LINE_MAX: chunk extensions may have at most %u bytes",
                       HTTP1_CHUNK_LINE_MAX);
    return 0;
}

static int expect_lf(struct http1_chunked *c, unsigned char b, enum http1_chunk_state next,
                     struct err *e)
{
    if (b != '\n')
        return malformed(e, "CR without LF in a chunked body");
    c->state = next;
    return 0;
}

static int step_size_lf(struct http1_chunked *c, unsigned char b, struct err *e)
{
    return expect_lf(c, b, c->left == 0 ? HTTP1_CHUNK_TRAILER : HTTP1_CHUNK_DATA, e);
}

static int step_data_end(struct http1_chunked *c, unsigned char b, struct err *e)
{
    if (c->state == HTTP1_CHUNK_DATA_CR) {
        if (b != '\r')
            return malformed(e, "a chunk is longer than its size says");
        c->state = HTTP1_CHUNK_DATA_LF;
        return 0;
    }
    c->digits = 0;
    c->line = 0;
    return expect_lf(c, b, HTTP1_CHUNK_SIZE, e);
}

static bool is_token(unsigned char b)
{
    return b > 0x20 && b < 0x7f && strchr("\"(),/:;<=>?@[\\]{}", b) == NULL;
}

static int step_trailer(struct http1_chunked *c, unsigned char b, struct err *e)
{
    if (++c->trailers > HTTP1_TRAILERS_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "HTTP1_TRAILERS_MAX: trailers may have at most %u bytes",
                       HTTP1_TRAILERS_MAX);
    if (c->state == HTTP1_CHUNK_TRAILER && b == '\r') {
        c->state = HTTP1_CHUNK_END_LF;
    } else if (c->state == HTTP1_CHUNK_TRAILER_VALUE) {
        if (b == '\r')
            c->state = HTTP1_CHUNK_TRAILER_LF;
        else if (b != '\t' && (b < 0x20 || b == 0x7f))
            return malformed(e, "a trailer holds a control character");
    } else if (is_token(b)) {
        c->state = HTTP1_CHUNK_TRAILER_NAME;
    } else if (c->state == HTTP1_CHUNK_TRAILER_NAME && b == ':') {
        c->state = HTTP1_CHUNK_TRAILER_VALUE;
    } else {
        return malformed(e, "a trailer line must be a name, ':' right after it, and a value");
    }
    return 0;
}

static int step(struct http1_chunked *c, unsigned char b, struct err *e)
{
    switch (c->state) {
    case HTTP1_CHUNK_SIZE:
        return step_size(c, b, e);
    case HTTP1_CHUNK_EXTENSION:
        return step_extension(c, b, e);
    case HTTP1_CHUNK_SIZE_LF:
        return step_size_lf(c, b, e);
    case HTTP1_CHUNK_DATA_CR:
    case HTTP1_CHUNK_DATA_LF:
        return step_data_end(c, b, e);
    case HTTP1_CHUNK_TRAILER_LF:
        return expect_lf(c, b, HTTP1_CHUNK_TRAILER, e);
    case HTTP1_CHUNK_END_LF:
        return expect_lf(c, b, HTTP1_CHUNK_DONE, e);
    default:
        return step_trailer(c, b, e);
    }
}

int http1_chunked_step(struct http1_chunked *c, const char *data, size_t n, size_t *ret_used,
                       const char **ret_payload, size_t *ret_payload_len, struct err *e)
{
    size_t i = 0;
    *ret_payload_len = 0;
    while (i < n && c->state != HTTP1_CHUNK_DONE) {
        if (c->state != HTTP1_CHUNK_DATA) {
            if (step(c, (unsigned char)data[i++], e) < 0)
                return -1;
            continue;
        }
        size_t take = n - i < c->left ? n - i : (size_t)c->left;
        *ret_payload = data + i;
        *ret_payload_len = take;
        c->left -= take;
        c->state = c->left == 0 ? HTTP1_CHUNK_DATA_CR : HTTP1_CHUNK_DATA;
        i += take;
        break;
    }
    *ret_used = i;
    return c->state == HTTP1_CHUNK_DONE;
}
