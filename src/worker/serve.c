/* worker/serve: see serve.h. */
#include "worker/serve.h"

#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "run/link.h"
#include "run/local.h"
#include "run/msgs.h"
#include "wire/frame.h"
#include "wire/runmsg_fields.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

struct kept {
    char *request_id;
    char *text; /* the answer as it was sent */
    size_t n;
};

struct place {
    struct workspace *ws;
    char *egress; /* its rules, as they were told */
};

struct serve {
    struct serve_options o;
    struct anchor anchor;
    struct link link;
    struct alarm alarm; /* looks for silence */
    struct list requests;
    size_t n_requests;
    struct kept kept[RUNMSG_KEPT];
    size_t kept_at;
    struct map places; /* by what their message says, but for the rules of the network */
    char *worker_id;
    bool greeted;
    bool durable;
    uint64_t epoch;                      /* welcomes so far */
    uint64_t told_serial, told_sequence; /* the end that was last told with its start */
    pid_t peer;                          /* of a durable one's stream */
};

struct request {
    struct list link;
    struct serve *s;
    struct runmsg m;
    run_ticket ticket;
    bool calling;  /* inside the runner's call */
    bool answered; /* from inside it */
    bool orphan;   /* who asked is gone */
    bool held;     /* an exec that has started; `ticket` is of its first read */
};

/* ---- answers ---- */

static void keep(struct serve *s, const char *id, const char *text, size_t n)
{
    struct kept *k = &s->kept[s->kept_at++ % RUNMSG_KEPT];
    free(k->request_id);
    free(k->text);
    *k = (struct kept){mem_strdup(id), n <= SERVE_KEPT_BYTES ? mem_dup(text, n) : NULL, n};
}

static bool is_large_page(const struct runmsg *m)
{
    return m->kind == RUNMSG_RESPONSE && !m->failed && m->op == RUNMSG_READ &&
           ((const struct runmsg_page *)m->data)->bytes.len > SERVE_KEPT_BYTES;
}

static bool is_large_start(const struct runmsg *m)
{
    return m->kind == RUNMSG_RESPONSE && !m->failed && m->op == RUNMSG_EXEC &&
           ((const struct runmsg_started *)m->data)->page.bytes.len > SERVE_KEPT_BYTES;
}

static void post(struct serve *s, const struct runmsg *m)
{
    autobuf text = BUF_INIT;
    if (is_large_page(m) || is_large_start(m)) { /* not kept: it can be read again */
        (void)link_send(&s->link, m);
        return;
    }
    runmsg_write(m, &text);
    if (m->kind == RUNMSG_RESPONSE && m->request_id[0] != '\0')
        keep(s, m->request_id, buf_bytes(&text), text.len);
    if (!link_send_text(&s->link, buf_bytes(&text), text.len) && s->link.open)
        log_error("an answer of %zu bytes could not be sent", text.len);
}

static void send_failure(struct serve *s, const char *id, const struct err *e)
{
    struct runmsg m = {.kind = RUNMSG_RESPONSE,
                       .op = RUNMSG_OP_MAX,
                       .request_id = mem_strdup(id == NULL ? "" : id),
                       .failed = true,
                       .failure = *e};
    post(s, &m);
    runmsg_fini(&m);
}

static void request_free(struct request *q)
{
    list_remove(&q->link);
    q->s->n_requests--;
    runmsg_fini(&q->m);
    free(q);
}

static void done_with(struct request *q)
{
    if (q->calling)
        q->answered = true;
    else
        request_free(q);
}

/* Answer with what `a` holds, or with the failure. */
static void answer(struct request *q, struct runmsg *a, const struct err *failure)
{
    if (q->orphan) {
        log_info("the asker of a request is gone; its answer is dropped");
    } else if (failure != NULL) {
        send_failure(q->s, q->m.request_id, failure);
    } else {
        a->request_id = mem_strdup(q->m.request_id);
        post(q->s, a);
    }
    runmsg_fini(a);
    done_with(q);
}

static void answer_nothing(struct request *q, const struct err *failure)
{
    struct runmsg a = {0};
    runmsg_new_data(&a, RUNMSG_RESPONSE, q->m.op);
    answer(q, &a, failure);
}

/* `page` NULL: the start alone. */
static void answer_exec(struct request *q, const char *process_id, const struct run_page *page,
                        const struct err *failure)
{
    struct runmsg a = {0};
    struct runmsg_started *data = runmsg_new_data(&a, RUNMSG_RESPONSE, RUNMSG_EXEC);
    data->process_id = mem_strdup(process_id);
    data->has_page = page != NULL;
    if (page != NULL)
        msgs_page(page, &data->page);
    if (page != NULL && page->status.state == RUN_EXITED && !q->orphan) {
        q->s->told_serial = page->status.serial;
        q->s->told_sequence = page->status.sequence;
    }
    answer(q, &a, failure);
}

/* Has the read its answer, or is only our patience over? */
static bool is_over(const struct runmsg_exec *m, const struct run_page *page)
{
    return m->first.wait_ms <= m->hold_ms || page->status.state == RUN_EXITED ||
           (!m->first.until_exit && page->len > 0);
}

static void on_first(void *user, const struct run_page *page, const struct err *failure)
{
    struct request *q = user;
    const struct runmsg_exec *m = q->m.data;
    bool over = failure == NULL && is_over(m, page);
    answer_exec(q, m->process_id, over ? page : NULL, NULL);
}

/* The read may be answered at once; then the request is gone, unless somebody is still in it. */
static void read_first(struct request *q)
{
    const struct runmsg_exec *m = q->m.data;
    struct run_read x;
    bool inside = q->calling;
    msgs_read_from(&m->first, &x);
    x.process_id = m->process_id;
    x.wait_ms = x.wait_ms < m->hold_ms ? x.wait_ms : m->hold_ms;
    q->held = q->calling = true;
    q->ticket = runner_read(q->s->o.runner, &x, on_first, q);
    q->calling = inside;
    if (q->answered && !inside)
        request_free(q);
}

static void on_exec(void *user, const char *process_id, const struct err *failure)
{
    struct request *q = user;
    struct runmsg_exec *m = q->m.data;
    if (failure != NULL || !m->has_first || q->orphan) {
        answer_exec(q, process_id, NULL, failure);
        return;
    }
    if (m->process_id == NULL)
        m->process_id = mem_strdup(process_id);
    read_first(q);
}

static void on_page(void *user, const struct run_page *page, const struct err *failure)
{
    struct request *q = user;
    struct runmsg a = {0};
    struct runmsg_page *data = runmsg_new_data(&a, RUNMSG_RESPONSE, RUNMSG_READ);
    if (failure == NULL)
        msgs_page(page, data);
    answer(q, &a, failure);
}

static void on_status(void *user, const struct run_status *status, const struct err *failure)
{
    struct request *q = user;
    struct runmsg a = {0};
    struct runmsg_status *data = runmsg_new_data(&a, RUNMSG_RESPONSE, RUNMSG_STATUS);
    if (failure == NULL)
        msgs_status(status, data);
    answer(q, &a, failure);
}

static void on_list(void *user, const struct run_listing *list, const struct err *failure)
{
    struct request *q = user;
    struct runmsg a = {0};
    struct runmsg_listing *data = runmsg_new_data(&a, RUNMSG_RESPONSE, RUNMSG_LIST);
    if (failure == NULL)
        msgs_listing(list, data);
    answer(q, &a, failure);
}

static void on_done(void *user, const struct err *failure)
{
    answer_nothing(user, failure);
}

static void on_probe(void *user, const struct probe_result *result)
{
    struct request *q = user;
    struct runmsg a = {0};
    autobuf text = BUF_INIT;
    struct runmsg_probe *data = runmsg_new_data(&a, RUNMSG_RESPONSE, RUNMSG_PROBE);
    probe_write(result, &text);
    data->result = buf_steal(&text);
    answer(q, &a, NULL);
}

static void on_warm(void *user, enum run_warm warm)
{
    struct request *q = user;
    struct runmsg a = {0};
    struct runmsg_warmth *data = runmsg_new_data(&a, RUNMSG_RESPONSE, RUNMSG_WARM);
    data->state = warm;
    answer(q, &a, NULL);
}

static void on_rules(void *user, const struct run_rules *outcome, const struct err *failure)
{
    struct request *q = user;
    struct runmsg a = {0};
    struct runmsg_ruled *data = runmsg_new_data(&a, RUNMSG_RESPONSE, RUNMSG_RULES);
    if (failure == NULL)
        msgs_ruled(outcome, data);
    answer(q, &a, failure);
}

static void on_exited(void *user, const struct run_status *status)
{
    struct serve *s = user;
    struct runmsg m = {0};
    if (status->serial == s->told_serial && status->sequence == s->told_sequence)
        return;
    msgs_status(status, runmsg_new_data(&m, RUNMSG_EVENT, RUNMSG_OP_MAX));
    post(s, &m);
    runmsg_fini(&m);
}

/* ---- requests ---- */

/* What an operator may change while the workspace stays the same. */
static int set_egress(struct place *p, const char *text, struct err *e)
{
    autoegress fresh = {0};
    if (str_eq(p->egress, text))
        return 0;
    if (text[0] != '\0' && egress_policy_parse(text, strlen(text), &fresh, e) < 0)
        return -1;
    struct egress_policy old = p->ws->egress;
    p->ws->egress = fresh;
    fresh = old;
    free(p->egress);
    p->egress = mem_strdup(text);
    return 0;
}

static struct place *new_place(struct serve *s, const struct runmsg_workspace *m, struct err *e)
{
    if (s->places.used >= REGISTRY_WORKSPACES_MAX) {
        err_set(e, ERR_LIMIT_EXCEEDED,
                "the worker knows %u workspaces already (REGISTRY_WORKSPACES_MAX)",
                REGISTRY_WORKSPACES_MAX);
        return NULL;
    }
    struct workspace *ws = msgs_workspace_new(m, e);
    if (ws == NULL)
        return NULL;
    struct place *p = mem_new(struct place);
    *p = (struct place){ws, mem_strdup(m->egress == NULL ? "" : m->egress)};
    return p;
}

/* The same words are the same workspace, for as long as the worker lives. Those about the network
 * may change. */
static const struct workspace *get_workspace(struct serve *s, const struct runmsg_workspace *m,
                                             struct err *e)
{
    autobuf key = BUF_INIT;
    struct jsonw w;
    struct runmsg_workspace named = *m;
    named.egress = NULL;
    jsonw_init(&w, &key);
    runmsg_fields_write(&w, &runmsg_shape_workspace, &named);
    struct place *p = map_get(&s->places, buf_cstr(&key));
    if (p != NULL)
        return set_egress(p, m->egress == NULL ? "" : m->egress, e) < 0 ? NULL : p->ws;
    p = new_place(s, m, e);
    if (p == NULL)
        return NULL;
    map_set(&s->places, buf_cstr(&key), p);
    return p->ws;
}

static run_ticket start_hello(struct request *q)
{
    const struct runmsg_hello *m = q->m.data;
    struct runmsg a = {0};
    struct runmsg_welcome *data = runmsg_new_data(&a, RUNMSG_RESPONSE, RUNMSG_HELLO);
    *data = (struct runmsg_welcome){
        .protocol = RUNMSG_PROTOCOL,
        .worker_id = mem_strdup(q->s->worker_id),
        .version = mem_strdup(CODESPACE_VERSION),
        .epoch = ++q->s->epoch,
        .durable = q->s->durable,
        .level = m->level < RUNMSG_LEVEL ? m->level : RUNMSG_LEVEL,
    };
    q->s->greeted = true;
    if (q->s->durable)
        alarm_stop(&q->s->alarm);
    answer(q, &a, NULL);
    return 0;
}

static run_ticket start_exec(struct request *q)
{
    struct runmsg_exec *m = q->m.data;
    struct run_exec x;
    struct err e;
    msgs_exec_from(m, &x);
    if (x.argv[0] == NULL || x.argv[0][0] == '\0') {
        err_set(&e, ERR_INVALID_COMMAND, "command names no program");
        answer_nothing(q, &e);
        return 0;
    }
    x.ws = get_workspace(q->s, &m->workspace, &e);
    if (x.ws == NULL) {
        answer_nothing(q, &e);
        return 0;
    }
    return runner_exec(q->s->o.runner, &x, on_exec, q);
}

static run_ticket start_read(struct request *q)
{
    struct run_read x;
    msgs_read_from(q->m.data, &x);
    return runner_read(q->s->o.runner, &x, on_page, q);
}

static run_ticket start_status(struct request *q)
{
    const struct runmsg_id *m = q->m.data;
    return runner_status(q->s->o.runner, m->process_id, on_status, q);
}

static run_ticket start_write(struct request *q)
{
    const struct runmsg_write *m = q->m.data;
    return runner_write(q->s->o.runner, m->process_id, buf_bytes(&m->data), m->data.len, m->eof,
                        on_done, q);
}

static run_ticket start_resize(struct request *q)
{
    const struct runmsg_resize *m = q->m.data;
    return runner_resize(q->s->o.runner, m->process_id, (uint16_t)m->rows, (uint16_t)m->cols,
                         on_done, q);
}

static run_ticket start_terminate(struct request *q)
{
    const struct runmsg_terminate *m = q->m.data;
    const struct run_terminate how = {(int)m->signal, m->has_grace, m->grace_ms};
    return runner_terminate_by(q->s->o.runner, m->process_id, &how, on_done, q);
}

static run_ticket start_signal(struct request *q)
{
    const struct runmsg_signal *m = q->m.data;
    return runner_signal(q->s->o.runner, m->process_id, (int)m->signal, on_done, q);
}

static run_ticket start_list(struct request *q)
{
    const struct runmsg_list *m = q->m.data;
    const struct run_list x = {m->workspace_id, m->after, m->max, m->live_only};
    return runner_list(q->s->o.runner, &x, on_list, q);
}

static run_ticket start_probe(struct request *q)
{
    runner_probe(q->s->o.runner, on_probe, q);
    return 0;
}

static run_ticket start_warm(struct request *q)
{
    const struct runmsg_place *m = q->m.data;
    return runner_warm(q->s->o.runner, m->workspace_id, on_warm, q);
}

/* What starts meanwhile has them, too: its message comes later. But one may wait for its turn. */
static run_ticket start_rules(struct request *q)
{
    const struct runmsg_rules *m = q->m.data;
    autoegress policy = {0};
    struct err e;
    if (egress_policy_parse(m->egress, strlen(m->egress), &policy, &e) < 0) {
        answer_nothing(q, &e);
        return 0;
    }
    size_t pos = 0;
    for (struct place *p; (p = map_next(&q->s->places, &pos, NULL)) != NULL;) {
        if (str_eq(p->ws->id, m->workspace_id) && p->ws->network == NETWORK_ENABLED)
            (void)set_egress(p, m->egress, &e); /* it was read a moment ago */
    }
    const struct workspace ws = {.id = m->workspace_id, .egress = policy};
    return runner_rules(q->s->o.runner, &ws, on_rules, q);
}

static run_ticket start_ping(struct request *q)
{
    answer_nothing(q, NULL);
    return 0;
}

static struct request *find_request(const struct serve *s, const char *id,
                                    const struct request * not )
{
    list_each (it, &s->requests) {
        struct request *q = container_of(it, struct request, link);
        if (q != not &&!q->orphan && strcmp(q->m.request_id, id) == 0)
            return q;
    }
    return NULL;
}

static void ignore_done(void *user, const struct err *failure)
{
}

/* A command whose start was not told yet goes with it. */
static void give_up(struct request *q)
{
    const struct runmsg_exec *m = q->m.data;
    runner_cancel(q->s->o.runner, q->ticket);
    if (q->held)
        (void)runner_terminate(q->s->o.runner, m->process_id, ignore_done, NULL);
}

/* A probe cannot be given up; it is answered when it is there. What was answered already is no
 * mistake of the asker: both were under way. */
static run_ticket start_cancel(struct request *q)
{
    const struct runmsg_replay *m = q->m.data;
    struct request *other = find_request(q->s, m->request_id, q);
    struct err e;
    if (other != NULL && other->ticket != 0) {
        give_up(other);
        err_set(&e, ERR_CANCELLED, "the request was cancelled");
        answer_nothing(other, &e);
    }
    answer_nothing(q, NULL);
    return 0;
}

/* The kept answer with the new id in the place of the old one. */
static run_ticket start_replay(struct request *q)
{
    const struct runmsg_replay *m = q->m.data;
    struct err e;
    for (size_t i = 0; i < RUNMSG_KEPT; i++) {
        struct kept *k = &q->s->kept[i];
        struct runmsg a;
        if (k->text == NULL || strcmp(k->request_id, m->request_id) != 0)
            continue;
        ensure(runmsg_read(k->text, k->n, &a, &e) == 0);
        free(a.request_id);
        a.request_id = mem_strdup(q->m.request_id);
        (void)link_send(&q->s->link, &a);
        runmsg_fini(&a);
        done_with(q);
        return 0;
    }
    err_set(&e, ERR_INVALID_ARGUMENT,
            "no answer of the request '%s' is kept: only the last %u of this connection are",
            m->request_id, RUNMSG_KEPT);
    answer_nothing(q, &e);
    return 0;
}

#define START(id, name, request, result) [RUNMSG_##id] = start_##name,

static run_ticket (*const starts[RUNMSG_OP_MAX])(struct request *q) = {RUNMSG_OPS(START)};

static void start(struct request *q)
{
    q->calling = true;
    run_ticket ticket = starts[q->m.op](q);
    q->calling = false;
    if (!q->held)
        q->ticket = ticket;
    if (q->answered)
        request_free(q);
}

/* ---- the stream ---- */

/* The answer still goes out, then the stream is closed. */
static void refuse(struct serve *s, const char *id, const struct err *e)
{
    log_warn("refused: %s", e->message);
    send_failure(s, id, e);
    link_finish(&s->link);
}

/* 0, or -1 when the message is not to be acted on. `fatal`: the stream cannot go on. */
static int check(struct serve *s, int rc, const struct runmsg *m, bool *fatal, struct err *e)
{
    *fatal = true;
    if (rc == 1)
        return err_set(e, ERR_INVALID_REQUEST,
                       "runner protocol: this worker speaks version %u only", RUNMSG_PROTOCOL);
    if (rc < 0) {
        *fatal = e->code == ERR_PARSE_ERROR || m->request_id == NULL || m->kind != RUNMSG_REQUEST;
        return -1;
    }
    if (m->kind != RUNMSG_REQUEST)
        return err_set(e, ERR_INVALID_REQUEST, "runner protocol: a worker takes requests only");
    if ((m->op == RUNMSG_HELLO) == s->greeted)
        return err_set(e, ERR_INVALID_REQUEST,
                       "runner protocol: hello comes first, and once; %s came",
                       runmsg_op_name(m->op));
    *fatal = false;
    if (find_request(s, m->request_id, NULL) != NULL)
        return err_set(e, ERR_INVALID_REQUEST,
                       "runner protocol: the request_id '%s' is in use by another request",
                       m->request_id);
    if (s->n_requests >= SERVE_REQUESTS_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "%zu requests wait for their answers (SERVE_REQUESTS_MAX)", s->n_requests);
    return 0;
}

static void on_message(void *owner, const char *text, size_t n)
{
    struct serve *s = owner;
    struct runmsg m;
    struct err e = {0};
    bool fatal = false;
    int rc = runmsg_read(text, n, &m, &e);
    if (check(s, rc, &m, &fatal, &e) < 0) {
        if (fatal)
            refuse(s, m.request_id, &e);
        else
            send_failure(s, m.request_id, &e);
        runmsg_fini(&m);
        return;
    }
    struct request *q = mem_new(struct request);
    q->s = s;
    q->m = m;
    list_append(&s->requests, &q->link);
    s->n_requests++;
    start(q);
}

/* Starts go on: the next gateway finds their processes. A probe cannot be given up. */
static void orphan_requests(struct serve *s)
{
    list_each (it, &s->requests) {
        struct request *q = container_of(it, struct request, link);
        bool goes_on = q->m.op == RUNMSG_EXEC || q->ticket == 0;
        q->orphan = true;
        if (goes_on)
            continue;
        runner_cancel(s->o.runner, q->ticket);
        request_free(q);
    }
}

static void forget_kept(struct serve *s)
{
    for (size_t i = 0; i < RUNMSG_KEPT; i++) {
        free(s->kept[i].request_id);
        free(s->kept[i].text);
        s->kept[i] = (struct kept){0};
    }
}

static void on_ended(void *owner, const char *why)
{
    struct serve *s = owner;
    log_info("the connection ended: %s", why);
    if (s->durable) {
        orphan_requests(s);
        forget_kept(s);
        s->greeted = false;
        alarm_stop(&s->alarm);
    }
    s->o.ended(s->o.user);
}

static void on_alarm(struct alarm *a, void *owner)
{
    struct serve *s = owner;
    if (s->durable) {
        link_close(&s->link);
        on_ended(s, "no hello came");
        return;
    }
    uint64_t silent_ms = uv_now(s->o.loop) - s->link.heard_ms;
    if (silent_ms >= s->o.silence_ms) {
        link_close(&s->link);
        on_ended(s, "nothing was heard for too long");
        return;
    }
    alarm_set(&s->alarm, s->o.silence_ms - silent_ms);
}

static const struct link_ops link_ops = {on_message, on_ended};

static pid_t peer_of(int fd)
{
    struct ucred peer = {0};
    socklen_t n = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 ? 0 : peer.pid;
}

/* The second one is told who has the worker. What fits into no socket is no loss. */
static void turn_away(struct serve *s, int fd)
{
    autobuf frame = BUF_INIT;
    struct runmsg m = {.kind = RUNMSG_RESPONSE,
                       .op = RUNMSG_OP_MAX,
                       .request_id = mem_strdup("hello"),
                       .failed = true};
    err_set(&m.failure, ERR_RUNNER_UNAVAILABLE,
            "another gateway (process %d) is connected to the worker %s, which serves one at a "
            "time; end that one, or use a worker of another directory",
            (int)s->peer, s->worker_id);
    log_warn("process %d is turned away: process %d is connected", (int)peer_of(fd), (int)s->peer);
    size_t begun = frame_begin(&frame);
    runmsg_write(&m, &frame);
    if (frame_end(&frame, begun) == 0)
        (void)send(fd, buf_bytes(&frame), frame.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    runmsg_fini(&m);
}

/* The alarm is the handle that stays. */
bool serve_is_settling(const struct serve *s)
{
    return !s->link.open && s->anchor.open > 1;
}

int serve_attach(struct serve *s, int *fd)
{
    int none = -1;
    if (s->link.open) {
        turn_away(s, *fd);
        return -EBUSY;
    }
    pid_t peer = peer_of(*fd);
    int rc = link_open(&s->link, s->o.loop, &s->anchor, fd, &none, &link_ops, s);
    if (rc < 0)
        return rc;
    s->peer = peer;
    alarm_set(&s->alarm, SERVE_HELLO_MS);
    return 0;
}

struct serve *serve_new(const struct serve_options *o, struct err *e)
{
    struct serve *s = mem_new(struct serve);
    s->o = *o;
    list_init(&s->requests);
    s->worker_id = str_new_id("worker-");
    s->durable = *o->in < 0;
    watch_init(&s->link.in);
    watch_init(&s->link.out);
    int rc = s->durable ? 0 : link_open(&s->link, o->loop, &s->anchor, o->in, o->out, &link_ops, s);
    if (rc < 0) {
        err_sys(e, ERR_INTERNAL, rc,
                "the stream cannot be watched (a pipe, a socket or a "
                "terminal can)");
        free(s->worker_id);
        free(s);
        return NULL;
    }
    alarm_open(&s->alarm, o->loop, &s->anchor, on_alarm, s);
    if (o->silence_ms > 0)
        alarm_set(&s->alarm, o->silence_ms);
    local_runner_on_exit(o->runner, on_exited, s);
    return s;
}

static void on_gone(struct anchor *a)
{
}

void serve_close(struct serve *s)
{
    link_close(&s->link);
    alarm_close(&s->alarm);
    anchor_leave(&s->anchor, on_gone);
}

void serve_forget(struct serve *s)
{
    size_t pos = 0;
    for (struct place *p; (p = map_next(&s->places, &pos, NULL)) != NULL;) {
        workspace_free(p->ws);
        free(p->egress);
        free(p);
    }
    map_fini(&s->places);
    list_each (it, &s->requests)
        request_free(container_of(it, struct request, link));
    forget_kept(s);
    free(s->worker_id);
    free(s);
}
