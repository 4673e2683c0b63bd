/* proxy/status: see status.h. A line is written whole or not at all: it is shorter than PIPE_BUF.
 */
#include "proxy/status.h"

#include "sys/fd.h"

#include <string.h>

/* Of a host that is no host, as much as helps to recognise it. */
#define STATUS_TEXT_MAX 128

void status_init(struct status *s, int fd)
{
    *s = (struct status){.fd = fd, .line = BUF_INIT};
    fd_set_nonblocking(fd, true);
}

static void begin(struct status *s, struct jsonw *w, const char *event)
{
    buf_reset(&s->line, 4096);
    jsonw_init(w, &s->line);
    jsonw_object(w);
    jsonw_kstr(w, "event", event);
}

static bool write_line(struct status *s)
{
    buf_putc(&s->line, '\n');
    return fd_write(s->fd, buf_bytes(&s->line), s->line.len) == (ssize_t)s->line.len;
}

static void end(struct status *s, struct jsonw *w)
{
    jsonw_object_end(w);
    if (!write_line(s)) {
        s->dropped++;
        return;
    }
    if (s->dropped == 0)
        return;
    begin(s, w, "dropped");
    jsonw_kuint(w, "count", s->dropped);
    jsonw_object_end(w);
    if (write_line(s))
        s->dropped = 0;
}

void status_ready(struct status *s, bool filter)
{
    struct jsonw w;
    begin(s, &w, "ready");
    jsonw_kbool(&w, "filter", filter);
    end(s, &w);
}

static void target(struct jsonw *w, const char *via, const struct egress_target *t)
{
    jsonw_kstr(w, "via", via);
    jsonw_kstr(w, "host", t->host.text);
    if (t->port != 0)
        jsonw_kuint(w, "port", t->port);
    if (t->method != NULL) {
        jsonw_key(w, "method");
        jsonw_strn(w, t->method, t->method_len);
    }
}

void status_refused(struct status *s, const char *via, const struct egress_target *t,
                    const struct egress_verdict *v)
{
    struct jsonw w;
    char rule[EGRESS_RULE_NAME_MAX];
    begin(s, &w, "refused");
    target(&w, via, t);
    jsonw_kstr(&w, "reason", egress_reason_name(v->reason));
    if (v->list != NULL)
        jsonw_kstr(&w, "rule", egress_rule_name(v, rule));
    if (v->reason == EGRESS_ADDRESS)
        jsonw_kstr(&w, "class", host_class_name(v->class));
    if (s->client != 0)
        jsonw_kuint(&w, "client", s->client);
    end(s, &w);
}

void status_udp(struct status *s, const char *host, uint16_t port)
{
    struct jsonw w;
    begin(s, &w, "refused");
    jsonw_kstr(&w, "via", "udp");
    jsonw_kstr(&w, "host", host);
    jsonw_kuint(&w, "port", port);
    jsonw_kstr(&w, "method", "UDP");
    jsonw_kstr(&w, "reason", "udp");
    jsonw_kuint(&w, "client", s->client);
    end(s, &w);
}

void status_bad_host(struct status *s, const char *via, const char *text, size_t n)
{
    struct jsonw w;
    /* What stands before an '@' may be a password. */
    const char *at = memrchr(text, '@', n);
    size_t skip = at == NULL ? 0 : (size_t)(at - text) + 1;
    begin(s, &w, "refused");
    jsonw_kstr(&w, "via", via);
    jsonw_key(&w, "host");
    jsonw_strn(&w, text + skip, n - skip < STATUS_TEXT_MAX ? n - skip : STATUS_TEXT_MAX);
    jsonw_kstr(&w, "reason", egress_reason_name(EGRESS_BAD_HOST));
    end(s, &w);
}

void status_fronting(struct status *s, const char *via, const struct egress_target *t,
                     const char *layer, const char *named, bool refused)
{
    struct jsonw w;
    begin(s, &w, egress_reason_name(EGRESS_FRONTING));
    target(&w, via, t);
    jsonw_kstr(&w, "layer", layer);
    jsonw_kstr(&w, "named", named);
    jsonw_kbool(&w, "refused", refused);
    end(s, &w);
}

/* Somebody who is gone, or does not read, misses it. */
static void answer(struct status *s, struct jsonw *w, int fd)
{
    autobuf line = BUF_INIT;
    buf_put(&line, buf_bytes(&s->line), s->line.len);
    buf_puts(&line, "}\n");
    end(s, w);
    if (fd >= 0)
        (void)fd_write(fd, buf_bytes(&line), line.len);
}

void status_policy(struct status *s, uint64_t generation, int other_fd)
{
    struct jsonw w;
    begin(s, &w, "policy");
    jsonw_kuint(&w, "generation", generation);
    answer(s, &w, other_fd);
}

void status_policy_refused(struct status *s, const char *message, int other_fd)
{
    struct jsonw w;
    begin(s, &w, "policy_refused");
    jsonw_kstr(&w, "message", message);
    answer(s, &w, other_fd);
}

void status_limit(struct status *s, const char *name, uint64_t value)
{
    struct jsonw w;
    begin(s, &w, "limit");
    jsonw_kstr(&w, "name", name);
    jsonw_kuint(&w, "value", value);
    end(s, &w);
}
