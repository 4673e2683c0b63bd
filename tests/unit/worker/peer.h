/* tests/unit/worker/peer: the other side of a worker, blocking and byte by byte, so that a test can
 * say anything a stream can carry.
 */
#ifndef CODESPACE_TESTS_WORKER_PEER_H
#define CODESPACE_TESTS_WORKER_PEER_H

#include "../../helpers/unit.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/unixsock.h"
#include "wire/frame.h"
#include "wire/runmsg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PEER_LIMIT_MS 90000 /* a safety net: nothing here needs it on any machine */

struct peer {
    pid_t pid;
    char *dir, *path;
    int words;   /* what it prints */
    int in, out; /* to us, from us; the same for a socket */
    struct buf received;
};

static inline pid_t peer_spawn(char *const *argv, int in, int out)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    char *const env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"CODESPACE_LINUX_SANDBOX_BIN=/none",
                         (char *)"CODESPACE_LOG=error", (char *)"LD_BIND_NOW=1", NULL};
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, env), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static inline const char *peer_bin(void)
{
    const char *bin = getenv("CODESPACE_RUNTIME_BIN");
    assert_non_null(bin);
    return bin;
}

/* Start it on dir/s and wait until it listens. */
static inline void peer_listen(struct peer *p, const char *option)
{
    int words[2];
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *p = (struct peer){.in = -1, .out = -1};
    p->dir = mem_strdup("/tmp/codespace-worker-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    p->path = mem_printf("%s/s", p->dir);
    assert_int_equal(pipe2(words, O_CLOEXEC), 0);
    char *const with[] = {(char *)peer_bin(), (char *)option, p->path, NULL};
    char *const without[] = {(char *)peer_bin(), p->path, NULL};
    p->pid = peer_spawn(option != NULL ? with : without, null, words[1]);
    close(words[1]);
    close(null);
    p->words = words[0];
    char text[32] = "";
    assert_int_equal(read(p->words, text, sizeof(text) - 1), 10);
    assert_string_equal(text, "listening\n");
}

static inline void peer_connect(struct peer *p)
{
    p->in = p->out = unixsock_connect(p->path);
    assert_true(p->in >= 0);
}

/* --stdio over two pipes. */
static inline void peer_stdio(struct peer *p)
{
    int to[2], from[2];
    char *const argv[] = {(char *)peer_bin(), (char *)"--stdio", NULL};
    *p = (struct peer){.words = -1};
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    p->pid = peer_spawn(argv, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    p->out = to[1];
    p->in = from[0];
}

static inline void peer_bytes(struct peer *p, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        ssize_t done = write(p->out, at, n);
        if (done <= 0)
            return; /* it has hung up: what follows finds out */
        at += done;
        n -= (size_t)done;
    }
}

static inline void peer_text(struct peer *p, const char *text)
{
    autobuf out = BUF_INIT;
    size_t begun = frame_begin(&out);
    buf_puts(&out, text);
    assert_int_equal(frame_end(&out, begun), 0);
    peer_bytes(p, buf_bytes(&out), out.len);
}

/* A request with that data. */
static inline void peer_ask(struct peer *p, const char *id, const char *op, const char *data)
{
    autofree char *text =
        mem_printf("{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"%s\",\"op\":{\"op\":"
                   "\"%s\",\"data\":%s}}",
                   id, op, data);
    peer_text(p, text);
}

/* The next message; false at the end of the stream. */
static inline bool peer_next(struct peer *p, struct runmsg *ret)
{
    size_t len = 0;
    struct err e = {0};
    while (frame_look(&p->received, &len) != 1) {
        struct pollfd fd = {p->in, POLLIN, 0};
        if (poll(&fd, 1, PEER_LIMIT_MS) != 1)
            fail_msg("nothing came");
        ssize_t n = read(p->in, buf_reserve(&p->received, 65536), 65536);
        if (n <= 0)
            return false;
        buf_commit(&p->received, (size_t)n);
    }
    assert_int_equal(runmsg_read(buf_bytes(&p->received) + FRAME_HEAD, len, ret, &e), 0);
    frame_consume(&p->received, len);
    return true;
}

/* The next message must be a failure with that code for that request. */
static inline void peer_expect_failure(struct peer *p, const char *id, enum err_code code)
{
    struct runmsg m;
    if (!peer_next(p, &m))
        fail_msg("hung up instead of %s", err_info(code)->name);
    assert_true(m.failed);
    assert_string_equal(err_info(m.failure.code)->name, err_info(code)->name);
    if (id != NULL)
        assert_string_equal(m.request_id, id);
    runmsg_fini(&m);
}

static inline void peer_expect_end(struct peer *p)
{
    struct runmsg m;
    assert_false(peer_next(p, &m));
}

static inline void peer_hello(struct peer *p)
{
    struct runmsg m;
    peer_ask(p, "h", "hello", "{\"program\":\"test\"}");
    assert_true(peer_next(p, &m));
    assert_false(m.failed);
    assert_int_equal(m.op, RUNMSG_HELLO);
    assert_int_equal(((struct runmsg_welcome *)m.data)->protocol, 5);
    runmsg_fini(&m);
}

/* Wait for its end and give all back; the exit status. */
static inline int peer_end(struct peer *p)
{
    int status = 0;
    if (p->in >= 0)
        close(p->in);
    if (p->out >= 0 && p->out != p->in)
        close(p->out);
    if (p->words >= 0)
        close(p->words);
    for (int i = 0; waitpid(p->pid, &status, WNOHANG) == 0; i++) {
        if (i > PEER_LIMIT_MS / 10)
            fail_msg("the worker does not end");
        usleep(10000);
    }
    if (p->path != NULL)
        unlink(p->path);
    if (p->dir != NULL)
        rmdir(p->dir);
    free(p->path);
    free(p->dir);
    buf_fini(&p->received);
    return status;
}

#endif
