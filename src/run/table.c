/* run/table: see table.h. */
#include "run/table.h"

#include "run/managed.h"
#include "sys/session.h"

#include <inttypes.h>

bool table_is_own(const struct managed *m)
{
    return str_starts(m->id, RUN_OWN_PREFIX);
}

void table_forget(struct table *t, struct managed *m)
{
    map_remove(&t->by_id, m->id);
    t->n_ended--;
    t->n_own -= table_is_own(m);
    managed_free(m);
}

static void evict_oldest(struct table *t)
{
    static char here;
    struct managed *m = container_of(t->ended.next, struct managed, link);
    char **slot = &t->evicted_ids[t->evicted_at++ % TABLE_EVICTED_MAX];
    if (*slot != NULL)
        map_remove(&t->evicted, *slot);
    free(*slot);
    *slot = mem_strdup(m->id);
    map_set(&t->evicted, *slot, &here);
    table_forget(t, m);
}

/* By the loop's clock, so that setting the wall clock evicts nothing. */
static void apply_retention(struct table *t)
{
    uint64_t now = uv_now(t->alarm.timer.loop);
    while (t->n_ended > 0) {
        struct managed *oldest = container_of(t->ended.next, struct managed, link);
        uint64_t age = now - oldest->retired_ms;
        if (t->n_ended - t->n_own <= RUN_RETAIN_MAX && age < RUN_RETAIN_MS) {
            alarm_set(&t->alarm, RUN_RETAIN_MS - age);
            return;
        }
        evict_oldest(t);
    }
    alarm_stop(&t->alarm);
}

static void on_alarm(struct alarm *a, void *owner)
{
    apply_retention(owner);
}

void table_init(struct table *t, uv_loop_t *loop, struct anchor *anchor, size_t max_live)
{
    list_init(&t->live);
    list_init(&t->ended);
    t->max_live = max_live;
    alarm_open(&t->alarm, loop, anchor, on_alarm, t);
    uv_unref((uv_handle_t *)&t->alarm.timer); /* keeping old output is no reason to stay */
}

/* What runs on the host is killed in one walk: one for each would take seconds for a thousand. */
static void kill_sessions(struct table *t)
{
    size_t n = 0;
    autofree pid_t *sids = mem_zalloc(t->n_live + 1, sizeof(*sids));
    list_each (it, &t->live) {
        struct managed *m = container_of(it, struct managed, link);
        if (m->sandboxed || m->reaped || m->pid <= 0)
            continue;
        sids[n++] = m->pid;
        m->session_killed = true;
    }
    session_kill_all(sids, n);
}

void table_fini(struct table *t)
{
    kill_sessions(t);
    struct list *const both[] = {&t->live, &t->ended};
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        while (!list_empty(both[i]))
            managed_free(container_of(both[i]->next, struct managed, link));
    }
    for (size_t i = 0; i < TABLE_EVICTED_MAX; i++)
        free(t->evicted_ids[i]);
    map_fini(&t->by_id);
    map_fini(&t->evicted);
    alarm_close(&t->alarm);
}

int table_check_room(const struct table *t, struct err *e)
{
    if (t->n_live < t->max_live)
        return 0;
    return err_set(
        e, ERR_PROCESS_LIMIT,
        "%zu processes are alive, which is the limit (CODESPACE_MAX_PROCESSES, %zu): end "
        "one with terminate_process, or wait for one to end",
        t->n_live, t->max_live);
}

int table_check_workspace(const struct table *t, const char *workspace_id, uint64_t max,
                          struct err *e)
{
    size_t n = 0;
    list_each (it, &t->live)
        n += str_eq(container_of(it, struct managed, link)->ws->id, workspace_id);
    if (n < max)
        return 0;
    return err_set(e, ERR_WORKSPACE_PROCESS_LIMIT,
                   "%zu processes of workspace '%s' are alive, which is its limit "
                   "(CODESPACE_MAX_WORKSPACE_PROCESSES, %" PRIu64 "): end one with "
                   "terminate_process, or wait for one to end",
                   n, workspace_id, max);
}

void table_add(struct table *t, struct managed *m)
{
    list_append(&t->live, &m->link);
    t->n_live++;
    map_set(&t->by_id, m->id, m);
}

void table_drop(struct table *t, struct managed *m)
{
    t->n_live--;
    map_remove(&t->by_id, m->id);
    managed_free(m);
}

/* Those that nobody ended by name: calls that were given up. */
static void forget_oldest_own(struct table *t)
{
    list_each (it, &t->ended) {
        struct managed *m = container_of(it, struct managed, link);
        if (table_is_own(m)) {
            table_forget(t, m);
            return;
        }
    }
}

void table_retire(struct table *t, struct managed *m)
{
    list_remove(&m->link);
    list_append(&t->ended, &m->link);
    t->n_live--;
    t->n_ended++;
    t->n_own += table_is_own(m);
    m->retired_ms = uv_now(t->alarm.timer.loop);
    if (t->n_own > RUN_RETAIN_MAX)
        forget_oldest_own(t);
    apply_retention(t);
}

struct managed *table_get(const struct table *t, const char *id, struct err *e)
{
    struct managed *m = map_get(&t->by_id, id);
    if (m != NULL)
        return m;
    if (map_get(&t->evicted, id) != NULL)
        err_set(e, ERR_PROCESS_NOT_FOUND,
                "process '%s' has ended and its record was dropped: ended processes stay readable "
                "for %u s (RUN_RETAIN_MS) and only the newest %u of them (RUN_RETAIN_MAX)",
                id, RUN_RETAIN_MS / 1000u, RUN_RETAIN_MAX);
    else
        err_set(e, ERR_PROCESS_NOT_FOUND,
                "there is no process '%.80s': ids come from exec_command and are known as long as "
                "what runs the commands lives: the server, or its worker",
                id);
    return NULL;
}

/* ---- the list ---- */

static int by_serial(const void *a, const void *b)
{
    uint64_t x = (*(struct managed *const *)a)->serial;
    uint64_t y = (*(struct managed *const *)b)->serial;
    return x < y ? -1 : x > y;
}

static size_t collect(const struct list *from, const struct run_list *x, struct managed **ret)
{
    size_t n = 0;
    list_each (it, from) {
        struct managed *m = container_of(it, struct managed, link);
        bool asked = x->workspace_id == NULL || str_eq(x->workspace_id, m->ws->id);
        if (asked && !table_is_own(m) && m->serial > x->after &&
            (!x->live_only || managed_is_live(m)))
            ret[n++] = m;
    }
    return n;
}

struct run_status *table_list(const struct table *t, const struct run_list *x,
                              struct run_listing *ret)
{
    autofree struct managed **found = mem_zalloc(t->n_live + t->n_ended + 1, sizeof(*found));
    size_t n = collect(&t->live, x, found);
    n += collect(&t->ended, x, found + n);
    qsort(found, n, sizeof(*found), by_serial);
    size_t max = x->max != 0 && x->max < RUN_LIST_MAX ? (size_t)x->max : RUN_LIST_MAX;
    *ret = (struct run_listing){.n = n < max ? n : max, .more = n > max};
    struct run_status *items = mem_zalloc(ret->n + 1, sizeof(*items));
    for (size_t i = 0; i < ret->n; i++)
        status_fill(found[i], &items[i]);
    ret->items = items;
    return items;
}
