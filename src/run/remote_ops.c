/* run/remote_ops: see remote_core.h: each operation of the runner as a request. */
#include "run/msgs.h"
#include "run/remote_core.h"

#include <inttypes.h>

static struct remote *remote_of(struct runner *r)
{
    return container_of(r, struct remote, base);
}

static void take_first(struct call_out *c, const struct run_read *first, struct runmsg_exec *data)
{
    msgs_first(first, REMOTE_HOLD_MS, data);
    c->has_first = true;
    c->first = *first;
    c->first.process_id = NULL;
    c->wait_ms += REMOTE_HOLD_MS;
}

static run_ticket remote_exec(struct runner *base, const struct run_exec *ask, run_exec_fn done,
                              void *user)
{
    struct remote *r = remote_of(base);
    struct err e;
    struct run_exec x = *ask;
    autofree char *id = ask->process_id != NULL ? mem_strdup(ask->process_id) : str_new_id("proc-");
    x.process_id = id;
    x.timeout_ms = ask->timeout_ms != 0 ? ask->timeout_ms : r->timeout_ms;
    if (remote_reach(r, true, &e) < 0) {
        done(user, NULL, &e);
        return 0;
    }
    if (known_get(&r->known, id) != NULL) {
        err_set(&e, ERR_INVALID_ARGUMENT, "there is a process '%.80s' already", id);
        done(user, NULL, &e);
        return 0;
    }
    struct call_out *c = call_new(r, RUNMSG_EXEC, user);
    c->fn.exec = done;
    c->process_id = mem_strdup(id);
    c->wait_ms = x.exclusive_wait_ms != 0 ? x.exclusive_wait_ms : RUN_TURN_DEFAULT_MS;
    known_add(&r->known, &x);
    struct runmsg m = {0};
    struct runmsg_exec *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_EXEC);
    msgs_exec(&x, data);
    if (x.first != NULL && r->state == REMOTE_UP && r->level >= 1)
        take_first(c, x.first, data);
    /* What an operator asks for such a worker refuses, rather than not keeping it. */
    if (str_starts(id, RUN_OWN_PREFIX) && r->state == REMOTE_UP && r->level < 2)
        data->workspace.limits.data = 0;
    return call_dispatch(r, c, &m);
}

static bool is_same_read(const struct run_read *a, const struct run_read *b)
{
    return a->cursor == b->cursor && a->from == b->from && a->stream == b->stream &&
           a->max_bytes == b->max_bytes && a->wait_ms == b->wait_ms &&
           a->until_exit == b->until_exit && a->whole_chars == b->whole_chars &&
           a->clean == b->clean;
}

/* The read that went along with the start that is being told? True when it is answered by that;
 * else what was waited there already is taken off. */
static bool answer_first(struct remote *r, struct run_read *x, run_page_fn done, void *user)
{
    const struct first_answer *f = r->first;
    if (f == NULL || !str_eq(f->process_id, x->process_id) || !is_same_read(f->ask, x))
        return false;
    r->first = NULL;
    if (f->page == NULL) {
        x->wait_ms -= x->wait_ms < REMOTE_HOLD_MS ? x->wait_ms : REMOTE_HOLD_MS;
        return false;
    }
    struct run_page page;
    msgs_page_from(f->page, &page);
    done(user, &page, NULL);
    return true;
}

static run_ticket remote_read(struct runner *base, const struct run_read *ask, run_page_fn done,
                              void *user)
{
    struct remote *r = remote_of(base);
    struct err e;
    struct run_read copy = *ask;
    const struct run_read *x = &copy;
    if (answer_first(r, &copy, done, user))
        return 0;
    (void)remote_reach(r, false, &e);
    struct call_out *c = call_new(r, RUNMSG_READ, user);
    c->fn.page = done;
    c->process_id = mem_strdup(x->process_id);
    c->cursor = x->from == RUN_FROM_OFFSET ? x->cursor : 0;
    c->wait_ms = x->wait_ms < RUN_WAIT_MAX_MS ? x->wait_ms : RUN_WAIT_MAX_MS;
    struct known *k = known_get(&r->known, x->process_id);
    bool lost = k != NULL && k->ended && k->status.termination == RUN_END_LOST;
    if ((lost || r->state == REMOTE_DOWN) && call_tell_known(r, c))
        return 0;
    struct runmsg m = {0};
    msgs_read(x, runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_READ));
    return call_dispatch(r, c, &m);
}

static run_ticket remote_status(struct runner *base, const char *id, run_status_fn done, void *user)
{
    struct remote *r = remote_of(base);
    struct err e;
    (void)remote_reach(r, false, &e);
    struct call_out *c = call_new(r, RUNMSG_STATUS, user);
    c->fn.status = done;
    c->process_id = mem_strdup(id);
    struct known *k = known_get(&r->known, id);
    bool lost = k != NULL && k->ended && k->status.termination == RUN_END_LOST;
    if ((lost || r->state == REMOTE_DOWN) && call_tell_known(r, c))
        return 0;
    struct runmsg m = {0};
    struct runmsg_id *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_STATUS);
    data->process_id = mem_strdup(id);
    return call_dispatch(r, c, &m);
}

static run_ticket remote_write(struct runner *base, const char *id, const void *bytes, size_t n,
                               bool eof, run_done_fn done, void *user)
{
    struct call_out *c = call_new(remote_of(base), RUNMSG_WRITE, user);
    c->fn.done = done;
    struct runmsg m = {0};
    struct runmsg_write *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_WRITE);
    *data = (struct runmsg_write){.process_id = mem_strdup(id), .eof = eof};
    buf_put(&data->data, bytes, n);
    return call_dispatch(remote_of(base), c, &m);
}

static run_ticket remote_resize(struct runner *base, const char *id, uint16_t rows, uint16_t cols,
                                run_done_fn done, void *user)
{
    struct call_out *c = call_new(remote_of(base), RUNMSG_RESIZE, user);
    c->fn.done = done;
    struct runmsg m = {0};
    struct runmsg_resize *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_RESIZE);
    *data = (struct runmsg_resize){mem_strdup(id), rows, cols};
    return call_dispatch(remote_of(base), c, &m);
}

static run_ticket remote_terminate_by(struct runner *base, const char *id,
                                      const struct run_terminate *how, run_done_fn done, void *user)
{
    struct err e;
    (void)remote_reach(remote_of(base), false, &e);
    struct call_out *c = call_new(remote_of(base), RUNMSG_TERMINATE, user);
    c->fn.done = done;
    struct runmsg m = {0};
    struct runmsg_terminate *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_TERMINATE);
    *data = (struct runmsg_terminate){.process_id = mem_strdup(id),
                                      .signal = (uint64_t)(how->signal > 0 ? how->signal : 0),
                                      .grace_ms = how->grace_ms,
                                      .has_grace = how->has_grace};
    return call_dispatch(remote_of(base), c, &m);
}

static run_ticket remote_terminate(struct runner *base, const char *id, run_done_fn done,
                                   void *user)
{
    static const struct run_terminate usual = {0};
    return remote_terminate_by(base, id, &usual, done, user);
}

static run_ticket remote_signal(struct runner *base, const char *id, int signal, run_done_fn done,
                                void *user)
{
    struct err e;
    if (signal < 1 || signal > 64) {
        err_set(&e, ERR_INVALID_ARGUMENT, "signal: %d is none; 1 to 64 are", signal);
        done(user, &e);
        return 0;
    }
    struct call_out *c = call_new(remote_of(base), RUNMSG_SIGNAL, user);
    c->fn.done = done;
    struct runmsg m = {0};
    struct runmsg_signal *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_SIGNAL);
    *data = (struct runmsg_signal){mem_strdup(id), (uint64_t)signal};
    return call_dispatch(remote_of(base), c, &m);
}

static run_ticket remote_list(struct runner *base, const struct run_list *x, run_list_fn done,
                              void *user)
{
    struct remote *r = remote_of(base);
    struct err e;
    (void)remote_reach(r, false, &e);
    if (r->state == REMOTE_DOWN) {
        struct run_listing listing;
        struct run_status *items = known_list(&r->known, x, &listing);
        done(user, &listing, NULL);
        free(items);
        return 0;
    }
    struct call_out *c = call_new(r, RUNMSG_LIST, user);
    c->fn.list = done;
    struct runmsg m = {0};
    struct runmsg_list *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_LIST);
    *data = (struct runmsg_list){mem_strdup(x->workspace_id), x->after, x->max, x->live_only};
    return call_dispatch(r, c, &m);
}

static void remote_probe(struct runner *base, run_probe_fn done, void *user)
{
    struct remote *r = remote_of(base);
    if (r->probed) {
        done(user, &r->probe);
        return;
    }
    struct call_out *c = call_new(r, RUNMSG_PROBE, user);
    c->fn.probe = done;
    struct runmsg m = {0};
    runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_PROBE);
    call_dispatch(r, c, &m);
}

static run_ticket remote_warm(struct runner *base, const char *workspace_id, run_warm_fn done,
                              void *user)
{
    struct call_out *c = call_new(remote_of(base), RUNMSG_WARM, user);
    c->fn.warm = done;
    struct runmsg m = {0};
    struct runmsg_place *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_WARM);
    data->workspace_id = mem_strdup(workspace_id);
    return call_dispatch(remote_of(base), c, &m);
}

static run_ticket remote_rules(struct runner *base, const struct workspace *ws, run_rules_fn done,
                               void *user)
{
    struct remote *r = remote_of(base);
    struct err e;
    (void)remote_reach(r, false, &e);
    struct call_out *c = call_new(r, RUNMSG_RULES, user);
    c->fn.rules = done;
    struct runmsg m = {0};
    msgs_rules(ws, runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_RULES));
    return call_dispatch(r, c, &m);
}

/* The request may be answered while this is under way: then an exec is ended on its answer. */
static void remote_cancel(struct runner *base, run_ticket ticket)
{
    struct remote *r = remote_of(base);
    list_each (it, &r->calls) {
        struct call_out *c = container_of(it, struct call_out, link);
        if (c->ticket != ticket || c->silent)
            continue;
        if (!c->sent) {
            if (c->op == RUNMSG_EXEC)
                known_drop(&r->known, c->process_id);
            call_free(r, c);
            return;
        }
        c->silent = true;
        struct runmsg m = {0};
        struct runmsg_replay *data = runmsg_new_data(&m, RUNMSG_REQUEST, RUNMSG_CANCEL);
        data->request_id = mem_printf("r-%" PRIu64, ticket);
        call_dispatch_silent(r, &m);
        return;
    }
}

const struct runner_ops remote_ops = {
    .exec = remote_exec,
    .read = remote_read,
    .status = remote_status,
    .write = remote_write,
    .resize = remote_resize,
    .terminate = remote_terminate,
    .terminate_by = remote_terminate_by,
    .signal = remote_signal,
    .list = remote_list,
    .probe = remote_probe,
    .warm = remote_warm,
    .rules = remote_rules,
    .cancel = remote_cancel,
    .free = remote_free,
};
