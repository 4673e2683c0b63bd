/* sys/spawn, sys/session: what the child starts with, how its end is told, who is signalled. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "sys/fd.h"
#include "sys/session.h"
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char *const some_env[] = {(char *)"PATH=/usr/bin:/bin", (char *)"MARK=yes", NULL};

/* Run a shell line; its stdout comes back in `out`. */
static struct spawn_end run(const char *line, int cwd_fd, char *out, size_t cap)
{
    int pair[2];
    struct spawned child = {-1, -1};
    struct spawn_end end = {0};
    assert_int_equal(fd_pipe(pair), 0);
    const int fds[] = {-1, pair[1], STDERR_FILENO};
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)line, NULL};
    const struct spawn_options o = {
        .path = "/bin/sh",
        .argv = argv,
        .env = some_env,
        .fds = fds,
        .n_fds = 3,
        .cwd_fd = cwd_fd,
        .new_session = true,
    };
    assert_int_equal(spawn_start(&o, &child), 0);
    fd_close(&pair[1]);
    size_t n = 0;
    for (ssize_t got; (got = fd_read(pair[0], out + n, cap - 1 - n)) > 0;)
        n += (size_t)got;
    out[n] = '\0';
    fd_close(&pair[0]);
    struct pollfd p = {.fd = child.pidfd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 90000), 1);
    assert_int_equal(spawn_has_ended(child.pidfd), 1);
    assert_int_equal(spawn_reap(child.pidfd, &end), 0);
    assert_int_equal(spawn_signal(child.pidfd, SIGTERM), -ESRCH);
    fd_close(&child.pidfd);
    return end;
}

static void test_clean_start(void **state)
{
    (void)state;
    char out[4096];
    sigset_t set;
    int extra = open("/dev/null", O_RDONLY); /* inheritable on purpose */
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGINT, SIG_IGN);
    run("grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\t\\n'; ls /proc/self/fd | tr "
        "'\\n' "
        "' '; echo $MARK; ps -o pid=,sid= $$ 2>/dev/null || echo",
        -1, out, sizeof(out));
    unsigned long long blocked = 1, ignored = ~0ULL;
    assert_int_equal(sscanf(out, "SigBlk:%16llxSigIgn:%16llx", &blocked, &ignored), 2);
    assert_int_equal(blocked, 0);
    /* 32 and 33 are the C library's own; its posix_spawn leaves them ignored. */
    assert_int_equal(ignored & ~(3ULL << 31), 0);
    assert_non_null(strstr(out, "0 1 2 3 yes")); /* 3 is the directory that ls reads */
    signal(SIGINT, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    close(extra);
}

static void test_ends(void **state)
{
    (void)state;
    char out[64];
    struct spawn_end end = run("exit 5", -1, out, sizeof(out));
    assert_false(end.signaled);
    assert_int_equal(end.value, 5);
    assert_true(end.max_rss_kib > 0);
    end = run("kill -KILL $$", -1, out, sizeof(out));
    assert_true(end.signaled);
    assert_int_equal(end.value, SIGKILL);
}

static void test_cwd(void **state)
{
    (void)state;
    char out[256];
    autofd int dir = open("/usr/bin", O_PATH | O_DIRECTORY | O_CLOEXEC);
    run("pwd -P", dir, out, sizeof(out));
    assert_string_equal(out, "/usr/bin\n");
}

/* Sources that lie below the targets must not be overwritten before their turn. */
static void test_crossed_descriptors(void **state)
{
    (void)state;
    int pair[2];
    char text[16] = "";
    struct spawned child = {-1, -1};
    struct spawn_end end;
    assert_int_equal(fd_pipe(pair), 0);
    /* 1 and 2 change places; the pipe is 3. */
    const int fds[] = {-1, STDERR_FILENO, STDOUT_FILENO, pair[1]};
    char *const argv[] = {
        (char *)"sh", (char *)"-c",
        (char *)"test $(readlink /proc/self/fd/3 | cut -c1-4) = pipe && echo ok >&3", NULL};
    const struct spawn_options o = {
        .path = "/bin/sh", .argv = argv, .env = some_env, .fds = fds, .n_fds = 4, .cwd_fd = -1};
    assert_int_equal(spawn_start(&o, &child), 0);
    fd_close(&pair[1]);
    assert_int_equal(fd_read(pair[0], text, sizeof(text)), 3);
    struct pollfd p = {.fd = child.pidfd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 90000), 1);
    assert_int_equal(spawn_reap(child.pidfd, &end), 0);
    assert_int_equal(end.value, 0);
    fd_close(&child.pidfd);
    fd_close(&pair[0]);
}

static void test_failures(void **state)
{
    (void)state;
    struct spawned child = {-1, -1};
    const int fds[] = {-1, -1, -1};
    char *const argv[] = {(char *)"x", NULL};
    struct spawn_options o = {
        .path = "/nowhere/x", .argv = argv, .env = some_env, .fds = fds, .n_fds = 3, .cwd_fd = -1};
    assert_int_equal(spawn_start(&o, &child), -ENOENT);
    o.path = "/etc/passwd";
    assert_int_equal(spawn_start(&o, &child), -EACCES);
    assert_int_equal(child.pid, -1);
}

static void test_find(void **state)
{
    (void)state;
    char *found = NULL;
    assert_int_equal(spawn_find("sh", "/nowhere::/usr/bin", -1, &found), 0);
    assert_string_equal(found, "/usr/bin/sh");
    free(found);
    found = NULL;
    autofd int bin = open("/usr/bin", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(spawn_find("./sh", "", bin, &found), 0);
    assert_string_equal(found, "./sh");
    free(found);
    assert_int_equal(spawn_find("no-such-thing", "/usr/bin:/bin", -1, &found), -ENOENT);
    assert_int_equal(spawn_find("passwd", "/etc", -1, &found), -EACCES);
    assert_int_equal(spawn_find("/usr", NULL, -1, &found), -EACCES);
    assert_int_equal(spawn_find("sh", NULL, -1, &found), -ENOENT);
    assert_int_equal(spawn_find("", "/usr/bin", -1, &found), -ENOENT);
}

/* Members of other groups of the session are found, counted and ended. */
static void test_session_signal(void **state)
{
    (void)state;
    int pair[2];
    char c;
    struct spawned child = {-1, -1};
    struct spawn_end end;
    assert_int_equal(fd_pipe(pair), 0);
    const int fds[] = {-1, pair[1], -1};
    char *const argv[] = {(char *)"sh", (char *)"-c",
                          (char *)"set -m; sleep 600 & sleep 600 & echo; sleep 600", NULL};
    const struct spawn_options o = {.path = "/bin/sh",
                                    .argv = argv,
                                    .env = some_env,
                                    .fds = fds,
                                    .n_fds = 3,
                                    .cwd_fd = -1,
                                    .new_session = true};
    assert_int_equal(spawn_start(&o, &child), 0);
    fd_close(&pair[1]);
    assert_int_equal(fd_read(pair[0], &c, 1), 1);
    assert_true(session_signal(child.pid, SIGKILL) >= 2);
    struct pollfd p[] = {{.fd = child.pidfd, .events = POLLIN}, {.fd = pair[0], .events = POLLIN}};
    assert_true(poll(p, 1, 90000) > 0);
    assert_int_equal(spawn_reap(child.pidfd, &end), 0);
    assert_int_equal(poll(p + 1, 1, 90000), 1); /* nobody holds the pipe any more */
    assert_int_equal(fd_read(pair[0], &c, 1), 0);
    fd_close(&child.pidfd);
    fd_close(&pair[0]);
}

UNIT_MAIN(cmocka_unit_test(test_clean_start), cmocka_unit_test(test_ends),
          cmocka_unit_test(test_cwd), cmocka_unit_test(test_crossed_descriptors),
          cmocka_unit_test(test_failures), cmocka_unit_test(test_find),
          cmocka_unit_test(test_session_signal))
