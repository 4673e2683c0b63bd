/* proxy/control: see control.h. */
#include "proxy/control.h"

#include "base/mem.h"
#include "base/str.h"
#include "proxy/conn.h"
#include "sys/fd.h"
#include "sys/netrules.h"

#include <errno.h>
#include <string.h>

static int read_policy(const char *line, size_t n, struct egress_policy *ret, struct err *e)
{
    autojson *obj = NULL;
    if (json_parse(line, n, &obj, e) < 0)
        return -1;
    if (!str_eq(json_str(json_get(obj, "op")), "policy"))
        return err_set(e, ERR_INVALID_ARGUMENT, "op: the only operation is \"policy\"");
    struct json_object *policy = json_get(obj, "policy");
    if (policy == NULL)
        return err_set(e, ERR_INVALID_ARGUMENT, "policy: is required (an object)");
    return egress_policy_read(policy, "policy", ret, e);
}

/* Which ports of the loopback are carried to us is the packet filter's. */
static int change_ports(struct proxy *p, const struct egress_policy *fresh, struct err *e)
{
    const struct egress_policy *old = &p->policy;
    if (p->rules_fd < 0 ||
        (fresh->n_local_ports == old->n_local_ports &&
         (old->n_local_ports == 0 || memcmp(fresh->local_ports, old->local_ports,
                                            old->n_local_ports * sizeof(uint16_t)) == 0)))
        return 0;
    int rc = netrules_replace(p->rules_fd, fresh->local_ports, fresh->n_local_ports);
    return rc == 0 ? 0
                   : err_sys(e, ERR_SANDBOX_UNAVAILABLE, rc,
                             "local_ports: the packet filter inside cannot be changed");
}

static void obey(struct control *c, const char *line, size_t n)
{
    struct proxy *p = c->proxy;
    struct egress_policy policy = {0};
    struct err e = {0};
    if (read_policy(line, n, &policy, &e) < 0 || change_ports(p, &policy, &e) < 0) {
        egress_policy_fini(&policy);
        status_policy_refused(&p->status, e.message, c->source.fd);
        return;
    }
    egress_policy_fini(&p->policy);
    p->policy = policy;
    p->generation++;
    conn_judge_again(p);
    status_policy(&p->status, p->generation, c->source.fd);
}

static void obey_lines(struct control *c)
{
    const char *lf = NULL;
    while ((lf = memchr(buf_bytes(&c->line), '\n', c->line.len)) != NULL) {
        size_t n = (size_t)(lf - buf_bytes(&c->line));
        obey(c, buf_bytes(&c->line), n);
        buf_consume(&c->line, n + 1);
    }
}

static void control_ready(struct source *s, uint32_t events)
{
    struct control *c = container_of(s, struct control, source);
    (void)events;
    ssize_t n = fd_read(s->fd, buf_reserve(&c->line, END_BLOCK), END_BLOCK);
    if (n == -EAGAIN)
        return;
    if (n <= 0) { /* no more rules will come; those there are stay */
        loop_close(&c->proxy->loop, s);
        buf_fini(&c->line);
        return;
    }
    buf_commit(&c->line, (size_t)n);
    obey_lines(c);
    if (c->line.len > EGRESS_POLICY_MAX) {
        status_policy_refused(&c->proxy->status, "EGRESS_POLICY_MAX: the line is too long", s->fd);
        loop_close(&c->proxy->loop, s);
        buf_fini(&c->line);
    }
}

static void life_ready(struct source *s, uint32_t events)
{
    struct control *c = container_of(s, struct control, life);
    (void)events;
    c->proxy->loop.stop = true;
}

int control_start(struct control *c, struct proxy *p, int *life_fd, int *control_fd)
{
    *c = (struct control){
        .proxy = p, .life = {-1, life_ready}, .source = {-1, control_ready}, .line = BUF_INIT};
    int r = loop_add_level(&p->loop, &c->life, *life_fd);
    if (r < 0)
        return r;
    (void)steal_fd(life_fd);
    if (*control_fd < 0)
        return 0;
    r = fd_set_nonblocking(*control_fd, true);
    r = r < 0 ? r : loop_add_level(&p->loop, &c->source, *control_fd);
    if (r == 0)
        (void)steal_fd(control_fd);
    return r;
}

void control_stop(struct control *c)
{
    loop_close(&c->proxy->loop, &c->life);
    loop_close(&c->proxy->loop, &c->source);
    buf_fini(&c->line);
}
