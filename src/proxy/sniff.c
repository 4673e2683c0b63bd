/* proxy/sniff: see sniff.h. */
#include "proxy/sniff.h"

#include "base/mem.h"
#include "wire/http1.h"
#include "wire/tlshello.h"

#include <string.h>

/* A line that is longer than this is no request line that anybody sends. */
#define SNIFF_LINE_MAX 8192

static const char *const methods[] = {"GET ",    "POST ",  "HEAD ",    "PUT ",   "OPTIONS ",
                                      "DELETE ", "PATCH ", "CONNECT ", "TRACE ", "PROPFIND "};

/* Do the bytes begin as a request, or could they with more of them? */
static bool begins_as_request(const char *data, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        size_t len = strlen(methods[i]);
        if (memcmp(data, methods[i], n < len ? n : len) == 0)
            return true;
    }
    return false;
}

/* "... HTTP/1.x" before the end of the line. */
static bool is_request_line(const char *data, size_t n)
{
    if (n > 0 && data[n - 1] == '\r')
        n--;
    return n > 9 && memcmp(data + n - 9, " HTTP/1.", 8) == 0;
}

static enum sniff_result sniff_http(const char *data, size_t n, struct sniff *ret)
{
    struct http1_head head;
    uint16_t port = 0;
    if (!begins_as_request(data, n))
        return SNIFF_OTHER;
    const char *lf = memchr(data, '\n', n);
    if (lf == NULL)
        return n < SNIFF_LINE_MAX ? SNIFF_MORE : SNIFF_OTHER;
    if (!is_request_line(data, (size_t)(lf - data)))
        return SNIFF_OTHER;
    ret->layer = "http";
    http1_head_init(&head, HTTP1_REQUEST);
    int r = http1_head_parse(&head, data, n, NULL);
    if (r == 0)
        return SNIFF_MORE;
    if (r < 0 || head.host < 0)
        return SNIFF_UNNAMED;
    struct http1_slice value = head.headers[head.host].value;
    return host_parse_authority(http1_at(&head, value), value.len, 80, &ret->host, &port, NULL) == 0
               ? SNIFF_NAMED
               : SNIFF_UNNAMED;
}

enum sniff_result sniff_first_bytes(const char *data, size_t n, struct sniff *ret)
{
    struct tlshello hello;
    if (n == 0)
        return SNIFF_MORE;
    int r = tlshello_parse(data, n, &hello);
    if (r < 0)
        return sniff_http(data, n, ret);
    ret->layer = "tls";
    if (r == 0)
        return SNIFF_MORE;
    ret->host = hello.host;
    return hello.name == TLSHELLO_NAME ? SNIFF_NAMED : SNIFF_UNNAMED;
}
