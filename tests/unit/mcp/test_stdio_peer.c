/* mcp/stdio_peer: lines in pieces, too long, at the end of input; a client that does not read. */
#include "fixture.h"

#include "mcp/stdio_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"
#define PONG(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{}}\n"
#define INITIALIZE                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\"}}\n"

struct wire {
    struct fixture *f;
    int to, from; /* the client's ends */
    struct buf got;
    bool ended;
};

static void on_ended(void *user)
{
    ((struct wire *)user)->ended = true;
}

static void start(struct wire *w, int in, int out)
{
    struct err e;
    w->f->transport = stdio_peer_new(&w->f->server, in, out, on_ended, w, &e);
    if (w->f->transport == NULL)
        fail_msg("%s", e.message);
}

static void connect_pipes(struct wire *w, struct fixture *f)
{
    int in[2];
    int out[2];
    *w = (struct wire){.f = f};
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    w->to = in[1];
    w->from = out[0];
    assert_int_equal(fcntl(w->from, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(fcntl(w->to, F_SETFL, O_NONBLOCK), 0);
    start(w, in[0], out[1]);
}

static void disconnect(struct wire *w)
{
    stdio_peer_free(steal(w->f->transport));
    uv_run(&w->f->loop, UV_RUN_DEFAULT);
    if (w->to >= 0)
        close(w->to);
    if (w->from >= 0 && w->from != w->to)
        close(w->from);
    buf_fini(&w->got);
}

static void take(struct wire *w)
{
    for (;;) {
        ssize_t n = read(w->from, buf_reserve(&w->got, 65536), 65536);
        if (n <= 0)
            return;
        buf_commit(&w->got, (size_t)n);
    }
}

static void put(struct wire *w, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t k = write(w->to, text, n);
        if (k > 0) {
            text += k;
            n -= (size_t)k;
        }
        uv_run(&w->f->loop, UV_RUN_NOWAIT);
        take(w);
    }
}

/* Run until the bytes are there or the conversation is over. */
static const char *expect(struct wire *w, const char *want)
{
    while (strstr(buf_cstr(&w->got), want) == NULL && !w->ended) {
        uv_run(&w->f->loop, UV_RUN_ONCE);
        take(w);
    }
    take(w);
    return buf_cstr(&w->got);
}

static void run_to_end(struct wire *w)
{
    while (!w->ended) {
        uv_run(&w->f->loop, UV_RUN_ONCE);
        take(w);
    }
    take(w);
}

static void test_pieces(void **state)
{
    struct wire w;
    static const char text[] = PING("1") "\r\n\n  \t\r\n" PING("\"two\"") "\n";
    connect_pipes(&w, *state);
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        put(&w, text + i, 1);
    assert_string_equal(expect(&w, "two"), PONG("1") PONG("\"two\""));
    disconnect(&w);
}

/* The last line needs no newline, and what is due is answered before the end. */
static void test_end_of_input(void **state)
{
    struct wire w;
    connect_pipes(&w, *state);
    put(&w, PING("1") "\n" PING("2"), strlen(PING("1") "\n" PING("2")));
    close(w.to);
    w.to = -1;
    run_to_end(&w);
    assert_string_equal(buf_cstr(&w.got), PONG("1") PONG("2"));
    disconnect(&w);
}

/* Work on the pool is answered before the end; who waits for a process is told that nobody will. */
static void test_end_with_calls(void **state)
{
    struct wire w;
    static const char text[] =
        INITIALIZE "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
                   "\"find\",\"arguments\":{\"workspace_id\":\"ws\"}}}\n"
                   "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"
                   "\"read_process\",\"arguments\":{\"process_id\":\"p\",\"wait_ms\":600000}}}\n";
    connect_pipes(&w, *state);
    put(&w, text, strlen(text));
    close(w.to);
    w.to = -1;
    run_to_end(&w);
    assert_has(buf_cstr(&w.got), "\"id\":1,\"result\"", "\"id\":2,\"error\":{\"code\":-32800",
               NULL);
    assert_int_equal(w.f->fake.cancels, 1);
    disconnect(&w);
}

static void test_too_long(void **state)
{
    struct wire w;
    size_t n = STDIO_LENGTH_MAX + 10;
    autofree char *line = mem_zalloc(n + 1, 1);
    memset(line, 'x', n);
    line[n] = '\n';
    connect_pipes(&w, *state);
    put(&w, line, n + 1);
    put(&w, PING("1") "\n", strlen(PING("1") "\n"));
    const char *out = expect(&w, "\"result\"");
    assert_has(out, "\"id\":null,\"error\":{\"code\":-32600", "STDIO_LENGTH_MAX (16777216",
               PONG("1"), NULL);
    /* One error, not one for each part of the line. */
    assert_null(strstr(strstr(out, "-32600") + 1, "-32600"));
    /* The longest line that is allowed is only bad JSON. */
    line[STDIO_LENGTH_MAX] = '\n';
    buf_truncate(&w.got, 0);
    put(&w, line, STDIO_LENGTH_MAX + 1);
    assert_has(expect(&w, "-32700"), "-32700", NULL);
    disconnect(&w);
}

/* A client that sends and does not read: input stops at the limit, and nothing is lost. */
static void test_back_pressure(void **state)
{
    struct wire w;
    static const char ping[] = PING("1") "\n";
    size_t sent = 0;
    connect_pipes(&w, *state);
    fixture_file(w.f, "a", "x", 1);
    for (int quiet = 0; quiet < 200;) {
        ssize_t n = write(w.to, ping, sizeof(ping) - 1); /* shorter than PIPE_BUF: all or nothing */
        if (n > 0)
            sent++;
        quiet = n > 0 ? 0 : quiet + 1;
        uv_run(&w.f->loop, UV_RUN_NOWAIT);
        if (sent * strlen(PONG("1")) > 4 * STDIO_OUT_MAX)
            fail_msg("input is taken without an end");
    }
    while (w.got.len < sent * strlen(PONG("1"))) {
        uv_run(&w.f->loop, UV_RUN_NOWAIT);
        take(&w);
    }
    const char *out = buf_cstr(&w.got);
    for (size_t i = 0; i < sent; i++)
        assert_memory_equal(out + i * strlen(PONG("1")), PONG("1"), strlen(PONG("1")));
    assert_int_equal(w.got.len, sent * strlen(PONG("1")));
    disconnect(&w);
}

/* Large answers are made only as fast as there is room, and all come. */
static void test_large_answers(void **state)
{
    struct wire w;
    enum { CALLS = 40, SIZE = 1 << 20 };
    autofree char *bytes = mem_zalloc(SIZE, 1);
    connect_pipes(&w, *state);
    memset(bytes, 'x', SIZE);
    fixture_file(w.f, "big", bytes, SIZE);
    put(&w, INITIALIZE, strlen(INITIALIZE));
    for (int i = 0; i < CALLS; i++) {
        autofree char *m =
            mem_printf("{\"jsonrpc\":\"2.0\",\"id\":\"r%d\",\"method\":\"tools/call\","
                       "\"params\":{\"name\":\"read\",\"arguments\":{"
                       "\"workspace_id\":\"ws\",\"path\":\"big\"}}}\n",
                       i);
        assert_int_equal(write(w.to, m, strlen(m)), strlen(m));
    }
    for (int done = 0; done < CALLS;) {
        uv_run(&w.f->loop, UV_RUN_ONCE);
        take(&w);
        for (char *end; (end = memchr(buf_bytes(&w.got), '\n', w.got.len)) != NULL; done++)
            buf_consume(&w.got, (size_t)(end + 1 - buf_bytes(&w.got)));
    }
    disconnect(&w);
}

static void test_broken_output(void **state)
{
    struct wire w;
    connect_pipes(&w, *state);
    close(w.from);
    w.from = -1;
    signal(SIGPIPE, SIG_IGN);
    assert_true(write(w.to, PING("1") "\n", strlen(PING("1") "\n")) > 0);
    while (!w.ended)
        uv_run(&w.f->loop, UV_RUN_ONCE);
    disconnect(&w);
}

/* Both ends one socket, as some launchers do it; its flags are as before afterwards. */
static void test_socket(void **state)
{
    struct fixture *f = *state;
    struct wire w = {.f = f};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int kept = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);
    int flags = fcntl(kept, F_GETFL);
    w.to = w.from = pair[1];
    assert_int_equal(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
    start(&w, pair[0], fcntl(pair[0], F_DUPFD_CLOEXEC, 3));
    put(&w, PING("1") "\n", strlen(PING("1") "\n"));
    assert_string_equal(expect(&w, "result"), PONG("1"));
    shutdown(w.to, SHUT_WR);
    run_to_end(&w);
    disconnect(&w);
    assert_int_equal(fcntl(kept, F_GETFL), flags);
    close(kept);
}

/* A file as input and a file as output. */
static void test_files(void **state)
{
    struct fixture *f = *state;
    struct wire w = {.f = f, .to = -1, .from = -1};
    fixture_file(f, "in", PING("1") "\n" PING("2") "\n", strlen(PING("1") "\n" PING("2") "\n"));
    fixture_file(f, "out", "", 0);
    autofree char *in = mem_printf("%s/in", f->dir);
    autofree char *out = mem_printf("%s/out", f->dir);
    start(&w, open(in, O_RDONLY | O_CLOEXEC), open(out, O_WRONLY | O_CLOEXEC));
    while (!w.ended)
        uv_run(&f->loop, UV_RUN_ONCE);
    w.from = open(out, O_RDONLY | O_CLOEXEC);
    take(&w);
    assert_string_equal(buf_cstr(&w.got), PONG("1") PONG("2"));
    disconnect(&w);
}

/* What a service manager gives a program that has no client. */
static void test_null(void **state)
{
    struct fixture *f = *state;
    struct wire w = {.f = f, .to = -1, .from = -1};
    start(&w, open("/dev/null", O_RDONLY | O_CLOEXEC), open("/dev/null", O_WRONLY | O_CLOEXEC));
    while (!w.ended)
        uv_run(&f->loop, UV_RUN_ONCE);
    disconnect(&w);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
UNIT_MAIN(WITH(test_pieces), WITH(test_end_of_input), WITH(test_end_with_calls),
          WITH(test_too_long), WITH(test_back_pressure), WITH(test_large_answers),
          WITH(test_broken_output), WITH(test_socket), WITH(test_files), WITH(test_null))
