/* mcp/status: see status.h. */
#include "mcp/status.h"

#include "mcp/denials.h"

#include <stdio.h>
#include <stdlib.h>
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

static void write_names(struct jsonw *w, const char *key, const char *const *names)
{
    if (names == NULL || *names == NULL)
        return;
    jsonw_key(w, key);
    jsonw_array(w);
    for (; *names != NULL; names++)
        jsonw_str(w, *names);
    jsonw_array_end(w);
}

static void write_text(struct jsonw *w, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0')
        jsonw_kstr(w, key, text);
}

static void write_positive(struct jsonw *w, const char *key, uint64_t value)
{
    if (value > 0)
        jsonw_kuint(w, key, value);
}

/* What can be said of it whether it runs or not. */
static void write_troubles(struct jsonw *w, const struct run_status *s)
{
    if (s->stopped)
        jsonw_kbool(w, "stopped", true);
    write_text(w, "weaker", s->weaker);
    write_positive(w, "output_dropped", s->output_dropped);
    write_text(w, "output_failed", s->output_failed);
}

/* Each is "PID NAME". */
static void write_left(struct jsonw *w, const char *const *lines)
{
    if (lines == NULL || *lines == NULL)
        return;
    jsonw_key(w, "background_pids");
    jsonw_array(w);
    for (; *lines != NULL; lines++) {
        char *name = NULL;
        unsigned long pid = strtoul(*lines, &name, 10);
        jsonw_object(w);
        jsonw_kuint(w, "pid", pid);
        jsonw_kstr(w, "name", name + (*name == ' '));
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void write_background(struct jsonw *w, const struct run_status *s)
{
    if (s->background == 0 && !s->background_alive)
        return;
    jsonw_kuint(w, "background", s->background);
    jsonw_kbool(w, "background_alive", s->background_alive);
    write_left(w, s->background_pids);
}

void status_write_end(struct jsonw *w, const struct run_status *s)
{
    jsonw_kstr(w, "state", run_state_name(s->state));
    write_troubles(w, s);
    if (s->state == RUN_RUNNING)
        return;
    if (s->termination == RUN_END_EXITED)
        jsonw_kint(w, "exit_code", s->exit_code);
    jsonw_kstr(w, "termination", run_termination_name(s->termination));
    if (s->termination == RUN_END_SIGNALED)
        write_signal(w, s->signal);
    write_text(w, "reason", s->reason);
    write_background(w, s);
    write_names(w, "removed", s->removed);
    write_names(w, "created_repositories", s->created);
    status_write_denials(w, s);
    if (s->started_ms > 0 && s->ended_ms >= s->started_ms)
        jsonw_kuint(w, "duration_ms", s->ended_ms - s->started_ms);
    write_positive(w, "cpu_us", s->cpu_us);
    write_positive(w, "max_rss_kib", s->max_rss_kib);
}

void status_write_all(struct jsonw *w, const struct run_status *s)
{
    jsonw_kstr(w, "process_id", s->process_id);
    jsonw_kstr(w, "workspace_id", s->workspace_id);
    write_text(w, "command", s->command);
    status_write_end(w, s);
    jsonw_kuint(w, "output_total", s->output_total);
    jsonw_kuint(w, "output_retained_from", s->output_retained_from);
    jsonw_kbool(w, "eof", s->eof);
    jsonw_kstr(w, "sandbox", status_sandbox(s));
    jsonw_kstr(w, "network_scope", status_network_scope(s));
    jsonw_kbool(w, "tty", s->tty);
    jsonw_kuint(w, "timeout_ms", s->timeout_ms);
    write_positive(w, "idle_timeout_ms", s->idle_timeout_ms);
    jsonw_kuint(w, "started_at_ms", s->started_ms);
    write_positive(w, "ended_at_ms", s->ended_ms);
}

/* Lost with its worker before that had told anything of it. */
static bool never_told(const struct run_status *s)
{
    return s->termination == RUN_END_LOST && s->started_ms == 0;
}

const char *status_sandbox(const struct run_status *s)
{
    if (never_told(s))
        return "unknown";
    return s->sandboxed ? "linux-sandbox" : "none";
}

const char *status_network_scope(const struct run_status *s)
{
    if (never_told(s))
        return "unknown";
    if (!s->sandboxed)
        return "host";
    return s->shares_network ? "workspace" : "command";
}
