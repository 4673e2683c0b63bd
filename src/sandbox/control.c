/* sandbox/control: see control.h. */
#include "sandbox/control.h"

#include "sandbox/exits.h"
#include "sys/fd.h"
#include "sys/scm.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define READ_BYTES 4096u

void control_send(int fd, const struct helper_verdict *v)
{
    autobuf line = BUF_INIT;
    helper_verdict_write(v, &line);
    fd_write_all(fd, buf_bytes(&line), line.len);
}

int control_failed(int fd, int code, const char *format, ...)
{
    struct helper_verdict v = {.event = HELPER_FAILED, .value = code};
    int n = snprintf(v.message, sizeof(v.message), "%s: ", sandbox_exit_text(code));
    va_list ap;
    va_start(ap, format);
    vsnprintf(v.message + n, sizeof(v.message) - (size_t)n, format, ap);
    va_end(ap);
    control_send(fd, &v);
    return code;
}

/* n bytes came to the end of `in`. */
static int take(struct control *c, ssize_t n)
{
    if (n <= 0)
        return 0;
    buf_commit(&c->in, (size_t)n);
    /* What came before has no end of a line: it would have been taken. */
    const char *last = buf_bytes(&c->in) + c->in.len - n;
    if (c->in.len > HELPER_LINE_MAX && memchr(last, '\n', (size_t)n) == NULL)
        buf_reset(&c->in, HELPER_LINE_MAX);
    return 1;
}

int control_fill(struct control *c)
{
    char *to = buf_reserve(&c->in, READ_BYTES);
    return take(c, fd_read(c->fd, to, READ_BYTES));
}

int control_receive(struct control *c, int *ret_fd)
{
    char *to = buf_reserve(&c->in, READ_BYTES);
    return take(c, scm_read(c->fd, to, READ_BYTES, ret_fd));
}

const char *control_next(struct control *c, size_t *ret_len)
{
    const char *start = buf_bytes(&c->in);
    const char *end = c->in.len == 0 ? NULL : memchr(start, '\n', c->in.len);
    if (end == NULL)
        return NULL;
    *ret_len = (size_t)(end - start);
    buf_consume(&c->in, *ret_len + 1);
    return start;
}

void control_add_words(char *words, size_t cap, const char *line)
{
    size_t used = strlen(words);
    const char *between = used == 0 ? "" : "; ";
    size_t room = cap - used - 1;
    size_t n = strlen(between) + strlen(line);
    if (n <= room)
        snprintf(words + used, cap - used, "%s%s", between, line);
}
