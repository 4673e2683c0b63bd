/* sandbox/netcommand: see netcommand.h. */
#include "sandbox/netcommand.h"

#include "base/mem.h"
#include "sys/fd.h"
#include "sys/spawn.h"
#include "sys/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SEARCH_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t netcommand_deadline(void)
{
    return now_ms() + NETCOMMAND_MS;
}

static int left_ms(uint64_t deadline_ms)
{
    uint64_t now = now_ms();
    return now >= deadline_ms ? 0 : (int)(deadline_ms - now);
}

static int failed(struct err *e, const char *why)
{
    return err_set(e, ERR_SANDBOX_UNAVAILABLE, "the command %s", why);
}

/* ---- what it is started with ---- */

/* Name and home of a user id, by hand: the library's look-up would load modules into a static
 * program. */
static void add_user(struct strv *env)
{
    FILE *f = fopen("/etc/passwd", "re");
    char *line = NULL;
    size_t cap = 0;
    while (f != NULL && getline(&line, &cap, f) > 0) {
        const char *field[6] = {line};
        size_t n = 1;
        for (char *at = strchr(line, ':'); at != NULL && n < ARRAY_LEN(field);
             at = strchr(at + 1, ':')) {
            *at = '\0';
            field[n++] = at + 1;
        }
        if (n < ARRAY_LEN(field) || strtoul(field[2], NULL, 10) != geteuid())
            continue;
        strv_addf(env, "USER=%s", field[0]);
        strv_addf(env, "LOGNAME=%s", field[0]);
        strv_addf(env, "HOME=%.*s", (int)strcspn(field[5], ":\n"), field[5]);
        break;
    }
    free(line);
    if (f != NULL)
        fclose(f);
}

static int find_program(const char *path, char **ret, struct err *e)
{
    const char *why = "";
    int rc = trusted_program(path, ret, &why);
    if (rc == -EPERM && *why != '\0')
        return err_set(e, ERR_SANDBOX_UNAVAILABLE, "the command's program %s", why);
    return rc < 0 ? err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc, "the command's program") : 0;
}

static int start(const struct strv *argv, int out, struct spawned *ret, struct err *e)
{
    autofree char *program = NULL;
    autostrv words = {0};
    autostrv env = {0};
    if (find_program(argv->items[0], &program, e) < 0)
        return -1;
    for (size_t i = 0; i < argv->len; i++)
        strv_add(&words, argv->items[i]);
    strv_add(&env, "PATH=" SEARCH_PATH);
    strv_add(&env, "LANG=C.UTF-8");
    add_user(&env);
    autofd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int fds[] = {-1, out, -1};
    const struct spawn_options o = {.path = program,
                                    .argv = strv_array(&words),
                                    .env = strv_array(&env),
                                    .fds = fds,
                                    .n_fds = ARRAY_LEN(fds),
                                    .cwd_fd = root,
                                    .new_session = true};
    int rc = root < 0 ? -errno : spawn_start(&o, ret);
    return rc < 0 ? err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc, "the command cannot be started") : 0;
}

/* ---- what it prints ---- */

/* All there is now. False when it is too much. */
static bool take(int fd, char *out, size_t *len, bool *ret_eof)
{
    for (;;) {
        ssize_t n = fd_read(fd, out + *len, NETCOMMAND_ROOM - *len);
        if (n <= 0) {
            *ret_eof = n != -EAGAIN;
            return true;
        }
        *len += (size_t)n;
        if (*len == NETCOMMAND_ROOM)
            return false;
    }
}

/* Until the process has ended; what others that it started still hold open does not count. */
static int follow(int pidfd, int fd, uint64_t deadline_ms, char *out, size_t *len, struct err *e)
{
    bool eof = false;
    for (;;) {
        struct pollfd p[2] = {{.fd = pidfd, .events = POLLIN},
                              {.fd = eof ? -1 : fd, .events = POLLIN}};
        int ready = poll(p, 2, left_ms(deadline_ms));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return err_set(e, ERR_SANDBOX_UNAVAILABLE,
                           "the command did not end in time (NETCOMMAND_MS: %u ms for all commands "
                           "of egress.inject together)",
                           NETCOMMAND_MS);
        if (!eof && !take(fd, out, len, &eof))
            return err_set(e, ERR_SANDBOX_UNAVAILABLE,
                           "the command printed more than INJECT_VALUE_MAX (%u) bytes",
                           INJECT_VALUE_MAX);
        if (p[0].revents != 0)
            return 0;
    }
}

static int check_end(int pidfd, struct err *e)
{
    struct spawn_end end;
    int rc = spawn_reap(pidfd, &end);
    if (rc < 0)
        return err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc, "the command's end");
    if (end.signaled)
        return err_set(e, ERR_SANDBOX_UNAVAILABLE, "the command was ended by signal %d", end.value);
    if (end.value != 0)
        return err_set(e, ERR_SANDBOX_UNAVAILABLE,
                       "the command failed with exit code %d; run it by hand as this server's user "
                       "to see why",
                       end.value);
    return 0;
}

int netcommand_run(const struct strv *argv, uint64_t deadline_ms, char *out, size_t *ret_len,
                   struct err *e)
{
    struct spawned child = {-1, -1};
    int ends[2];
    size_t len = 0;
    if (left_ms(deadline_ms) == 0)
        return failed(e, "was not started: others took all the time (NETCOMMAND_MS)");
    if (fd_pipe(ends) < 0)
        return failed(e, "has no pipe to print to");
    autofd int from = ends[0];
    fd_set_nonblocking(from, true);
    int rc = start(argv, ends[1], &child, e);
    close(ends[1]);
    if (rc < 0)
        return -1;
    autofd int pidfd = child.pidfd;
    rc = follow(pidfd, from, deadline_ms, out, &len, e);
    /* Its session is its group; whoever is left of it ends now. The number is still its own: it is
     * not reaped. */
    kill(-child.pid, SIGKILL);
    *ret_len = len;
    return rc < 0 ? -1 : check_end(pidfd, e);
}
