/* Fuzz target for wire/http1. The first byte chooses: a request, a response or a chunked body.
 * However the bytes are cut the outcome must be the same, and a head that was accepted, written
 * again as the proxy writes it, must be accepted again with the same framing. */
#include "base/mem.h"
#include "wire/http1.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static int parse_cut(struct http1_head *h, enum http1_kind kind, const char *data, size_t n,
                     size_t step)
{
    int r = 0;
    http1_head_init(h, kind);
    for (size_t end = step; r == 0; end += step) {
        size_t now = end < n ? end : n;
        autofree char *moved = mem_dup(data, now);
        struct err e = {0};
        r = http1_head_parse(h, moved, now, &e);
        ensure((r < 0) == (e.code != ERR_NONE));
        if (now == n)
            break;
    }
    h->data = data;
    return r;
}

static void write_again(const struct http1_head *h, enum http1_kind kind)
{
    static struct http1_head again;
    autobuf out = BUF_INIT;
    buf_puts(&out, kind == HTTP1_REQUEST ? "GET / HTTP/1.1\r\nHost: a\r\n" : "HTTP/1.1 200 OK\r\n");
    http1_copy_headers(h, &out);
    buf_puts(&out, "\r\n");
    http1_head_init(&again, kind);
    ensure(http1_head_parse(&again, buf_bytes(&out), out.len, NULL) == 1);
    ensure(again.size == out.len && again.n_headers <= h->n_headers + 1);
    /* Nothing that frames may have come through as an ordinary header. */
    ensure(again.body == (kind == HTTP1_REQUEST ? HTTP1_BODY_NONE : HTTP1_BODY_CLOSE));
    ensure(!again.wants_upgrade);
}

static void fuzz_head(enum http1_kind kind, const char *data, size_t n)
{
    static struct http1_head whole;
    static struct http1_head cut;
    int r = parse_cut(&whole, kind, data, n, n + 1);
    if (n < 512)
        ensure(parse_cut(&cut, kind, data, n, 1) == r);
    if (r <= 0)
        return;
    ensure(whole.size <= n && whole.n_headers <= HTTP1_HEADERS_MAX);
    ensure(whole.body != HTTP1_BODY_LENGTH || whole.length < UINT64_C(1000000000000000000));
    if (n < 512)
        ensure(cut.size == whole.size && cut.body == whole.body && cut.length == whole.length);
    if (whole.n_headers < HTTP1_HEADERS_MAX)
        write_again(&whole, kind);
}

static int decode(const char *data, size_t n, size_t step, struct buf *out, size_t *ret_used)
{
    struct http1_chunked c;
    size_t at = 0;
    int r = 0;
    http1_chunked_init(&c);
    while (r == 0 && at < n) {
        const char *payload = NULL;
        size_t len = 0;
        size_t used = 0;
        size_t now = n - at < step ? n - at : step;
        r = http1_chunked_step(&c, data + at, now, &used, &payload, &len, NULL);
        if (r < 0)
            return r;
        ensure(used <= now && len <= used);
        buf_put(out, payload, len);
        at += used;
    }
    *ret_used = at;
    return r;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    if (n == 0)
        return 0;
    const char *text = (const char *)data + 1;
    switch (data[0]) {
    case 'q':
        fuzz_head(HTTP1_REQUEST, text, n - 1);
        break;
    case 's':
        fuzz_head(HTTP1_RESPONSE, text, n - 1);
        break;
    default: {
        autobuf whole = BUF_INIT;
        autobuf cut = BUF_INIT;
        size_t used_whole = 0;
        size_t used_cut = 0;
        int r = decode(text, n - 1, n, &whole, &used_whole);
        ensure(decode(text, n - 1, 1, &cut, &used_cut) == r);
        ensure(r < 0 || (used_whole == used_cut && whole.len == cut.len &&
                         memcmp(buf_bytes(&whole), buf_bytes(&cut), cut.len) == 0));
    }
    }
    return 0;
}
