/* run/runner: see runner.h. The calls go to whichever implementation is behind the pointer. */
#include "run/runner.h"

#include "base/mem.h"

run_ticket runner_exec(struct runner *r, const struct run_exec *x, run_exec_fn done, void *user)
{
    return r->ops->exec(r, x, done, user);
}

run_ticket runner_read(struct runner *r, const struct run_read *x, run_page_fn done, void *user)
{
    return r->ops->read(r, x, done, user);
}

run_ticket runner_status(struct runner *r, const char *id, run_status_fn done, void *user)
{
    return r->ops->status(r, id, done, user);
}

run_ticket runner_write(struct runner *r, const char *id, const void *data, size_t n, bool eof,
                        run_done_fn done, void *user)
{
    return r->ops->write(r, id, data, n, eof, done, user);
}

run_ticket runner_resize(struct runner *r, const char *id, uint16_t rows, uint16_t cols,
                         run_done_fn done, void *user)
{
    return r->ops->resize(r, id, rows, cols, done, user);
}

run_ticket runner_terminate(struct runner *r, const char *id, run_done_fn done, void *user)
{
    return r->ops->terminate(r, id, done, user);
}

run_ticket runner_terminate_by(struct runner *r, const char *id, const struct run_terminate *how,
                               run_done_fn done, void *user)
{
    return r->ops->terminate_by(r, id, how, done, user);
}

run_ticket runner_signal(struct runner *r, const char *id, int signal, run_done_fn done, void *user)
{
    return r->ops->signal(r, id, signal, done, user);
}

run_ticket runner_list(struct runner *r, const struct run_list *x, run_list_fn done, void *user)
{
    return r->ops->list(r, x, done, user);
}

void runner_probe(struct runner *r, run_probe_fn done, void *user)
{
    r->ops->probe(r, done, user);
}

run_ticket runner_warm(struct runner *r, const char *workspace_id, run_warm_fn done, void *user)
{
    return r->ops->warm(r, workspace_id, done, user);
}

run_ticket runner_rules(struct runner *r, const struct workspace *ws, run_rules_fn done, void *user)
{
    return r->ops->rules(r, ws, done, user);
}

void runner_cancel(struct runner *r, run_ticket ticket)
{
    if (ticket != 0)
        r->ops->cancel(r, ticket);
}

void runner_free(struct runner *r)
{
    if (r != NULL)
        r->ops->free(r);
}

const char *run_state_name(enum run_state s)
{
    static const char *const names[] = {"running", "exited"};
    ensure((size_t)s < ARRAY_LEN(names));
    return names[s];
}

const char *run_termination_name(enum run_termination t)
{
    static const char *const names[] = {
        [RUN_END_NONE] = "",
        [RUN_END_EXITED] = "exited",
        [RUN_END_SIGNALED] = "signaled",
        [RUN_END_TIMEOUT] = "timeout",
        [RUN_END_TERMINATED] = "terminated",
        [RUN_END_WRAPPER_FAILED] = "wrapper_failed",
        [RUN_END_LOST] = "lost",
        [RUN_END_LIMIT] = "limit",
    };
    ensure((size_t)t < ARRAY_LEN(names));
    return names[t];
}
