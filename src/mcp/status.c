/* mcp/status: see status.h. */
#include "mcp/status.h"

#include <stdio.h>
#include <string.h>

static void write_signal(struct jsonw *w, int number)
{
    char name[32];
    const char *abbreviation = sigabbrev_np(number);
    jsonw_key(w, "signal");
    jsonw_object(w);
    jsonw_kint(w, "number", number);
    if (abbreviation != NULL) {
        snprintf(name, sizeof(name), "SIG%s", abbreviation);
        jsonw_kstr(w, "name", name);
    }
    jsonw_object_end(w);
}

static void write_removed(struct jsonw *w, const char *const *removed)
{
    if (removed == NULL || *removed == NULL)
        return;
    jsonw_key(w, "removed");
    jsonw_array(w);
    for (; *removed != NULL; removed++)
        jsonw_str(w, *removed);
    jsonw_array_end(w);
}

void status_write_end(struct jsonw *w, const struct run_status *s)
{
    jsonw_kstr(w, "state", run_state_name(s->state));
    if (s->state == RUN_RUNNING)
        return;
    if (s->termination == RUN_END_EXITED)
        jsonw_kint(w, "exit_code", s->exit_code);
    jsonw_kstr(w, "termination", run_termination_name(s->termination));
    if (s->termination == RUN_END_SIGNALED)
        write_signal(w, s->signal);
    if (s->reason != NULL && s->reason[0] != '\0')
        jsonw_kstr(w, "reason", s->reason);
    if (s->background > 0)
        jsonw_kuint(w, "background", s->background);
    write_removed(w, s->removed);
    if (s->ended_ms >= s->started_ms)
        jsonw_kuint(w, "duration_ms", s->ended_ms - s->started_ms);
}

const char *status_sandbox(const struct run_status *s)
{
    return s->sandboxed ? "linux-sandbox" : "none";
}
