/* run/control: the line to process 1 inside the sandbox (wire/helper).
 *
 * Theory. What comes over it is a claim of a process that shares a kernel with hostile code, so
 * lengths are bounded, unknown lines are text, and nothing it says can do more than describe the
 * end of its own command. Closing our end ends the sandbox, whatever it is doing.
 */
#include "run/managed.h"

#include "sys/fd.h"
#include "sys/scm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void keep_words(struct managed *m, const char *text)
{
    if (text[0] == '\0' || m->words.len >= MANAGED_WORDS_MAX)
        return;
    size_t room = MANAGED_WORDS_MAX - m->words.len;
    size_t n = strlen(text);
    if (m->words.len > 0)
        buf_puts(&m->words, "; ");
    buf_put(&m->words, text, n < room ? n : room);
}

/* The sandbox could not be built or broke. */
static void on_failed(struct managed *m, const struct helper_verdict *v)
{
    fd_close(&m->init_fd); /* it has swept, or said that it could not */
    if (launch_again(m))
        return;
    launch_fail(m, ERR_PROCESS_SPAWN_FAILED,
                "the sandbox could not be built (wrapper status %d): %s%s%s", v->value, v->message,
                m->words.len > 0 ? "; bubblewrap said: " : "", buf_cstr(&m->words));
    end_by_verdict(m, v);
    managed_feed(m, PROCESS_ON_REFUSED);
}

static void on_exec_failed(struct managed *m, const struct helper_verdict *v)
{
    fd_close(&m->init_fd);
    if (m->state == PROCESS_STARTING)
        launch_fail_exec(m, v->value);
    end_by_verdict(m, v);
    managed_feed(m, PROCESS_ON_REFUSED);
}

static void on_end(struct managed *m, const struct helper_verdict *v)
{
    m->began = true;
    if (m->state == PROCESS_STARTING) /* its `started` is implied */
        managed_feed(m, PROCESS_ON_STARTED);
    end_by_verdict(m, v);
    m->over_us = managed_told_us(v->at_us, m->began_us);
    if (!v->kept || !m->keep) {
        fd_close(&m->init_fd);
        managed_feed(m, PROCESS_ON_VERDICT);
        return;
    }
    m->kill_asked = false; /* that was about the command; what it left is asked by itself */
    managed_feed(m, PROCESS_ON_KEPT);
}

static void on_rest_ended(struct managed *m, const struct helper_verdict *v)
{
    if (m->end.termination == RUN_END_NONE) /* the command's end must have come before */
        return;
    fd_close(&m->init_fd);
    end_by_over(m, v);
    managed_feed(m, PROCESS_ON_VERDICT);
}

static void on_line(struct managed *m, const char *line, size_t n)
{
    struct helper_verdict v;
    if (launch_awaits_answer(m)) {
        launch_take_answer(m, line, n);
        return;
    }
    helper_verdict_read(line, n, &v);
    switch (v.event) {
    case HELPER_STARTED:
        m->began = true;
        m->began_us = managed_told_us(v.at_us, m->ordered_us);
        managed_feed(m, PROCESS_ON_STARTED);
        return;
    case HELPER_EXEC_FAILED:
        on_exec_failed(m, &v);
        return;
    case HELPER_FAILED:
        on_failed(m, &v);
        return;
    case HELPER_EXIT:
    case HELPER_SIGNAL:
        on_end(m, &v);
        return;
    case HELPER_OVER:
        on_rest_ended(m, &v);
        return;
    case HELPER_TEXT:
        if (m->warm && n == 0) { /* the receipt (wire/warm) */
            managed_feed(m, PROCESS_ON_PREPARED);
            return;
        }
        keep_words(m, v.message);
        return;
    }
}

/* Take the whole lines out of the buffer. An event may free what there is to read from, so the
 * state is looked at again each time. */
static void split_lines(struct managed *m)
{
    for (;;) {
        const char *bytes = buf_bytes(&m->line);
        const char *end = memchr(bytes, '\n', m->line.len);
        if (end == NULL)
            return;
        size_t n = (size_t)(end - bytes);
        autofree char *line = mem_dup(bytes, n);
        buf_consume(&m->line, n + 1);
        on_line(m, line, n);
    }
}

/* More than a line may have without its end: it is nobody's protocol. */
static void drop_overlong(struct managed *m)
{
    if (m->line.len <= HELPER_LINE_MAX)
        return;
    if (launch_awaits_answer(m)) {
        launch_fail_unanswered(m, "answered with more than HELPER_LINE_MAX bytes");
        managed_feed(m, PROCESS_ON_REFUSED);
        return;
    }
    keep_words(m, "(a control line longer than HELPER_LINE_MAX was dropped)");
    buf_reset(&m->line, 0);
}

void control_take_init(struct managed *m)
{
    char chunk[4096];
    ssize_t n = 1;
    while (n > 0 && m->control.fd >= 0 && m->init_fd < 0)
        n = scm_read(m->control.fd, chunk, sizeof(chunk), &m->init_fd);
}

void control_read(struct managed *m)
{
    while (m->control.fd >= 0) {
        char chunk[4096];
        int came;
        ssize_t n = scm_read(m->control.fd, chunk, sizeof(chunk), &came);
        if (m->init_fd < 0)
            m->init_fd = steal_fd(&came);
        fd_close(&came);
        if (n == -EAGAIN) {
            if (m->began && m->state != PROCESS_ENDED)
                stdio_listen(m);
            return;
        }
        if (n <= 0) {
            if (launch_again(m))
                return;
            watch_close(&m->control);
            if (m->warm)
                end_by_silence(m);
            else
                managed_feed(m, PROCESS_ON_LOST);
            return;
        }
        buf_put(&m->line, chunk, (size_t)n);
        split_lines(m);
        drop_overlong(m);
    }
}

void control_listen(struct managed *m)
{
    if (!m->quiet)
        return;
    m->quiet = false;
    control_read(m);
    if (m->control.fd < 0)
        return;
    watch_want(&m->control, UV_READABLE);
    if (m->state == PROCESS_PREPARING || m->state == PROCESS_STARTING)
        alarm_set(&m->alarm, MANAGED_START_MS);
}

void control_on_ready(struct watch *w, void *owner)
{
    struct managed *m = owner;
    if (m->quiet)
        control_listen(m);
    else
        control_read(m);
}

void control_signal(struct managed *m, int signal)
{
    autobuf line = BUF_INIT;
    if (m->control.fd < 0)
        return;
    helper_signal_write(signal, &line);
    /* One short line on an empty socket: it fits, or the sandbox reads nothing and KILL is next. */
    (void)fd_send(m->control.fd, buf_bytes(&line), line.len);
}
