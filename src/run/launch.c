/* run/launch: from a request to a child.
 *
 * Theory. Sandboxed: the policy is compiled into a request, and `HELPER start` is the managed
 * process from the beginning (run/start): it prepares, answers on the control socket, and becomes
 * the sandbox. Once the probe has succeeded nothing here ever runs a command without the sandbox
 * (R14). Host: only when the probe failed and nobody demands the sandbox (R13); the program is
 * looked up in the command's own PATH and started in a session of its own.
 *
 * Must not: run a command of which it is not certain that the zygote did not take it.
 */
#include "run/managed.h"

#include "core/policy.h"
#include "run/ends.h"
#include "run/grave.h"
#include "run/start.h"
#include "run/warm.h"
#include "sys/fd.h"
#include "sys/path.h"
#include "sys/pty.h"
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A sandbox that is being made is looked at again after so long. */
#define AWAIT_WARM_MS 2

void launch_fail(struct managed *m, enum err_code code, const char *format, ...)
{
    char text[ERR_MESSAGE_MAX];
    va_list ap;
    if (m->failure != NULL)
        return;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    m->failure = mem_new(struct err);
    err_set(m->failure, code, "%s", text);
}

static void refused(struct managed *m, const struct err *e)
{
    launch_fail(m, e->code, "%s", e->message);
    managed_feed(m, PROCESS_ON_REFUSED);
}

static void refused_sys(struct managed *m, int errnum, const char *what)
{
    struct err e;
    err_sys(&e, ERR_PROCESS_SPAWN_FAILED, errnum, "%s", what);
    refused(m, &e);
}

/* PATH of these K=V items (the last one counts), or NULL. */
static const char *path_of(const char *const *env)
{
    const char *found = NULL;
    for (; *env != NULL; env++) {
        if (strncmp(*env, "PATH=", 5) == 0)
            found = *env + 5;
    }
    return found;
}

/* Where the command's programs are looked for. */
static const char *search_path(struct managed *m)
{
    const char *asked = path_of((const char *const *)strv_array(&m->env));
    const char *ours = path_of(view_environment);
    return asked != NULL ? asked : ours != NULL ? ours : "";
}

/* What to do about an errno of exec; "" when it speaks for itself. */
static const char *exec_hint(const struct managed *m, int errnum)
{
    const char *name = m->argv.items[0];
    if (errnum == ENOENT && strchr(name, ' ') != NULL)
        return "; command is an argv: one word an item, or [\"sh\", \"-c\", \"...\"] for a shell";
    if (errnum == ENOENT && strchr(name, '/') != NULL)
        return "; a name with a slash is taken from cwd (a script also fails like this when the "
               "interpreter in its first line is missing)";
    return "";
}

void launch_fail_exec(struct managed *m, int errnum)
{
    const char *name = m->argv.items[0];
    bool searched = errnum == ENOENT && strchr(name, '/') == NULL;
    launch_fail(m, ERR_PROCESS_SPAWN_FAILED, "cannot execute '%.200s': %s%s%.400s%s%s", name,
                strerror(errnum), searched ? "; PATH is " : "", searched ? search_path(m) : "",
                exec_hint(m, errnum), m->sandboxed ? " (seen from inside the sandbox)" : "");
    m->failure->sys = errnum;
}

bool launch_awaits_answer(const struct managed *m)
{
    return m->state == PROCESS_PREPARING && m->pid > 0;
}

/* The command's standard error is the helper's until there is a command. */
void launch_fail_unanswered(struct managed *m, const char *what)
{
    char words[CALL_WORDS_MAX];
    const struct watch *w = m->tty ? &m->out : &m->err;
    ssize_t n = w->fd < 0 ? 0 : fd_read(w->fd, words, sizeof(words));
    while (n > 0 && words[n - 1] == '\n')
        n--;
    launch_fail(m, ERR_PROCESS_SPAWN_FAILED, "the sandbox helper %s%s%.*s", what, n > 0 ? ": " : "",
                n > 0 ? (int)n : 0, words);
}

void launch_take_answer(struct managed *m, const char *line, size_t n)
{
    struct err e;
    if (start_read_answer(line, n, &m->guards, &e) < 0)
        refused(m, &e);
    else
        managed_feed(m, PROCESS_ON_PREPARED);
}

static int open_terminal(const struct managed *m, struct ends *e)
{
    int slave = -1;
    int rc = pty_open(m->rows ? m->rows : PTY_ROWS_DEFAULT, m->cols ? m->cols : PTY_COLS_DEFAULT,
                      &e->out, &slave);
    if (rc < 0)
        return rc;
    e->theirs[0] = slave;
    for (int i = 1; i <= 2; i++) {
        e->theirs[i] = fcntl(slave, F_DUPFD_CLOEXEC, 0);
        if (e->theirs[i] < 0)
            return -errno;
    }
    return 0;
}

static int open_ends(const struct managed *m, struct ends *e)
{
    int rc = m->tty ? open_terminal(m, e) : ends_open_pipes(e);
    return rc == 0 && m->sandboxed ? ends_open_control(e) : rc;
}

/* Put our ends on the loop. What is taken is no longer in `e`. */
static int watch_ends(struct managed *m, struct ends *e, int *pidfd)
{
    uv_loop_t *loop = m->home->loop;
    int rc = 0;
    if (*pidfd >= 0)
        rc = watch_take(&m->pidfd, loop, &m->anchor, pidfd, UV_READABLE, end_on_pidfd, m);
    if (rc == 0 && e->control >= 0)
        rc = watch_take(&m->control, loop, &m->anchor, &e->control,
                        m->quiet ? UV_DISCONNECT : UV_READABLE, control_on_ready, m);
    if (rc == 0)
        rc = watch_hold(&m->out, loop, &m->anchor, &e->out, stdio_on_output, m);
    if (rc == 0 && e->err >= 0)
        rc = watch_hold(&m->err, loop, &m->anchor, &e->err, stdio_on_output, m);
    if (rc == 0 && e->in >= 0)
        rc = watch_hold(&m->in, loop, &m->anchor, &e->in, stdio_on_input, m);
    if (rc == 0 && (!m->sandboxed || m->tty))
        stdio_listen(m);
    return rc;
}

/* Hand it to the workspace's zygote. True when it is on its way; then the receipt, or
 * launch_again() follows. */
static bool start_warm(struct managed *m, const struct helper_request *r)
{
    autoends ends = ENDS_NONE;
    int no_pidfd = -1;
    uint64_t ordered_us = managed_clock_us();
    struct warm *warm = m->home->warm;
    if (warm == NULL || !warm_ready(warm, m->ws, r))
        return false;
    bool have = !m->tty && warm_take_ends(warm, &ends);
    if ((!have && open_ends(m, &ends) < 0) || !warm_send(warm, m->ws, r, ends.theirs, &m->guards))
        return false;
    m->warm = true;
    m->ordered_us = ordered_us;
    m->zygote = warm_serial(warm, m->ws->id);
    m->shares_network = !r->own_network;
    m->quiet = !m->tty && !m->keep && m->input.len == 0 && !m->input_eof;
    int rc = watch_ends(m, &ends, &no_pidfd);
    if (rc < 0)
        refused_sys(m, rc, "cannot watch the process");
    else
        alarm_set(&m->alarm, m->quiet ? CONTROL_QUIET_MS : MANAGED_START_MS);
    warm_make_ends(warm); /* the zygote's child is busy now, and we are not */
    return true;
}

/* A port that is published leads to one network, the one that the workspace's commands share. So
 * the first command waits for it instead of having one of its own. True: launch_prepare() comes
 * again. */
static bool await_warm(struct managed *m, const struct helper_request *r)
{
    if (r->n_publish == 0 || r->own_network || !warm_is_coming(m->home->warm, m->ws->id))
        return false;
    alarm_set(&m->alarm, AWAIT_WARM_MS);
    return true;
}

bool launch_is_due(const struct managed *m)
{
    return m->state == PROCESS_PREPARING && m->pid <= 0 && !m->warm;
}

/* Put a child and our ends of it on the loop. Ours is told when that fails. */
static int take_child(struct managed *m, struct ends *e, struct spawned *child)
{
    m->pid = child->pid;
    int rc = watch_ends(m, e, &child->pidfd);
    if (rc == 0)
        return 0;
    if (child->pidfd >= 0)
        grave_take(&m->home->yard, m->home->loop, child->pidfd, 0);
    refused_sys(m, rc, "cannot watch the process");
    return rc;
}

static int open_ends_or_refuse(struct managed *m, struct ends *e)
{
    int rc = open_ends(m, e);
    if (rc < 0)
        refused_sys(m, rc, m->tty ? "cannot open a terminal" : "cannot open pipes");
    return rc;
}

static int start_helper(struct managed *m, const struct helper_request *r, const struct ends *e,
                        struct spawned *ret)
{
    autobuf text = BUF_INIT;
    autofd int rules = -1;
    helper_request_write(r, &text);
    int rc = m->ws->network == NETWORK_ENABLED
                 ? rules_open(&m->rules, m->home->loop, &m->anchor, &rules)
                 : 0;
    if (rc == 0)
        rc = start_sandbox(m->home, &text, e->theirs, rules, ret);
    if (rc < 0)
        rules_close(&m->rules);
    return rc;
}

static void start_cold(struct managed *m, const struct helper_request *r)
{
    autoends ends = ENDS_NONE;
    struct spawned child = {-1, -1};
    char what[ERR_MESSAGE_MAX];
    if (open_ends_or_refuse(m, &ends) < 0)
        return;
    m->ordered_us = managed_clock_us();
    int rc = start_helper(m, r, &ends, &child);
    if (rc < 0) {
        snprintf(what, sizeof(what), "cannot start the sandbox helper %.512s", m->home->helper);
        refused_sys(m, rc, what);
        return;
    }
    if (take_child(m, &ends, &child) == 0)
        alarm_set(&m->alarm, START_PREPARE_MS);
}

void launch_prepare(struct managed *m)
{
    struct helper_request request = {0};
    const struct policy_command command = {
        .argv = strv_array(&m->argv),
        .cwd = m->cwd,
        .env = strv_array(&m->env),
        .tty = m->tty,
    };
    policy_compile(m->ws, &command, &request);
    request.keep = m->keep;
    if (m->cold || (!start_warm(m, &request) && !await_warm(m, &request)))
        start_cold(m, &request);
    helper_request_fini(&request);
}

bool launch_again(struct managed *m)
{
    if (!m->warm || m->state != PROCESS_PREPARING)
        return false;
    warm_give_up(m->home->warm, m->ws);
    m->warm = false;
    m->quiet = false;
    m->shares_network = false;
    m->cold = true;
    struct watch *const all[] = {&m->in, &m->out, &m->err, &m->control};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        watch_close(all[i]);
    buf_fini(&m->line);
    strv_fini(&m->guards);
    alarm_set(&m->alarm, 0); /* the watches can be opened again when the loop has turned */
    return true;
}

/* As execvp: a file that is executable and no program is a script for the shell. */
static int spawn_on_host(struct managed *m, struct strv *env, int cwd, const struct ends *e,
                         struct spawned *ret)
{
    autofree char *path = NULL;
    int rc =
        spawn_find(m->argv.items[0], path_of((const char *const *)strv_array(env)), cwd, &path);
    if (rc < 0)
        return rc;
    struct spawn_options o = {
        .path = path,
        .argv = m->argv.items,
        .env = strv_array(env),
        .fds = e->theirs,
        .n_fds = 3,
        .cwd_fd = cwd,
        .new_session = true,
        .terminal = m->tty,
    };
    rc = spawn_start(&o, ret);
    if (rc != -ENOEXEC)
        return rc;
    autostrv script = {0};
    strv_add(&script, "/bin/sh");
    strv_add(&script, path);
    for (size_t i = 1; i < m->argv.len; i++)
        strv_add(&script, m->argv.items[i]);
    o.path = script.items[0];
    o.argv = script.items;
    return spawn_start(&o, ret);
}

static int start_on_host(struct managed *m, const struct ends *e, struct spawned *ret)
{
    autostrv env = {0};
    policy_host_environment(m->ws, strv_array(&m->env), m->tty, &env);
    autofd int cwd = path_open_beneath(m->ws->root_fd, m->cwd, O_PATH | O_DIRECTORY, 0);
    if (cwd < 0) {
        launch_fail(m, ERR_PROCESS_SPAWN_FAILED, "cannot start in cwd '%s': %s", m->cwd,
                    strerror(-cwd));
        return cwd;
    }
    int rc = spawn_on_host(m, &env, cwd, e, ret);
    if (rc < 0) {
        strv_fini(&m->env);
        m->env = env; /* its PATH is the one to show */
        env = (struct strv){0};
        launch_fail_exec(m, -rc);
    }
    return rc;
}

static void spawn(struct managed *m)
{
    autoends ends = ENDS_NONE;
    struct spawned child = {-1, -1};
    if (open_ends_or_refuse(m, &ends) < 0)
        return;
    m->ordered_us = managed_clock_us();
    int rc = start_on_host(m, &ends, &child);
    if (rc < 0) {
        refused_sys(m, rc, "cannot start the command");
        return;
    }
    if (take_child(m, &ends, &child) < 0)
        return;
    (void)stdio_flush(m);
    m->began_us = m->ordered_us; /* the spawn returns when it has executed */
    managed_feed(m, PROCESS_ON_STARTED);
}

void launch_spawn(struct managed *m)
{
    if (!m->sandboxed) {
        spawn(m);
        return;
    }
    if (!m->warm)
        alarm_set(&m->alarm, MANAGED_START_MS);
    (void)stdio_flush(m); /* whatever waits for it is its input now */
}
