/* Fuzz target for a session (mcp/session, mcp/methods, the tools' arguments): lines of JSON-RPC
 * against the product's tools on a scratch workspace, with a runner that answers nothing. Whatever
 * comes, what is sent is one well-formed message a line, and no request is answered twice. */
#include "../unit/mcp/fixture.h"
#include "base/mem.h"

#define LINES_MAX 32
#define TURNS 8

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static void check_line(const char *line, size_t n)
{
    autojson *message = NULL;
    struct rpc_message m;
    ensure(json_parse(line, n, &message, NULL) == 0);
    /* An answer to what could not be read has no id that could be echoed. */
    ensure(rpc_read(message, &m, NULL) == 0 || json_get(message, "error") != NULL);
}

static void check_sent(struct fixture *f)
{
    const char *p = buf_cstr(&f->sent);
    unsigned lines = 0;
    for (const char *end; (end = strchr(p, '\n')) != NULL; p = end + 1) {
        check_line(p, (size_t)(end - p));
        lines++;
    }
    ensure(lines == f->n_sent);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    void *state = NULL;
    const char *p = (const char *)data;
    const char *end = p + n;
    fixture_setup(&state);
    struct fixture *f = state;
    buf_truncate(&f->sent, 0);
    f->n_sent = 0;
    unsigned requests = 0;
    for (; p < end && requests < LINES_MAX; requests++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline != NULL ? newline : end;
        session_message(&f->session, p, (size_t)(stop - p));
        for (int i = 0; i < TURNS; i++)
            uv_run(&f->loop, UV_RUN_NOWAIT);
        p = stop + 1;
    }
    check_sent(f);
    ensure(f->n_sent <= requests);
    fixture_teardown(&state);
    return 0;
}
