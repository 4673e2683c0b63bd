/* wire/http1: what has one reading is read, everything else is refused. */
#include "../../helpers/unit.h"
#include "wire/http1.h"

static int parse(enum http1_kind kind, const char *text, struct http1_head *ret, struct err *e)
{
    http1_head_init(ret, kind);
    return http1_head_parse(ret, text, strlen(text), e);
}

static void test_request(void **state)
{
    (void)state;
    static const char text[] = "POST http://a.test/x?y=1 HTTP/1.1\r\nHost: a.test\r\nX-A:  b c \r\n"
                               "Content-Length: 5\r\nEmpty:\r\n\r\nhello";
    static struct http1_head h;
    struct err e = {0};
    bool more = true;
    assert_int_equal(parse(HTTP1_REQUEST, text, &h, &e), 1);
    assert_int_equal(h.size, sizeof(text) - 1 - 5);
    assert_true(http1_is(&h, h.method, "POST"));
    assert_true(http1_is(&h, h.target, "http://a.test/x?y=1"));
    assert_int_equal(h.minor, 1);
    assert_int_equal(h.n_headers, 4);
    assert_int_equal(h.body, HTTP1_BODY_LENGTH);
    assert_int_equal(h.length, 5);
    assert_true(h.keep_alive);
    const struct http1_header *x = http1_find(&h, "x-a", &more);
    assert_non_null(x);
    assert_false(more);
    assert_true(http1_is(&h, x->value, "b c"));
    assert_int_equal(http1_find(&h, "empty", NULL)->value.len, 0);
    assert_null(http1_find(&h, "none", NULL));
}

/* However the bytes arrive, and wherever they lie by then. */
static void test_byte_by_byte(void **state)
{
    (void)state;
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Upgrade\r\nUpgrade: "
                               "websocket\r\nX: y\r\n\r\n";
    static struct http1_head h;
    struct err e = {0};
    http1_head_init(&h, HTTP1_REQUEST);
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        char *copy = malloc(n + 1);
        memcpy(copy, text, n);
        assert_int_equal(http1_head_parse(&h, copy, n, &e), 0);
        free(copy);
    }
    assert_int_equal(http1_head_parse(&h, text, sizeof(text) - 1, &e), 1);
    assert_int_equal(h.n_headers, 4);
    assert_true(h.wants_upgrade);
    assert_true(http1_is_hop(&h, http1_find(&h, "x", NULL)));
}

/* Shapes that two readers would read differently. */
static void test_smuggling(void **state)
{
    (void)state;
#define LINE "POST http://a/ HTTP/1.1\r\nHost: a\r\n"
    static const char *const rows[] = {
        LINE "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        LINE "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
        LINE "Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
        LINE "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        LINE "Content-Length: 5, 5\r\n\r\n",
        LINE "Content-Length: +5\r\n\r\n",
        LINE "Content-Length: -5\r\n\r\n",
        LINE "Content-Length: 0x5\r\n\r\n",
        LINE "Content-Length: 5 5\r\n\r\n",
        LINE "Content-Length:\r\n\r\n",
        LINE "Content-Length: 18446744073709551617\r\n\r\n",
        LINE "Transfer-Encoding: gzip, chunked\r\n\r\n",
        LINE "Transfer-Encoding: identity\r\n\r\n",
        LINE "Transfer-Encoding: chunked, chunked\r\n\r\n",
        LINE "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        LINE "Transfer-Encoding: \x0b"
             "chunked\r\n\r\n",
        LINE "Transfer-Encoding: chunked;x\r\n\r\n",
        LINE "Transfer-Encoding:\r\n\r\n",
        LINE "Transfer-Encoding : chunked\r\n\r\n",
        LINE "Content-Length : 5\r\n\r\n",
        LINE " Content-Length: 5\r\n\r\n",
        LINE "X: a\r\n b\r\n\r\n",
        LINE "X: a\r\n\tb\r\n\r\n",
        LINE "X: a\nY: b\r\n\r\n",
        LINE "X: a\r\n\n",
        LINE "X: a\rY: b\r\n\r\n",
        LINE "X: a\r\r\n\r\n",
        LINE "X: \x01\r\n\r\n",
        LINE "X: \x7f\r\n\r\n",
        LINE "X\r\n\r\n",
        LINE ": x\r\n\r\n",
        LINE "X\xc3\xa4: y\r\n\r\n",
        LINE "X(: y\r\n\r\n",
        LINE "Host: a\r\n\r\n",
        LINE "Host: b\r\n\r\n",
        LINE "Upgrade: a\r\nUpgrade: b\r\n\r\n",
        LINE "Expect: 200-ok\r\n\r\n",
        "GET http://a/ HTTP/1.1\n\n",
        "GET http://a/ HTTP/1.1\nHost: a\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\n\r\n", /* no Host */
        "\r\nGET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET  http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a/  HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a/ HTTP/1.1 \r\nHost: a\r\n\r\n",
        " GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET\thttp://a/\tHTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a/ b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a/\r\nHost: a\r\n\r\n",
        "GET HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a/ HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET http://a/ HTTP/1.2\r\nHost: a\r\n\r\n",
        "GET http://a/ http/1.1\r\nHost: a\r\n\r\n",
        "GET http://a/ HTTP/1.10\r\nHost: a\r\n\r\n",
        "G@T http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "\x16\x03\x01\x02\r\n",
    };
#undef LINE
    static struct http1_head h;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err e = {0};
        if (parse(HTTP1_REQUEST, rows[i], &h, &e) != -1)
            fail_msg("accepted: %s", rows[i]);
        assert_int_equal(e.code, ERR_PARSE_ERROR);
    }
}

static void test_nul_is_refused(void **state)
{
    (void)state;
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n";
    static const char line[] = "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n";
    static struct http1_head h;
    http1_head_init(&h, HTTP1_REQUEST);
    assert_int_equal(http1_head_parse(&h, text, sizeof(text) - 1, NULL), -1);
    http1_head_init(&h, HTTP1_REQUEST);
    assert_int_equal(http1_head_parse(&h, line, sizeof(line) - 1, NULL), -1);
}

static void test_limits_are_named(void **state)
{
    (void)state;
    static struct http1_head h;
    struct err e = {0};
    autobuf b = BUF_INIT;
    buf_puts(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (unsigned i = 1; i < HTTP1_HEADERS_MAX; i++)
        buf_puts(&b, "X: y\r\n");
    http1_head_init(&h, HTTP1_REQUEST);
    assert_int_equal(http1_head_parse(&h, buf_bytes(&b), b.len, &e), 0);
    buf_puts(&b, "X: y\r\n");
    assert_int_equal(http1_head_parse(&h, buf_bytes(&b), b.len, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_non_null(strstr(e.message, "HTTP1_HEADERS_MAX"));

    buf_reset(&b, 0);
    buf_puts(&b, "GET / HTTP/1.1\r\nX: ");
    while (b.len < HTTP1_HEAD_MAX)
        buf_putc(&b, 'a');
    http1_head_init(&h, HTTP1_REQUEST);
    assert_int_equal(http1_head_parse(&h, buf_bytes(&b), b.len, &e), -1);
    assert_non_null(strstr(e.message, "HTTP1_HEAD_MAX"));
}

static void test_responses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
        unsigned status;
        enum http1_body body;
        bool keep_alive;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", 1, 200, HTTP1_BODY_LENGTH, true},
        {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 1, 200, HTTP1_BODY_LENGTH, true},
        {"HTTP/1.1 200 \r\n\r\n", 1, 200, HTTP1_BODY_CLOSE, false},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 1, 200, HTTP1_BODY_CHUNKED, true},
        {"HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\n", 1, 204, HTTP1_BODY_NONE, true},
        {"HTTP/1.1 304 N\r\nTransfer-Encoding: chunked\r\n\r\n", 1, 304, HTTP1_BODY_NONE, true},
        {"HTTP/1.1 100 Continue\r\n\r\n", 1, 100, HTTP1_BODY_NONE, true},
        {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", 1, 200, HTTP1_BODY_LENGTH, false},
        {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\n", 1, 200,
         HTTP1_BODY_LENGTH, true},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\n", 1, 200,
         HTTP1_BODY_LENGTH, false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", -1, 0, 0, 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", -1, 0, 0, 0},
        {"HTTP/1.1 20 OK\r\n\r\n", -1, 0, 0, 0},
        {"HTTP/1.1 600 OK\r\n\r\n", -1, 0, 0, 0},
        {"HTTP/1.1 200OK\r\n\r\n", -1, 0, 0, 0},
        {"HTTP/1.1  200 OK\r\n\r\n", -1, 0, 0, 0},
        {"HTTP/2 200 OK\r\n\r\n", -1, 0, 0, 0},
        {"SSH-2.0-x\r\n", -1, 0, 0, 0},
    };
    static struct http1_head h;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err e = {0};
        int r = parse(HTTP1_RESPONSE, rows[i].text, &h, &e);
        if (r != rows[i].result)
            fail_msg("%s: %d %s", rows[i].text, r, e.message);
        if (r < 0)
            continue;
        assert_int_equal(h.status, rows[i].status);
        assert_int_equal(h.body, rows[i].body);
        assert_int_equal(h.keep_alive, rows[i].keep_alive);
    }
}

static void test_copied_headers(void **state)
{
    (void)state;
    static const char text[] =
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, X-Private\r\nProxy-Connection: "
        "keep-alive\r\nX-Private: 1\r\nX-Public:  2\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: "
        "h2c\r\nHTTP2-Settings: x\r\nProxy-Authorization: Basic x\r\nAuthorization: Bearer "
        "y\r\n\r\n";
    static struct http1_head h;
    autobuf out = BUF_INIT;
    assert_int_equal(parse(HTTP1_REQUEST, text, &h, NULL), 1);
    assert_false(h.keep_alive);
    http1_copy_headers(&h, &out);
    assert_string_equal(buf_cstr(&out), "X-Public: 2\r\nAuthorization: Bearer y\r\n");
}

/* The payload, or NULL when it is refused; *ret_used as far as the body goes. */
static char *decode(const char *text, size_t step, size_t *ret_used)
{
    struct http1_chunked c;
    autobuf out = BUF_INIT;
    size_t n = strlen(text);
    size_t at = 0;
    http1_chunked_init(&c);
    for (size_t end = step; at < n; end += step) {
        size_t stop = end < n ? end : n;
        while (at < stop) {
            size_t used = 0;
            size_t len = 0;
            const char *payload = NULL;
            int r = http1_chunked_step(&c, text + at, stop - at, &used, &payload, &len, NULL);
            if (r < 0)
                return NULL;
            buf_put(&out, payload, len);
            at += used;
            if (r == 1) {
                *ret_used = at;
                return buf_steal(&out);
            }
        }
    }
    return NULL;
}

static void test_chunked(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *payload; /* NULL: refused or without end */
        size_t rest;
    } rows[] = {
        {"0\r\n\r\n", "", 0},
        {"5\r\nhello\r\n0\r\n\r\nGET", "hello", 3},
        {"a;x=\"y\"\r\n0123456789\r\n1\r\nA\r\n00\r\n\r\n", "0123456789A", 0},
        {"1\r\na\r\n0\r\nX-T: v\r\nY:\r\n\r\n", "a", 0},
        {"5\r\nhello\r\n", NULL, 0},
        {"5\nhello\r\n0\r\n\r\n", NULL, 0},
        {"5\r\nhello\n0\r\n\r\n", NULL, 0},
        {"5\r\nhelloo\r\n0\r\n\r\n", NULL, 0},
        {"5\r\nhell\r\n0\r\n\r\n", NULL, 0},
        {"5 \r\nhello\r\n0\r\n\r\n", NULL, 0},
        {" 5\r\nhello\r\n0\r\n\r\n", NULL, 0},
        {"0x5\r\nhello\r\n0\r\n\r\n", NULL, 0},
        {"-5\r\nhello\r\n0\r\n\r\n", NULL, 0},
        {"\r\n", NULL, 0},
        {"g\r\n", NULL, 0},
        {"1000000000000000\r\n", NULL, 0},
        {"1;a\nb\r\na\r\n0\r\n\r\n", NULL, 0},
        {"0\r\n\n", NULL, 0},
        {"0\r\nX\r\n\r\n", NULL, 0},
        {"0\r\nX : y\r\n\r\n", NULL, 0},
        {"0\r\n X: y\r\n\r\n", NULL, 0},
        {"0\r\nX: y\n\r\n", NULL, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t step = 1; step < 40; step += 7) {
            size_t used = 0;
            char *payload = decode(rows[i].text, step, &used);
            if ((payload != NULL) != (rows[i].payload != NULL))
                fail_msg("%s in steps of %zu", rows[i].text, step);
            if (payload != NULL) {
                assert_string_equal(payload, rows[i].payload);
                assert_int_equal(strlen(rows[i].text) - used, rows[i].rest);
            }
            free(payload);
        }
    }
}

static void test_chunked_limits(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    struct err e = {0};
    struct http1_chunked c;
    size_t used = 0;
    size_t len = 0;
    const char *payload = NULL;
    buf_puts(&b, "1;");
    for (unsigned i = 0; i <= HTTP1_CHUNK_LINE_MAX; i++)
        buf_putc(&b, 'x');
    http1_chunked_init(&c);
    assert_int_equal(http1_chunked_step(&c, buf_bytes(&b), b.len, &used, &payload, &len, &e), -1);
    assert_non_null(strstr(e.message, "HTTP1_CHUNK_LINE_MAX"));
    buf_reset(&b, 0);
    buf_puts(&b, "0\r\n");
    for (unsigned i = 0; i <= HTTP1_TRAILERS_MAX / 5; i++)
        buf_puts(&b, "X: y\r\n");
    http1_chunked_init(&c);
    assert_int_equal(http1_chunked_step(&c, buf_bytes(&b), b.len, &used, &payload, &len, &e), -1);
    assert_non_null(strstr(e.message, "HTTP1_TRAILERS_MAX"));
}

UNIT_MAIN(cmocka_unit_test(test_request), cmocka_unit_test(test_byte_by_byte),
          cmocka_unit_test(test_smuggling), cmocka_unit_test(test_nul_is_refused),
          cmocka_unit_test(test_limits_are_named), cmocka_unit_test(test_responses),
          cmocka_unit_test(test_copied_headers), cmocka_unit_test(test_chunked),
          cmocka_unit_test(test_chunked_limits))
