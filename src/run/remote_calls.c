/* run/remote_calls: see remote_core.h: requests that wait for their answers.
 *
 * A call is taken out of the table before its caller is told, because whoever is told may do
 * anything, free the runner included.
 */
#include "base/num.h"
#include "run/msgs.h"
#include "run/remote_core.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void call_free(struct remote *r, struct call_out *c)
{
    list_remove(&c->link);
    r->n_calls--;
    buf_fini(&c->text);
    free(c->process_id);
    free(c);
}

/* ---- answers ---- */

static void tell_status(struct call_out *c, struct runmsg_status *m)
{
    struct run_status status;
    msgs_status_from(m, &status);
    c->fn.status(c->user, &status, NULL);
}

static void tell_failure(struct call_out *c, const struct err *e)
{
    struct probe_result broken = {.cause = PROBE_OTHER};
    switch (c->op) {
    case RUNMSG_EXEC:
        c->fn.exec(c->user, e->code == ERR_RUNNER_LOST ? c->process_id : NULL, e);
        return;
    case RUNMSG_READ:
        c->fn.page(c->user, NULL, e);
        return;
    case RUNMSG_STATUS:
        c->fn.status(c->user, NULL, e);
        return;
    case RUNMSG_LIST:
        c->fn.list(c->user, NULL, e);
        return;
    case RUNMSG_PROBE:
        snprintf(broken.detail, sizeof(broken.detail), "%.500s", e->message);
        c->fn.probe(c->user, &broken);
        return;
    case RUNMSG_RULES:
        c->fn.rules(c->user, NULL, e);
        return;
    case RUNMSG_WARM: /* not known is an answer */
        c->fn.warm(c->user, RUN_WARM_UNKNOWN);
        return;
    default:
        c->fn.done(c->user, e);
        return;
    }
}

/* Take the call out first: whoever is told may do anything, free the runner included. */
static void fail(struct remote *r, struct call_out *c, const struct err *e)
{
    struct call_out copy = *c;
    c->process_id = NULL;
    call_free(r, c);
    if (copy.op == RUNMSG_EXEC && e->code != ERR_RUNNER_LOST)
        known_drop(&r->known, copy.process_id);
    if (!copy.silent)
        tell_failure(&copy, e);
    free(copy.process_id);
}

static void take_probe(struct remote *r, struct runmsg_probe *m)
{
    struct err e;
    r->probed = probe_read(m->result, strlen(m->result), &r->probe, &e) == 0;
    if (!r->probed) {
        r->probe = (struct probe_result){.cause = PROBE_OTHER};
        snprintf(r->probe.detail, sizeof(r->probe.detail), "%.500s", e.message);
    }
}

static void tell_listing(struct call_out *c, struct runmsg_listing *m)
{
    struct run_listing listing;
    struct run_status *items = msgs_listing_from(m, &listing);
    c->fn.list(c->user, &listing, NULL);
    free(items);
}

static void tell_page(struct call_out *c, struct runmsg_page *m)
{
    struct run_page page;
    msgs_page_from(m, &page);
    c->fn.page(c->user, &page, NULL);
}

static void tell_rules(struct call_out *c, struct runmsg_ruled *m)
{
    struct run_rules outcome;
    msgs_ruled_from(m, &outcome);
    c->fn.rules(c->user, &outcome, NULL);
}

/* What is told may free the runner, whose memory is there until the loop turns. */
static void tell_started(struct remote *r, struct call_out *c, struct runmsg_started *m)
{
    struct first_answer first = {c->process_id, &c->first, m->has_page ? &m->page : NULL};
    r->first = c->has_first ? &first : NULL;
    c->fn.exec(c->user, c->process_id, NULL);
    r->first = NULL;
}

static void tell(struct remote *r, struct call_out *c, void *data)
{
    switch (c->op) {
    case RUNMSG_EXEC:
        tell_started(r, c, data);
        return;
    case RUNMSG_READ:
        tell_page(c, data);
        return;
    case RUNMSG_STATUS:
        tell_status(c, data);
        return;
    case RUNMSG_LIST:
        tell_listing(c, data);
        return;
    case RUNMSG_PROBE:
        take_probe(r, data);
        c->fn.probe(c->user, &r->probe);
        return;
    case RUNMSG_RULES:
        tell_rules(c, data);
        return;
    case RUNMSG_WARM:
        c->fn.warm(c->user, (enum run_warm)((struct runmsg_warmth *)data)->state);
        return;
    default:
        c->fn.done(c->user, NULL);
        return;
    }
}

/* ---- calls ---- */

struct call_out *call_new(struct remote *r, enum runmsg_op op, void *user)
{
    struct call_out *c = mem_new(struct call_out);
    c->op = op;
    c->user = user;
    c->ticket = ++r->next_ticket;
    c->asked_ms = uv_now(r->loop);
    list_append(&r->calls, &c->link);
    r->n_calls++;
    return c;
}

static bool send_call(struct remote *r, struct call_out *c)
{
    c->sent = link_send_text(&r->link, buf_bytes(&c->text), c->text.len);
    buf_fini(&c->text);
    return c->sent;
}

static int unavailable(const struct remote *r, struct err *e)
{
    return err_set(e, ERR_RUNNER_UNAVAILABLE, "there is no worker: %s; nothing was done",
                   r->why == NULL ? "it has not started" : r->why);
}

/* May this call go out, now or when the worker is there? */
static int check_call(const struct remote *r, struct err *e)
{
    if (r->state == REMOTE_DOWN)
        return unavailable(r, e);
    if (r->n_calls > REMOTE_CALLS_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "%zu calls wait for the worker (REMOTE_CALLS_MAX); nothing was done",
                       r->n_calls);
    return 0;
}

run_ticket call_dispatch(struct remote *r, struct call_out *c, struct runmsg *m)
{
    struct err e;
    run_ticket ticket = c->ticket;
    m->request_id = mem_printf("r-%" PRIu64, c->ticket);
    runmsg_write(m, &c->text);
    runmsg_fini(m);
    int rc = check_call(r, &e);
    if (rc == 0 && r->state == REMOTE_UP && !send_call(r, c))
        rc = err_set(&e, ERR_LIMIT_EXCEEDED,
                     "the request is larger than a message to the worker may be (FRAME_MAX); "
                     "nothing was done");
    if (rc == 0)
        return ticket;
    fail(r, c, &e);
    return 0;
}

void call_dispatch_silent(struct remote *r, struct runmsg *m)
{
    struct call_out *c = call_new(r, m->op, NULL);
    c->silent = true;
    call_dispatch(r, c, m);
}

static void terminate_silently(struct remote *r, const char *process_id)
{
    struct runmsg m = {0};
    struct runmsg_terminate *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_TERMINATE);
    data->process_id = mem_strdup(process_id);
    call_dispatch_silent(r, &m);
}

/* ---- what comes back ---- */

void calls_send_waiting(struct remote *r)
{
    list_each (it, &r->calls) {
        struct call_out *c = container_of(it, struct call_out, link);
        if (!c->sent && !send_call(r, c))
            c->sent = true; /* too large, and nobody may be called from here: its time will end */
    }
}

static struct call_out *find_call(struct remote *r, const char *request_id)
{
    uint64_t ticket = 0;
    if (strncmp(request_id, "r-", 2) != 0 ||
        num_parse_u64(request_id + 2, 1, UINT64_MAX, &ticket) < 0)
        return NULL;
    list_each (it, &r->calls) {
        struct call_out *c = container_of(it, struct call_out, link);
        if (c->ticket == ticket)
            return c;
    }
    return NULL;
}

/* Should the worker be lost, this is what is known of the process; and an end that came with the
 * start comes as no event. */
static void learn(struct remote *r, enum runmsg_op op, void *data)
{
    struct runmsg_started *started = data;
    struct runmsg_page *page = data;
    if (op == RUNMSG_EXEC && started->has_page)
        known_learn(&r->known, &started->page.status);
    else if (op == RUNMSG_READ)
        known_learn(&r->known, &page->status);
    else if (op == RUNMSG_STATUS)
        known_learn(&r->known, data);
}

int calls_answer(struct remote *r, struct runmsg *m, struct err *e)
{
    struct call_out *c = find_call(r, m->request_id);
    if (c == NULL)
        return 0; /* given up long ago */
    if (m->failed) {
        fail(r, c, &m->failure);
        return 0;
    }
    if (m->op != c->op)
        return err_set(e, ERR_RUNNER_LOST, "it answered another question than was asked");
    struct call_out copy = *c;
    c->process_id = NULL;
    call_free(r, c);
    if (!copy.silent)
        tell(r, &copy, m->data);
    else if (copy.op == RUNMSG_EXEC)
        terminate_silently(r, copy.process_id);
    learn(r, copy.op, m->data);
    free(copy.process_id);
    return 0;
}

/* One in a round: telling it may change the list. */
void calls_check_deadlines(struct remote *r)
{
    uint64_t now = uv_now(r->loop);
    list_each (it, &r->calls) {
        struct call_out *c = container_of(it, struct call_out, link);
        if (c->silent || now - c->asked_ms < c->wait_ms + REMOTE_ANSWER_MS)
            continue;
        struct err e;
        struct call_out copy = *c;
        err_set(&e, ERR_RUNNER_LOST,
                "the worker did not answer within REMOTE_ANSWER_MS (%u ms); whether it acted is "
                "not known",
                REMOTE_ANSWER_MS);
        c->silent = true;
        copy.process_id = mem_strdup(c->process_id);
        tell_failure(&copy, &e);
        free(copy.process_id);
        return;
    }
}

static void lost_page(struct call_out *c, struct known *k)
{
    struct run_page page = {.bytes = "", .cursor = c->cursor, .start = c->cursor, .lost = true};
    msgs_status_from(&k->status, &page.status);
    c->fn.page(c->user, &page, NULL);
}

bool call_tell_known(struct remote *r, struct call_out *c)
{
    struct known *k = c->process_id == NULL ? NULL : known_get(&r->known, c->process_id);
    if (k == NULL || c->silent || (c->op != RUNMSG_READ && c->op != RUNMSG_STATUS))
        return false;
    list_remove(&c->link);
    if (c->op == RUNMSG_READ)
        lost_page(c, k);
    else
        tell_status(c, &k->status);
    call_free(r, c);
    return true;
}

void calls_give_up(struct remote *r)
{
    struct err e;
    while (!list_empty(&r->calls)) {
        struct call_out *c = container_of(r->calls.next, struct call_out, link);
        if (c->sent && call_tell_known(r, c))
            continue;
        if (c->sent)
            err_set(&e, ERR_RUNNER_LOST,
                    "the worker was lost before it answered (%s); whether it acted is not known",
                    r->why);
        else
            unavailable(r, &e);
        fail(r, c, &e);
    }
}
