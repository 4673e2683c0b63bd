/* core/udiff: see udiff.h. A reader that takes one line at a time. Between hunks a line is known by
 * its first words; within a hunk only the counts of its header say what belongs to it. */
#include "core/udiff.h"

#include "base/mem.h"
#include "core/udiff_head.h"

#include <string.h>

/* Numbers in a hunk's header; no file has so many lines (LINES_MAX). */
#define NUMBER_MAX 999999999u

struct udiff_hunk {
    size_t old_line;
    size_t old_n;
    size_t new_line;
    size_t new_n;
};

struct reader {
    const char *at;
    const char *end;
    size_t line_number; /* of `line`, from 1 */
    struct text line;   /* without its LF, and its CR when strip_cr */
    bool strip_cr;      /* the patch is written with CR LF throughout */
    bool in_text;       /* mail text is passed over until the next header */
    bool open;          /* the last section may get more header lines or hunks */
    size_t n_hunks;
    ptrdiff_t delta; /* lines that the hunks of this section added so far */
    struct patch_doc doc;
    struct udiff_head *heads; /* one a section */
    size_t heads_cap;
    struct err *e;
};

#define REFUSE(r, format, ...)                                                                     \
    err_set((r)->e, ERR_INVALID_PATCH, "line %zu of the patch: " format, (r)->line_number,         \
            ##__VA_ARGS__)

/* ---- lines ---- */

static bool next_line(struct reader *r)
{
    if (r->at == r->end)
        return false;
    const char *lf = memchr(r->at, '\n', (size_t)(r->end - r->at));
    const char *stop = lf != NULL ? lf : r->end;
    r->line = (struct text){r->at, (size_t)(stop - r->at)};
    if (r->strip_cr && r->line.len > 0 && r->line.at[r->line.len - 1] == '\r')
        r->line.len--;
    r->at = lf != NULL ? lf + 1 : r->end;
    r->line_number++;
    return true;
}

static bool starts(struct text t, const char *prefix)
{
    size_t n = strlen(prefix);
    return t.len >= n && memcmp(t.at, prefix, n) == 0;
}

static struct text without(struct text t, size_t n)
{
    return (struct text){t.at + n, t.len - n};
}

static int shown(struct text t)
{
    return t.len < 60 ? (int)t.len : 60;
}

/* "--- " is a header only when "+++ " follows. */
static bool is_names(const struct reader *r)
{
    struct reader ahead = *r;
    return starts(r->line, "--- ") && next_line(&ahead) && starts(ahead.line, "+++ ");
}

static bool is_header(const struct reader *r)
{
    return starts(r->line, "diff --git ") || is_names(r);
}

/* ---- sections ---- */

static struct udiff_head *last_head(struct reader *r)
{
    return &r->heads[r->doc.n - 1];
}

static struct patch_section *last_section(struct reader *r)
{
    return &r->doc.sections[r->doc.n - 1];
}

static int open_section(struct reader *r)
{
    if (r->doc.n == PATCH_FILES_MAX)
        return err_set(r->e, ERR_LIMIT_EXCEEDED,
                       "the patch has more file sections than PATCH_FILES_MAX (%u); send several "
                       "patches",
                       PATCH_FILES_MAX);
    void *items = r->heads;
    mem_grow(&items, &r->heads_cap, r->doc.n + 1, sizeof(struct udiff_head));
    r->heads = items;
    r->heads[r->doc.n] = (struct udiff_head){.line = r->line_number};
    patch_doc_add(&r->doc);
    r->delta = 0;
    r->in_text = false;
    r->open = true;
    return 0;
}

static int read_git(struct reader *r)
{
    if (open_section(r) < 0)
        return -1;
    return udiff_head_git(last_head(r), without(r->line, strlen("diff --git ")), r->e);
}

/* "---" and "+++", of git's section that is open, or of a new one. */
static int read_names(struct reader *r)
{
    bool belongs = r->open && last_head(r)->git && last_section(r)->n == 0 &&
                   last_head(r)->name[0] == NULL && last_head(r)->name[1] == NULL;
    if (!belongs && open_section(r) < 0)
        return -1;
    if (udiff_head_name(last_head(r), 0, without(r->line, 4), r->e) < 0)
        return -1;
    ensure(next_line(r));
    return udiff_head_name(last_head(r), 1, without(r->line, 4), r->e);
}

/* ---- hunks ---- */

static size_t digits(struct text *t)
{
    size_t v = 0;
    while (t->len > 0 && t->at[0] >= '0' && t->at[0] <= '9' && v <= NUMBER_MAX) {
        v = v * 10 + (size_t)(t->at[0] - '0');
        *t = without(*t, 1);
    }
    return v;
}

static bool range(struct text *t, char mark, size_t *ret_line, size_t *ret_n)
{
    if (t->len < 2 || t->at[0] != mark || t->at[1] < '0' || t->at[1] > '9')
        return false;
    *t = without(*t, 1);
    *ret_line = digits(t);
    *ret_n = 1;
    if (t->len > 1 && t->at[0] == ',' && t->at[1] >= '0' && t->at[1] <= '9') {
        *t = without(*t, 1);
        *ret_n = digits(t);
    }
    return *ret_line <= NUMBER_MAX && *ret_n <= NUMBER_MAX;
}

static bool read_range(struct text t, struct udiff_hunk *u)
{
    if (!starts(t, "@@ "))
        return false;
    t = without(t, 3);
    if (!range(&t, '-', &u->old_line, &u->old_n) || t.len == 0 || t.at[0] != ' ')
        return false;
    t = without(t, 1);
    return range(&t, '+', &u->new_line, &u->new_n) && starts(t, " @@");
}

/* How many lines there are instead. A "-- " is a mail's signature rather than a removed line. */
static int say_counts(struct reader *r, size_t header, struct udiff_hunk u, struct reader body)
{
    size_t n[2] = {0, 0};
    while (next_line(&body) && !is_header(&body)) {
        char op = body.line.len > 0 ? body.line.at[0] : '\0';
        if (op == '\\')
            continue;
        if ((op != ' ' && op != '-' && op != '+') || starts(body.line, "-- "))
            break;
        n[0] += op != '+';
        n[1] += op != '-';
    }
    return err_set(r->e, ERR_INVALID_PATCH,
                   "line %zu of the patch: the header of the hunk promises %zu old and %zu new "
                   "lines, but %zu and %zu follow; it would read \"@@ -%zu,%zu +%zu,%zu @@\"",
                   header, u.old_n, u.new_n, n[0], n[1], u.old_line, n[0], u.new_line, n[1]);
}

/* What is still to come of a hunk's old [0] and new [1] lines. */
struct rest {
    size_t left[2];
    bool ended[2]; /* the last line of the file was there */
};

static int read_no_eol(struct reader *r, struct hunk *h, struct rest *rest)
{
    struct hunk_line *last = h->n > 0 ? &h->lines[h->n - 1] : NULL;
    if (last == NULL || last->no_eol)
        return REFUSE(r, "\"%.*s\" follows no line", shown(r->line), r->line.at);
    last->no_eol = true;
    rest->ended[0] |= last->op != '+';
    rest->ended[1] |= last->op != '-';
    return 0;
}

/* Read one line of the body; 1 when it does not belong there. */
static int read_line(struct reader *r, struct hunk *h, struct rest *rest)
{
    struct text t = r->line;
    char op = t.len > 0 ? t.at[0] : ' ';
    if (op == '\\')
        return read_no_eol(r, h, rest);
    size_t old = op == ' ' || op == '-';
    size_t new = op == ' ' || op == '+';
    if (old + new == 0 || old > rest->left[0] || new > rest->left[1])
        return 1;
    if ((old > 0 && rest->ended[0]) || (new > 0 && rest->ended[1]))
        return REFUSE(r, "lines follow one that has \"\\ No newline at end of file\"");
    rest->left[0] -= old;
    rest->left[1] -= new;
    hunk_add_line(h, (struct hunk_line){.at = t.len > 0 ? t.at + 1 : t.at,
                                        .len = t.len > 0 ? (uint32_t)t.len - 1 : 0,
                                        .op = op});
    return 0;
}

static bool changes(const struct hunk *h)
{
    for (size_t i = 0; i < h->n; i++) {
        if (h->lines[i].op != ' ')
            return true;
    }
    return false;
}

/* Where the header says that it belongs; only when both of its numbers say the same. */
static void set_place(struct reader *r, struct hunk *h, struct udiff_hunk u)
{
    size_t old = u.old_n > 0 && u.old_line > 0 ? u.old_line - 1 : u.old_line;
    size_t new = u.new_n > 0 && u.new_line > 0 ? u.new_line - 1 : u.new_line;
    h->numbered = true;
    h->at = old;
    h->at_known = (ptrdiff_t) new == (ptrdiff_t)old + r->delta;
    r->delta += (ptrdiff_t)u.new_n - (ptrdiff_t)u.old_n;
}

/* The line behind the hunk looks as if it belonged to it. */
static bool has_more(const struct reader *r)
{
    struct reader ahead = *r;
    if (!next_line(&ahead) || is_header(&ahead))
        return false;
    struct text t = ahead.line;
    bool signature = starts(t, "-- ") || (t.len == 2 && starts(t, "--"));
    return t.len > 0 && (t.at[0] == ' ' || t.at[0] == '+' || t.at[0] == '-') && !signature;
}

static int read_body(struct reader *r, struct hunk *h, struct udiff_hunk u)
{
    size_t header = r->line_number;
    struct reader body = *r;
    struct rest rest = {.left = {u.old_n, u.new_n}};
    while (rest.left[0] > 0 || rest.left[1] > 0) {
        int rc = next_line(r) ? read_line(r, h, &rest) : 1;
        if (rc != 0)
            return rc < 0 ? -1 : say_counts(r, header, u, body);
    }
    struct reader ahead = *r;
    if (next_line(&ahead) && starts(ahead.line, "\\")) {
        *r = ahead;
        if (read_no_eol(r, h, &rest) < 0)
            return -1;
    }
    if (has_more(r))
        return say_counts(r, header, u, body);
    if (!changes(h))
        return err_set(r->e, ERR_INVALID_PATCH,
                       "line %zu of the patch: the hunk has neither '-' nor '+' lines", header);
    return 0;
}

static int read_hunk(struct reader *r)
{
    struct udiff_hunk u = {0};
    if (!r->open)
        return REFUSE(r, "a hunk without \"---\" and \"+++\" lines before it");
    if (!read_range(r->line, &u))
        return REFUSE(r, "\"%.*s\" is not the header of a hunk, \"@@ -1,2 +1,3 @@\"",
                      shown(r->line), r->line.at);
    struct udiff_head *head = last_head(r);
    if (head->name[0] == NULL && !head->null[0])
        return REFUSE(r, "a hunk without \"---\" and \"+++\" lines before it");
    if (++r->n_hunks > PATCH_HUNKS_MAX)
        return err_set(r->e, ERR_LIMIT_EXCEEDED,
                       "the patch has more hunks than PATCH_HUNKS_MAX (%u); send several patches",
                       PATCH_HUNKS_MAX);
    struct hunk *h = patch_section_add_hunk(last_section(r));
    h->patch_line = r->line_number;
    set_place(r, h, u);
    return read_body(r, h, u);
}

/* ---- what stands between ---- */

static int refuse_binary(struct reader *r)
{
    return REFUSE(r, "\"%.*s\": binary patches are not applied; write the file with a command",
                  shown(r->line), r->line.at);
}

static int refuse_only(struct reader *r)
{
    return REFUSE(r, "\"%.*s\": the diff does not hold that file; make it with diff -N",
                  shown(r->line), r->line.at);
}

static int close_section(struct reader *r)
{
    r->open = false;
    return 0;
}

static int begin_text(struct reader *r)
{
    r->open = false;
    r->in_text = true;
    return 0;
}

static const struct {
    const char *prefix;
    int (*read)(struct reader *r);
} between[] = {
    {"diff --git ", read_git},
    {"@@", read_hunk},
    {"GIT binary patch", refuse_binary},
    {"Binary files ", refuse_binary},
    {"Files ", refuse_binary},
    {"Only in ", refuse_only},
    {"diff ", close_section},
    {"Index: ", close_section},
    {"=====", close_section},
    {"-- ", begin_text},
    {"From ", begin_text},
};

static int read_between(struct reader *r)
{
    if (is_names(r))
        return read_names(r);
    if (r->in_text && !starts(r->line, "diff -") && !starts(r->line, "@@ -"))
        return 0;
    r->in_text = false;
    if (text_trim(r->line).len == 0) {
        /* A blank line ends the file, as in git: a hunk behind it may lack what was here. */
        r->open = false;
        return 0;
    }
    if (r->open && last_head(r)->git && last_section(r)->n == 0) {
        /* A name that is cut off is another name. */
        if (r->at == r->end && r->end[-1] != '\n')
            return REFUSE(r, "the patch is cut off: its last line is a header without an end");
        int rc = udiff_head_extended(last_head(r), r->line, r->e);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(between); i++) {
        if (starts(r->line, between[i].prefix))
            return between[i].read(r);
    }
    if (starts(r->line, "--") && r->line.len == 2)
        return begin_text(r);
    return REFUSE(r, "\"%.*s\" belongs to no hunk and is no header", shown(r->line), r->line.at);
}

/* ---- sections that are complete ---- */

static int fill_added(struct reader *r, struct patch_section *s)
{
    for (size_t i = 0; s->n > 0 && i < s->hunks[0].n; i++) {
        const struct hunk_line *l = &s->hunks[0].lines[i];
        if (l->op != '+' || s->n > 1)
            return err_set(r->e, ERR_INVALID_PATCH,
                           "%s (line %zu of the patch): a new file has one hunk of '+' lines",
                           s->path, s->patch_line);
        buf_put(&s->content, l->at, l->len);
        buf_puts(&s->content, l->no_eol ? "" : "\n");
    }
    if (s->content.len > PATCH_FILE_MAX)
        return err_set(r->e, ERR_LIMIT_EXCEEDED, "%s has more bytes than PATCH_FILE_MAX (%u)",
                       s->path, PATCH_FILE_MAX);
    return 0;
}

static int finish_section(struct reader *r, size_t i, int strip)
{
    struct patch_section *s = &r->doc.sections[i];
    if (udiff_head_apply(&r->heads[i], strip, s, r->e) < 0)
        return -1;
    const struct udiff_head *h = &r->heads[i];
    bool named = h->name[0] != NULL || h->null[0];
    bool nothing = s->kind == PATCH_UPDATE && s->mode == PATCH_MODE_KEEP;
    if (s->kind == PATCH_ADD && (s->n > 0 || !named))
        return fill_added(r, s);
    if (s->n == 0 && (named || nothing))
        return err_set(r->e, ERR_INVALID_PATCH,
                       "%s (line %zu of the patch): the section has no hunks: it is cut off, or "
                       "changes nothing",
                       s->path, s->patch_line);
    return 0;
}

static int finish(struct reader *r, int strip)
{
    if (r->doc.n == 0)
        return err_set(r->e, ERR_INVALID_PATCH,
                       "the text holds no unified diff: no \"diff --git \" line, and no \"--- \" "
                       "line with a \"+++ \" line behind it");
    if (strip == PATCH_STRIP_AUTO && udiff_heads_strip(r->heads, r->doc.n, &strip, r->e) < 0)
        return -1;
    for (size_t i = 0; i < r->doc.n; i++) {
        if (finish_section(r, i, strip) < 0)
            return -1;
        r->doc.from_preimage |= r->heads[i].git;
    }
    return 0;
}

/* A patch whose first header ends in CR LF was written with CR LF throughout. */
static bool has_cr(const char *text, size_t n)
{
    struct reader r = {.at = text, .end = text + n};
    while (next_line(&r)) {
        if (is_header(&r))
            return r.line.at[r.line.len - 1] == '\r';
    }
    return false;
}

static int read_all(struct reader *r, int strip)
{
    r->in_text = true;
    while (next_line(r)) {
        if (read_between(r) < 0)
            return -1;
    }
    return finish(r, strip);
}

int udiff_parse(const char *text, size_t n, int strip, struct patch_doc *ret, struct err *e)
{
    if (n > PATCH_INVERSE_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "the diff has %zu bytes, more than PATCH_INVERSE_MAX (%u)", n,
                       PATCH_INVERSE_MAX);
    if (strip != PATCH_STRIP_AUTO && (strip < 0 || strip > UDIFF_STRIP_MAX))
        return err_set(e, ERR_INVALID_ARGUMENT, "strip: 0 to %d (UDIFF_STRIP_MAX) is accepted",
                       UDIFF_STRIP_MAX);
    struct reader r = {.at = text, .end = text + n, .e = e, .strip_cr = has_cr(text, n)};
    int rc = read_all(&r, strip);
    for (size_t i = 0; i < r.doc.n; i++)
        udiff_head_fini(&r.heads[i]);
    free(r.heads);
    if (rc < 0)
        patch_doc_fini(&r.doc);
    else
        *ret = r.doc;
    return rc;
}

bool udiff_begins(const char *text, size_t n)
{
    struct reader r = {.at = text, .end = text + n};
    while (next_line(&r)) {
        if (text_trim(r.line).len == 0)
            continue;
        return starts(r.line, "diff ") || starts(r.line, "--- ") || starts(r.line, "Index: ") ||
               starts(r.line, "From ");
    }
    return false;
}
