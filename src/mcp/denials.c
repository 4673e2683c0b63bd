/* mcp/denials: see denials.h. */
#include "mcp/denials.h"

#include "wire/denial.h"

/* They say no with an ordinary errno, or with nothing in the file; nobody hears of it. */
static const char *const silent_layers[] = {"view", "masks", "network", NULL};

static void write_one(struct jsonw *w, const struct denial *d)
{
    const struct denial_rule *rule = denial_rule_find(d->rule);
    jsonw_object(w);
    jsonw_kstr(w, "rule", d->rule);
    jsonw_key(w, "layer");
    jsonw_strn(w, d->rule, denial_layer_len(d->rule));
    if (d->what[0] != '\0')
        jsonw_kstr(w, "what", d->what);
    jsonw_kuint(w, "count", d->count);
    if (d->pid != 0) {
        jsonw_key(w, "process");
        jsonw_object(w);
        jsonw_kuint(w, "pid", d->pid);
        jsonw_kstr(w, "program", d->process);
        jsonw_kbool(w, "others", d->others);
        jsonw_object_end(w);
    }
    if (rule != NULL) {
        jsonw_kstr(w, "meaning", rule->meaning);
        jsonw_kstr(w, "grant", rule->grant[0] != '\0' ? rule->grant : "not offered");
    }
    jsonw_object_end(w);
}

void denials_write_array(struct jsonw *w, const struct run_status *s)
{
    struct denial d;
    jsonw_array(w);
    for (size_t i = 0; s->denials != NULL && s->denials[i] != NULL; i++) {
        if (denial_read_line(s->denials[i], &d) == 0 && d.count > 0)
            write_one(w, &d);
    }
    jsonw_array_end(w);
}

/* Whether there is one that happened. */
static bool has_any(const struct run_status *s)
{
    struct denial d;
    for (size_t i = 0; s->denials != NULL && s->denials[i] != NULL; i++) {
        if (denial_read_line(s->denials[i], &d) == 0 && d.count > 0)
            return true;
    }
    return false;
}

static void write_unknown(struct jsonw *w, const struct run_status *s)
{
    struct denial d;
    jsonw_key(w, "denials_unknown");
    jsonw_array(w);
    for (size_t i = 0; silent_layers[i] != NULL; i++)
        jsonw_str(w, silent_layers[i]);
    for (size_t i = 0; s->denials != NULL && s->denials[i] != NULL; i++) {
        if (denial_read_line(s->denials[i], &d) == 0 && d.count == 0)
            jsonw_strn(w, d.rule, denial_layer_len(d.rule));
    }
    jsonw_array_end(w);
}

/* What was made may be more than what is told: that is for everybody to know. */
static bool is_unsearched(const struct run_status *s)
{
    struct denial d;
    for (size_t i = 0; s->denials != NULL && s->denials[i] != NULL; i++) {
        if (denial_read_line(s->denials[i], &d) == 0 && str_eq(d.rule, DENIAL_UNSEARCHED))
            return true;
    }
    return false;
}

void status_write_denials(struct jsonw *w, const struct run_status *s)
{
    if (s->state == RUN_RUNNING || !s->sandboxed)
        return;
    bool any = has_any(s);
    if (any) {
        jsonw_key(w, "denials");
        denials_write_array(w, s);
    }
    /* A command that did what it was to do has no need to know. */
    if (any || is_unsearched(s) || s->termination != RUN_END_EXITED || s->exit_code != 0)
        write_unknown(w, s);
}
