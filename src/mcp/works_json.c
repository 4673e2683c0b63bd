/* mcp/works_json: see works_json.h. */
#include "mcp/works_json.h"

void work_write_members(struct jsonw *w, const struct work *work)
{
    jsonw_kstr(w, "work_id", work->work_id);
    jsonw_kstr(w, "workspace_id", work->workspace_id);
    if (work->title != NULL)
        jsonw_kstr(w, "title", work->title);
    jsonw_kstr(w, "state", work_state_name(work->state));
    jsonw_kuint(w, "queue_revision", work->queue_revision);
    jsonw_kuint(w, "created_at", work->created_ms / 1000);
    if (work->closed_ms != 0)
        jsonw_kuint(w, "closed_at", work->closed_ms / 1000);
}

void intent_write_members(struct jsonw *w, const struct intent *i)
{
    jsonw_kstr(w, "intent_id", i->intent_id);
    if (i->work_id != NULL)
        jsonw_kstr(w, "work_id", i->work_id);
    jsonw_kstr(w, "workspace_id", i->workspace_id);
    jsonw_kint(w, "position", i->position);
    jsonw_kuint(w, "revision", i->revision);
    jsonw_kstr(w, "kind", intent_kind_name(i->kind));
    jsonw_kstr(w, "delivery", intent_delivery_name(i->delivery));
    jsonw_kstr(w, "state", intent_state_name(i->state));
    jsonw_kstr(w, "body", i->body);
    jsonw_kuint(w, "created_at", i->created_ms / 1000);
    jsonw_kuint(w, "updated_at", i->updated_ms / 1000);
    if (i->claimed_ms != 0)
        jsonw_kuint(w, "claimed_at", i->claimed_ms / 1000);
    if (i->completed_ms != 0)
        jsonw_kuint(w, "completed_at", i->completed_ms / 1000);
}
