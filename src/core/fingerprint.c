/* core/fingerprint: see fingerprint.h. */
#include "core/fingerprint.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "base/str.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

/* The parts of one hash. Numbers are kept beside, since parts borrow. */
struct parts {
    struct ledger_part *items;
    size_t n;
    size_t cap;
};

static void add(struct parts *p, const void *data, size_t n)
{
    void *items = p->items;
    mem_grow(&items, &p->cap, p->n + 1, sizeof(*p->items));
    p->items = items;
    p->items[p->n++] = (struct ledger_part){data, n};
}

static void add_text(struct parts *p, const char *text)
{
    add(p, text, text == NULL ? 0 : strlen(text));
}

static void finish(struct parts *p, char ret[LEDGER_HASH_LEN])
{
    ledger_hash(p->items, p->n, ret);
    free(p->items);
}

static int by_path(const void *a, const void *b)
{
    const struct patch_expect *x = a;
    const struct patch_expect *y = b;
    return strcmp(x->path, y->path);
}

static void add_expectations(struct parts *p, const struct patch_request *q,
                             struct patch_expect *sorted)
{
    for (size_t i = 0; i < q->n_expect; i++)
        sorted[i] = q->expect[i];
    if (q->n_expect > 0)
        qsort(sorted, q->n_expect, sizeof(*sorted), by_path);
    for (size_t i = 0; i < q->n_expect; i++) {
        add_text(p, sorted[i].path);
        add_text(p, sorted[i].version);
    }
}

void fingerprint_patch(const char *workspace_id, const struct patch_request *q,
                       char ret[LEDGER_HASH_LEN])
{
    /* How many of what follow, and the flags: so that no two requests give the same parts. */
    const uint64_t head[] = {q->check_only, q->lax,      q->format, q->strip_plus_one,
                             q->is_inverse, q->n_expect, q->n_edits};
    struct parts p = {0};
    struct patch_expect *sorted = mem_zalloc(q->n_expect + 1, sizeof(*sorted));
    uint64_t *counts = mem_zalloc(q->n_edits + 1, sizeof(*counts));
    add_text(&p, "patch");
    add_text(&p, workspace_id);
    add(&p, head, sizeof(head));
    add_expectations(&p, q, sorted);
    for (size_t i = 0; i < q->n_edits; i++) {
        const struct patch_edit *edit = &q->edits[i];
        counts[i] = edit->count == 0 ? 1 : edit->count;
        add_text(&p, edit->path);
        add(&p, edit->old, edit->old_len);
        add(&p, edit->replacement, edit->replacement_len);
        add(&p, &counts[i], sizeof(counts[i]));
    }
    add(&p, q->text, q->text_len);
    finish(&p, ret);
    free(sorted);
    free(counts);
}

void fingerprint_revert(const char *workspace_id, const char *operation_id, bool check_only,
                        bool lax, char ret[LEDGER_HASH_LEN])
{
    const uint64_t head[] = {check_only, lax};
    struct parts p = {0};
    add_text(&p, "revert");
    add_text(&p, workspace_id);
    add_text(&p, operation_id);
    add(&p, head, sizeof(head));
    finish(&p, ret);
}

/* ---- arguments ---- */

/* As if it had not been sent. */
static bool counts_as_absent(struct json_object *v)
{
    switch (json_object_get_type(v)) {
    case json_type_null:
        return true;
    case json_type_boolean:
        return !json_object_get_boolean(v);
    case json_type_string:
        return json_object_get_string_len(v) == 0;
    case json_type_object:
        return json_object_object_length(v) == 0;
    case json_type_array:
        return json_object_array_length(v) == 0;
    default:
        return false;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void write_value(struct jsonw *w, struct json_object *v);

/* Depth is bounded by the parser (JSON_DEPTH_MAX). */
static void write_members(struct jsonw *w, struct json_object *object, const char *const *leave_out)
{
    size_t n = 0;
    const char **names = mem_zalloc((size_t)json_object_object_length(object) + 1, sizeof(*names));
    json_object_object_foreach(object, name, value)
    {
        /* An empty `stdin` ends at once, none stays open: the one default that is not emptiness. */
        bool out = leave_out != NULL && !str_eq(name, "stdin") && counts_as_absent(value);
        for (size_t i = 0; leave_out != NULL && leave_out[i] != NULL && !out; i++)
            out = str_eq(name, leave_out[i]);
        if (!out)
            names[n++] = name;
    }
    if (n > 0)
        qsort(names, n, sizeof(*names), by_name);
    jsonw_array(w);
    jsonw_bool(w, true); /* no array of ours begins so: the members of an object */
    for (size_t i = 0; i < n; i++) {
        struct json_object *v = NULL;
        json_object_object_get_ex(object, names[i], &v);
        jsonw_str(w, names[i]);
        write_value(w, v);
    }
    jsonw_array_end(w);
    free(names);
}

/* Text is written by its bytes, so no two strings look the same. */
static void write_value(struct jsonw *w, struct json_object *v)
{
    switch (json_object_get_type(v)) {
    case json_type_object:
        write_members(w, v, NULL);
        return;
    case json_type_array:
        jsonw_array(w);
        for (size_t i = 0; i < json_object_array_length(v); i++)
            write_value(w, json_object_array_get_idx(v, i));
        jsonw_array_end(w);
        return;
    case json_type_string:
        jsonw_strn(w, json_object_get_string(v), (size_t)json_object_get_string_len(v));
        return;
    default: { /* null, booleans and numbers as they came */
        const char *text = json_object_to_json_string(v);
        jsonw_raw(w, text, strlen(text));
    }
    }
}

void fingerprint_arguments(const char *workspace_id, const char *tool, struct json_object *args,
                           const char *const *leave_out, char ret[LEDGER_HASH_LEN])
{
    static const char *const none[] = {NULL};
    autobuf text = BUF_INIT;
    struct jsonw w;
    struct parts p = {0};
    jsonw_init(&w, &text);
    write_members(&w, args, leave_out != NULL ? leave_out : none);
    add_text(&p, tool);
    add_text(&p, workspace_id);
    add(&p, buf_bytes(&text), text.len);
    finish(&p, ret);
}
