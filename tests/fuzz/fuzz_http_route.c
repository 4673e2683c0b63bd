/* Fuzz target for the HTTP transport (mcp/http_*): the bytes of one connection, against the
 * product's tools with a runner that answers nothing.
 *
 * Before them the connection opens a stream of a session of revision 2025-03-26 that can be taken
 * up again; "$S" in the input stands for that session's id. Whatever comes: the answers are
 * well-formed HTTP, and once the client has gone nothing of it is left (connections, calls, bytes
 * that are counted, events that are kept).
 */
#include "../unit/mcp/fixture.h"
#include "base/mem.h"
#include "mcp/http.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define INPUT_MAX 32768u
#define TURNS 40

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static void *state; /* the fixture */
static struct http_server *http;

static void tear_down(void)
{
    http_server_free(http);
    fixture_teardown(&state);
}

static void set_up(void)
{
    const struct http_options options = {.port = 0};
    struct err e;
    fixture_setup_raw(&state);
    struct fixture *f = state;
    fixture_probe(f, true);
    http = http_server_new(&f->server, &options, &e);
    ensure(http != NULL);
    atexit(tear_down);
}

static void open_session(struct http_session *s, struct buf *out)
{
    static const char hello[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"
        "{\"protocolVersion\":\"2025-03-26\"}}";
    static const char pings[] = "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},"
                                "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}]";
    session_message(&s->session, hello, sizeof(hello) - 1);
    buf_printf(out,
               "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
               "Mcp-Session-Id: %s\r\nContent-Length: %zu\r\n\r\n%s",
               s->id, sizeof(pings) - 1, pings);
}

static void put_input(struct buf *out, const char *data, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++) {
        if (data[i] == '$' && i + 1 < n && data[i + 1] == 'S') {
            buf_puts(out, id);
            i++;
        } else {
            buf_putc(out, data[i]);
        }
    }
}

/* Run the loop, take what is sent; until the server hangs up or nothing comes any more. */
static void turn(struct fixture *f, int fd, struct buf *got)
{
    for (int i = 0; i < TURNS && http->n_conns > 0; i++) {
        uv_run(&f->loop, UV_RUN_NOWAIT);
        ssize_t n = read(fd, buf_reserve(got, 65536), 65536);
        if (n > 0)
            buf_commit(got, (size_t)n);
    }
}

static size_t skip_chunks(const char *p, size_t n)
{
    struct http1_chunked chunked;
    size_t at = 0;
    http1_chunked_init(&chunked);
    for (;;) {
        const char *payload = NULL;
        size_t used = 0;
        size_t len = 0;
        int r = http1_chunked_step(&chunked, p + at, n - at, &used, &payload, &len, NULL);
        ensure(r >= 0);
        at += used;
        if (r == 1)
            return at;
        if (used == 0)
            return n; /* it was cut, as the client went */
    }
}

static void check_answers(const struct buf *got)
{
    const char *p = buf_bytes(got);
    size_t left = got->len;
    while (left > 0) {
        struct http1_head head;
        struct err e = {0};
        http1_head_init(&head, HTTP1_RESPONSE);
        int r = http1_head_parse(&head, p, left, &e);
        ensure(r >= 0);
        if (r == 0)
            return;
        p += head.size;
        left -= head.size;
        size_t body = head.body == HTTP1_BODY_NONE      ? 0
                      : head.body == HTTP1_BODY_CHUNKED ? skip_chunks(p, left)
                      : head.body == HTTP1_BODY_LENGTH  ? (size_t)head.length
                                                        : left;
        body = body < left ? body : left;
        p += body;
        left -= body;
    }
}

static void end_sessions(void)
{
    size_t pos = 0;
    for (struct http_session *s; (s = map_next(&http->sessions, &pos, NULL)) != NULL;)
        http_session_free(s);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    int ends[2];
    autobuf sent = BUF_INIT;
    autobuf got = BUF_INIT;
    if (state == NULL)
        set_up();
    struct fixture *f = state;
    struct http_session *s = http_session_new(http, &(struct oauth_principal){0});
    open_session(s, &sent);
    put_input(&sent, (const char *)data, n < INPUT_MAX ? n : INPUT_MAX, s->id);
    ensure(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    ensure(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    http_conn_new(http, ends[0], false);
    ssize_t put = write(ends[1], buf_bytes(&sent), sent.len);
    ensure(put > 0);
    turn(f, ends[1], &got);
    shutdown(ends[1], SHUT_WR);
    turn(f, ends[1], &got);
    close(ends[1]);
    turn(f, -1, &got);
    end_sessions();
    uv_run(&f->loop, UV_RUN_NOWAIT);
    check_answers(&got);
    ensure(http->n_conns == 0 && list_empty(&http->calls));
    ensure(http->bodies == 0 && http->replay == 0);
    return 0;
}
