/* run/known: see known.h. */
#include "run/known.h"

#include "base/str.h"
#include "run/msgs.h"
#include "wire/runmsg_fields.h"

void known_init(struct known_table *t, size_t max_ended)
{
    *t = (struct known_table){.max_ended = max_ended};
    list_init(&t->live);
    list_init(&t->ended);
}

static void known_free(struct known *k)
{
    list_remove(&k->link);
    runmsg_fields_fini(&runmsg_shape_status, &k->status);
    free(k);
}

void known_fini(struct known_table *t)
{
    list_each (it, &t->live)
        known_free(container_of(it, struct known, link));
    list_each (it, &t->ended)
        known_free(container_of(it, struct known, link));
    map_fini(&t->by_id);
}

static char *join(char *const *argv)
{
    autobuf text = BUF_INIT;
    for (size_t i = 0; argv[i] != NULL && text.len < RUN_COMMAND_SHOWN; i++)
        buf_printf(&text, "%s%.*s", i > 0 ? " " : "", (int)RUN_COMMAND_SHOWN, argv[i]);
    return buf_steal(&text);
}

void known_add(struct known_table *t, const struct run_exec *x)
{
    struct known *k = mem_new(struct known);
    k->status = (struct runmsg_status){
        .process_id = mem_strdup(x->process_id),
        .workspace_id = mem_strdup(x->ws->id),
        .command = join(x->argv),
        .tty = x->tty,
        .timeout_ms = x->timeout_ms,
        .idle_timeout_ms = x->idle_timeout_ms,
        .serial = ++t->next_serial,
    };
    list_append(&t->live, &k->link);
    map_set(&t->by_id, k->status.process_id, k);
}

void known_adopt(struct known_table *t, const struct run_status *s)
{
    if (known_get(t, s->process_id) != NULL)
        return;
    struct known *k = mem_new(struct known);
    msgs_status(s, &k->status);
    k->status.serial = ++t->next_serial;
    list_append(&t->live, &k->link);
    map_set(&t->by_id, k->status.process_id, k);
}

struct known *known_get(const struct known_table *t, const char *id)
{
    return map_get(&t->by_id, id);
}

static void forget(struct known_table *t, struct known *k)
{
    t->n_ended -= k->ended;
    map_remove(&t->by_id, k->status.process_id);
    known_free(k);
}

void known_forget_lost(struct known_table *t)
{
    list_each (it, &t->ended) {
        struct known *k = container_of(it, struct known, link);
        if (k->status.termination == RUN_END_LOST)
            forget(t, k);
    }
}

void known_drop(struct known_table *t, const char *id)
{
    struct known *k = known_get(t, id);
    if (k != NULL)
        forget(t, k);
}

static void retire(struct known_table *t, struct known *k)
{
    k->ended = true;
    list_remove(&k->link);
    list_append(&t->ended, &k->link);
    t->n_ended++;
    while (t->n_ended > t->max_ended)
        forget(t, container_of(t->ended.next, struct known, link));
}

void known_learn(struct known_table *t, struct runmsg_status *status)
{
    struct known *k = status->process_id == NULL ? NULL : known_get(t, status->process_id);
    if (k == NULL || (k->ended && status->sequence <= k->status.sequence))
        return;
    uint64_t serial = k->status.serial;
    runmsg_fields_fini(&runmsg_shape_status, &k->status);
    k->status = *status;
    k->status.serial = serial;
    *status = (struct runmsg_status){0};
    if (!k->ended && k->status.state == RUN_EXITED)
        retire(t, k);
}

/* Its end is known, and what it left is gone with the worker. */
static void lose_rest(struct known *k, const char *why)
{
    k->status.background_alive = false;
    k->status.eof = true;
    k->status.sequence++;
    free(k->status.reason);
    k->status.reason = mem_printf("what it left in the background was lost: %s", why);
}

void known_lose_all(struct known_table *t, const char *why)
{
    list_each (it, &t->ended) {
        struct known *k = container_of(it, struct known, link);
        if (k->status.background_alive)
            lose_rest(k, why);
    }
    while (!list_empty(&t->live)) {
        struct known *k = container_of(t->live.next, struct known, link);
        k->status.state = RUN_EXITED;
        k->status.termination = RUN_END_LOST;
        k->status.eof = true;
        k->status.sequence++;
        free(k->status.reason);
        k->status.reason = mem_printf("how it ended is not known: %s", why);
        retire(t, k);
    }
}

struct run_status *known_list(const struct known_table *t, const struct run_list *x,
                              struct run_listing *ret)
{
    size_t max = x->max != 0 && x->max < RUN_LIST_MAX ? (size_t)x->max : RUN_LIST_MAX;
    struct run_status *items = mem_zalloc(max, sizeof(*items));
    *ret = (struct run_listing){.items = items};
    list_each (it, &t->ended) {
        struct known *k = container_of(it, struct known, link);
        bool asked = x->workspace_id == NULL || str_eq(x->workspace_id, k->status.workspace_id);
        if (!asked || x->live_only || k->status.serial <= x->after)
            continue;
        ret->more = ret->n == max;
        if (ret->more)
            break;
        msgs_status_from(&k->status, &items[ret->n++]);
    }
    return items;
}
