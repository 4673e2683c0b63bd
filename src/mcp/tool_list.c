/* mcp/tool_list: list_processes: what runs and what has ended and is still kept, a page at a time.
 *
 * It exists because an answer can be lost on its way: the command may run, and nobody holds its
 * handle. The list shows the processes of this server, whoever started them: they share one set of
 * limits, so who is refused must be able to see by what. A page ends at a serial, not at a number
 * of items, so one that is read while processes start and end shows none twice and misses none that
 * stays.
 */
#include "mcp/status.h"
#include "mcp/tool.h"

struct list_call {
    const char *workspace_id;
    bool live_only;
    uint64_t after, limit;
    run_ticket ticket;
};

static void list_cancel(struct request *rq)
{
    struct list_call *x = rq->state;
    runner_cancel(rq->server->runner, x->ticket);
}

static void on_list(void *user, const struct run_listing *list, const struct err *failure)
{
    struct request *rq = user;
    const struct list_call *x = rq->state;
    if (failure != NULL) {
        request_fail(rq, failure);
        return;
    }
    struct jsonw *w = request_answer(rq);
    jsonw_key(w, "processes");
    jsonw_array(w);
    for (size_t i = 0; i < list->n; i++) {
        jsonw_object(w);
        jsonw_kuint(w, "serial", list->items[i].serial);
        status_write_all(w, &list->items[i]);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    jsonw_kbool(w, "more", list->more);
    jsonw_kuint(w, "next_after", list->n > 0 ? list->items[list->n - 1].serial : x->after);
    request_finish(rq);
}

static void list_run(struct request *rq)
{
    struct list_call *x = rq->state;
    struct err e;
    bool all = x->workspace_id == NULL || x->workspace_id[0] == '\0';
    if (!all && registry_get(rq->server->registry, x->workspace_id, &e) == NULL) {
        request_fail(rq, &e);
        return;
    }
    const struct run_list ask = {.workspace_id = all ? NULL : x->workspace_id,
                                 .after = x->after,
                                 .max = x->limit,
                                 .live_only = x->live_only};
    run_ticket ticket = runner_list(rq->server->runner, &ask, on_list, rq);
    if (ticket != 0) /* 0: answered already, and the call is gone */
        x->ticket = ticket;
}

#define AT(member) offsetof(struct list_call, member)
static const struct json_field in[] = {
    {"workspace_id", JSON_STR, 0, AT(workspace_id), 0, 0, NULL,
     "Only those of this workspace; without it all.", NULL},
    {"live_only", JSON_BOOL, 0, AT(live_only), 0, 0, NULL,
     "Only those that still run, or have left something that does.", "false"},
    {"after", JSON_U64, 0, AT(after), 0, 0, NULL, "next_after of the page before.", "0"},
    {"limit", JSON_U64, 0, AT(limit), 1, RUN_LIST_MAX, NULL, "Most to return.", "100"},
    TOOL_IGNORED_FIELDS,
};
#undef AT

static const struct output_field out[] = {
    {"processes", OUTPUT_OBJS, true,
     "By serial, in order of their starts; each as process_status tells it."},
    {"more", OUTPUT_BOOL, true, "There are more after next_after."},
    {"next_after", OUTPUT_INT, true, "What `after` of the next page is."},
};

const struct tool tool_list_processes = {
    .name = "list_processes",
    .title = "List commands",
    .description =
        "Lists the commands that run and those that have ended and can still be read (the last 64, "
        "for 15 minutes), with their state, oldest first. Use it to find a handle again, or after "
        "an answer that was lost.",
    .hints = TOOL_READS | TOOL_IDEMPOTENT,
    .in = in,
    .n_in = ARRAY_LEN(in),
    .out = out,
    .n_out = ARRAY_LEN(out),
    .state_size = sizeof(struct list_call),
    .run = list_run,
    .cancel = list_cancel,
};
