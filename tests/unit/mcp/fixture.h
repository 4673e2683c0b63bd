/* tests/unit/mcp/fixture: a server on a scratch workspace, a session whose peer keeps what is sent,
 * and a runner that does what the test says. No process is started.
 */
#ifndef CODESPACE_TESTS_MCP_FIXTURE_H
#define CODESPACE_TESTS_MCP_FIXTURE_H

#include "../../helpers/unit.h"
#include "core/ledger.h"
#include "mcp/session.h"
#include "mcp/stdio_peer.h"

/* A runner that remembers the last question and answers when it is told to. */
struct fake_runner {
    struct runner runner;
    run_exec_fn exec_done;
    run_page_fn page_done;
    run_done_fn done;
    run_status_fn status_done;
    run_probe_fn probe_done;
    void *user, *probe_user;
    struct run_exec exec;
    struct run_read read;
    char argv0[64];
    char process_id[64];
    char bytes[256];
    size_t n_bytes;
    bool eof;
    struct run_terminate how;
    int signal;
    struct run_list list;
    struct run_listing listing; /* what a list is answered with */
    enum run_warm warm;
    unsigned rows, cols;
    unsigned execs, reads, cancels, terminates, frees;
};

struct fixture {
    char dir[64]; /* root of the workspace "ws" */
    uv_loop_t loop;
    struct registry registry;
    struct fake_runner fake;
    struct ledger *ledger; /* in memory */
    struct server server;
    struct peer peer;
    struct session session;
    struct stdio_peer *transport; /* freed at the end when a test left it */
    struct buf sent;              /* one message a line */
    unsigned n_sent;
    unsigned n_ended;
};

/* For cmocka's setup and teardown; *state is the fixture. The session is initialised (2025-11-25)
 * and the probe has answered "the sandbox works". */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* The same without initialize, and with the probe still running. */
int fixture_setup_raw(void **state);

/* Forget what was sent, hand in one message, and run the loop until nothing is left to do. */
const char *fixture_say(struct fixture *f, const char *message);

/* tools/call with id 7. Returns what was sent. */
const char *fixture_call(struct fixture *f, const char *tool, const char *arguments);

/* Run the loop until nothing is left to do; returns what was sent since the last say. */
const char *fixture_run(struct fixture *f);

void fixture_probe(struct fixture *f, bool works);

/* Answer the runner's last question. */
void fixture_started(struct fixture *f, const char *process_id);
void fixture_page(struct fixture *f, const struct run_page *page);

/* The session's peer keeps notices and questions too. */
void fixture_take_notices(struct fixture *f);

/* End a call of a tool that writes its content itself (TOOL_CONTENT) with one text. */
void fixture_finish_text(struct request *rq, const char *text);

/* Write a file of the workspace. */
void fixture_file(struct fixture *f, const char *name, const void *bytes, size_t n);

/* Fail unless `text` holds each of the strings; the list ends with NULL. */
void assert_has(const char *text, ...) __attribute__((sentinel));

#endif
