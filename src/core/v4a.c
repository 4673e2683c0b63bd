/* core/v4a: see v4a.h. A reader that takes one line at a time; what a line means depends only on
 * the section that is open, which is the table in v4a_parse's middle: envelope, section headers,
 * then the body of an addition or of an update. */
#include "core/v4a.h"

#include "base/mem.h"

#include <string.h>

#define BEGIN "*** Begin Patch"
#define END "*** End Patch"
#define ADD "*** Add File: "
#define DELETE "*** Delete File: "
#define UPDATE "*** Update File: "
#define MOVE "*** Move to: "
#define END_OF_FILE "*** End of File"

struct reader {
    const char *at;
    const char *end;
    size_t line_number; /* of `line`, from 1 */
    struct text line;   /* without its ending */
    bool strip_cr;      /* the patch is written with CR LF throughout */
    size_t n_hunks;
    struct patch_doc doc;
    struct err *e;
};

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

static bool is_blank(struct text t)
{
    return text_trim(t).len == 0;
}

static bool starts(struct text t, const char *prefix)
{
    size_t n = strlen(prefix);
    return t.len >= n && memcmp(t.at, prefix, n) == 0;
}

/* The line is the marker, blanks at its end aside. */
static bool is_marker(struct text t, const char *marker)
{
    t = text_trim(t);
    return t.len == strlen(marker) && starts(t, marker);
}

#define REFUSE(r, format, ...)                                                                     \
    err_set((r)->e, ERR_INVALID_PATCH, "line %zu of the patch: " format, (r)->line_number,         \
            ##__VA_ARGS__)

/* The beginning of a line, for a message. */
static int shown(struct text t)
{
    return t.len < 60 ? (int)t.len : 60;
}

/* ---- the envelope ---- */

/* Leave out blank lines at both ends. */
static void trim_blank_lines(struct reader *r)
{
    for (;;) {
        const char *lf = memchr(r->at, '\n', (size_t)(r->end - r->at));
        if (lf == NULL || !is_blank((struct text){r->at, (size_t)(lf - r->at)}))
            break;
        r->at = lf + 1;
        r->line_number++;
    }
    while (r->end > r->at && strchr(" \t\r\n", r->end[-1]) != NULL && r->end[-1] != '\0')
        r->end--;
}

/* The last line of what is left. */
static struct text last_line(const struct reader *r)
{
    const char *lf = memrchr(r->at, '\n', (size_t)(r->end - r->at));
    const char *from = lf != NULL ? lf + 1 : r->at;
    return (struct text){from, (size_t)(r->end - from)};
}

/* <<EOF, <<'EOF' or <<"EOF": the word, or an empty text. */
static struct text heredoc_word(struct text line)
{
    struct text t = text_trim(line);
    if (!starts(t, "<<"))
        return (struct text){NULL, 0};
    t = (struct text){t.at + 2, t.len - 2};
    if (t.len > 2 && (t.at[0] == '\'' || t.at[0] == '"') && t.at[t.len - 1] == t.at[0])
        t = (struct text){t.at + 1, t.len - 2};
    return t;
}

static void strip_heredoc(struct reader *r)
{
    struct reader ahead = *r;
    if (!next_line(&ahead))
        return;
    struct text word = heredoc_word(ahead.line);
    struct text last = text_trim(last_line(&ahead));
    if (word.len == 0 || last.len != word.len || memcmp(last.at, word.at, word.len) != 0)
        return;
    r->at = ahead.at;
    r->line_number = ahead.line_number;
    r->end = last_line(&ahead).at;
    trim_blank_lines(r);
}

static int open_envelope(struct reader *r)
{
    trim_blank_lines(r);
    strip_heredoc(r);
    if (!next_line(r))
        return err_set(r->e, ERR_INVALID_PATCH, "the patch is empty; it begins with \"" BEGIN "\"");
    if (starts(r->line, "diff ") || starts(r->line, "--- ") || starts(r->line, "Index: "))
        return REFUSE(r, "this is a unified diff, but the format v4a was asked for; ask for "
                         "\"unified\" or \"auto\"");
    if (!is_marker(r->line, BEGIN))
        return REFUSE(r,
                      "\"%.*s\" is not \"" BEGIN "\", with which a patch begins (a unified diff "
                      "begins with \"diff --git \" or \"--- \")",
                      shown(r->line), r->line.at);
    r->strip_cr = r->line.at[r->line.len - 1] == '\r';
    if (!is_marker(last_line(r), END))
        return err_set(r->e, ERR_INVALID_PATCH,
                       "the last line of the patch is not \"" END
                       "\": it is cut off, or text follows; nothing was changed");
    r->end = last_line(r).at;
    return 0;
}

/* ---- bodies ---- */

static int read_added(struct reader *r, struct patch_section *s)
{
    struct reader ahead = *r;
    while (next_line(&ahead) && starts(ahead.line, "+")) {
        buf_put(&s->content, ahead.line.at + 1, ahead.line.len - 1);
        buf_putc(&s->content, '\n');
        *r = ahead;
    }
    if (s->content.len > PATCH_FILE_MAX)
        return err_set(r->e, ERR_LIMIT_EXCEEDED, "%s has more bytes than PATCH_FILE_MAX (%u)",
                       s->path, PATCH_FILE_MAX);
    return 0;
}

/* "@@ -1,2 +3,4 @@ anything": the position that a unified diff gives; it says nothing here. */
static bool is_range(struct text t)
{
    size_t i = 0;
    for (const char *part = "-+"; *part != '\0'; part++) {
        while (i < t.len && t.at[i] == ' ')
            i++;
        if (i >= t.len || t.at[i++] != *part)
            return false;
        size_t digits = i;
        while (i < t.len && ((t.at[i] >= '0' && t.at[i] <= '9') || t.at[i] == ','))
            i++;
        if (i == digits)
            return false;
    }
    return t.len - i >= 3 && memcmp(t.at + i, " @@", 3) == 0;
}

static void add_anchor(struct hunk *h, struct text anchor)
{
    void *items = h->anchors;
    mem_grow(&items, &h->anchors_cap, h->n_anchors + 1, sizeof(struct text));
    h->anchors = items;
    h->anchors[h->n_anchors++] = anchor;
}

static void add_line(struct hunk *h, struct text line)
{
    struct hunk_line l = {.at = line.at, .op = ' ', .bare = line.len == 0};
    if (line.len > 0)
        l = (struct hunk_line){.at = line.at + 1, .len = (uint32_t)line.len - 1, .op = *line.at};
    hunk_add_line(h, l);
}

/* The hunk that a line belongs to: the last one, or a new one when that was closed. */
static struct hunk *open_hunk(struct reader *r, struct patch_section *s)
{
    struct hunk *last = s->n > 0 ? &s->hunks[s->n - 1] : NULL;
    if (last != NULL && !last->at_end)
        return last;
    last = patch_section_add_hunk(s);
    last->patch_line = r->line_number;
    return last;
}

static void read_anchor(struct reader *r, struct patch_section *s)
{
    struct hunk *h = open_hunk(r, s);
    if (h->n > 0) {
        h = patch_section_add_hunk(s);
        h->patch_line = r->line_number;
    }
    struct text anchor = {r->line.at + 2, r->line.len - 2};
    if (anchor.len > 0 && anchor.at[0] == ' ')
        anchor = (struct text){anchor.at + 1, anchor.len - 1};
    if (!is_blank(anchor) && !is_range(anchor))
        add_anchor(h, anchor);
}

static int check_hunks(struct reader *r, const struct patch_section *s)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t content = 0;
        for (size_t k = 0; k < s->hunks[i].n; k++)
            content += !s->hunks[i].lines[k].bare;
        if (content == 0)
            return err_set(r->e, ERR_INVALID_PATCH,
                           "%s: hunk %zu (line %zu of the patch) has no ' ', '-' or '+' lines",
                           s->path, i + 1, s->hunks[i].patch_line);
    }
    if (s->n == 0 && s->kind == PATCH_UPDATE)
        return err_set(r->e, ERR_INVALID_PATCH,
                       "%s (line %zu of the patch): the update has no hunks", s->path,
                       s->patch_line);
    return 0;
}

/* One line of an update. 1 when it does not belong to it any more. */
static int read_update_line(struct reader *r, struct patch_section *s)
{
    if (is_marker(r->line, END_OF_FILE) && r->line.at[0] == '*') {
        open_hunk(r, s)->at_end = true;
        return 0;
    }
    if (starts(r->line, "*** "))
        return 1;
    if (starts(r->line, "@@")) {
        read_anchor(r, s);
        return 0;
    }
    bool between = s->n == 0 || s->hunks[s->n - 1].at_end;
    if (between && is_blank(r->line))
        return 0;
    if (r->line.len > 0 && strchr(" -+", r->line.at[0]) == NULL)
        return REFUSE(r,
                      "\"%.*s\" does not belong into an update: its lines begin with ' ', '-', '+' "
                      "or \"@@\"",
                      shown(r->line), r->line.at);
    add_line(open_hunk(r, s), r->line);
    return 0;
}

static int read_update(struct reader *r, struct patch_section *s)
{
    struct reader ahead = *r;
    if (next_line(&ahead) && starts(ahead.line, MOVE)) {
        struct text to =
            text_trim((struct text){ahead.line.at + strlen(MOVE), ahead.line.len - strlen(MOVE)});
        s->kind = PATCH_MOVE;
        s->move_to = mem_dup(to.at, to.len);
        *r = ahead;
    }
    for (ahead = *r; next_line(&ahead); *r = ahead) {
        int rc = read_update_line(&ahead, s);
        if (rc < 0)
            return -1;
        if (rc > 0)
            break;
        if (r->n_hunks + s->n > PATCH_HUNKS_MAX)
            return err_set(r->e, ERR_LIMIT_EXCEEDED,
                           "the patch has more hunks than PATCH_HUNKS_MAX (%u); send several "
                           "patches",
                           PATCH_HUNKS_MAX);
    }
    r->n_hunks += s->n;
    return check_hunks(r, s);
}

/* ---- sections ---- */

static const struct {
    const char *marker;
    enum patch_kind kind;
    int (*read)(struct reader *r, struct patch_section *s);
} sections[] = {
    {ADD, PATCH_ADD, read_added},
    {DELETE, PATCH_DELETE, NULL},
    {UPDATE, PATCH_UPDATE, read_update},
};

static int read_section(struct reader *r)
{
    struct text header = text_trim(r->line);
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        size_t n = strlen(sections[i].marker);
        if (!starts(header, sections[i].marker))
            continue;
        if (memchr(header.at, '\0', header.len) != NULL)
            return REFUSE(r, "the path holds a NUL byte");
        if (r->doc.n == PATCH_FILES_MAX)
            return err_set(r->e, ERR_LIMIT_EXCEEDED,
                           "the patch has more file sections than PATCH_FILES_MAX (%u); send "
                           "several patches",
                           PATCH_FILES_MAX);
        struct patch_section *s = patch_doc_add(&r->doc);
        s->kind = sections[i].kind;
        s->path = mem_dup(header.at + n, header.len - n);
        s->patch_line = r->line_number;
        return sections[i].read != NULL ? sections[i].read(r, s) : 0;
    }
    return REFUSE(r,
                  "\"%.*s\" is not the header of a section: \"" ADD "path\", \"" DELETE
                  "path\" or \"" UPDATE "path\"",
                  shown(r->line), r->line.at);
}

static int read_all(struct reader *r)
{
    if (open_envelope(r) < 0)
        return -1;
    while (next_line(r)) {
        if (!is_blank(r->line) && read_section(r) < 0)
            return -1;
    }
    if (r->doc.n == 0)
        return err_set(r->e, ERR_INVALID_PATCH, "the patch has no file sections");
    return 0;
}

int v4a_parse(const char *text, size_t n, struct patch_doc *ret, struct err *e)
{
    if (n > PATCH_TEXT_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "the patch has %zu bytes, more than PATCH_TEXT_MAX (%u); send several "
                       "patches",
                       n, PATCH_TEXT_MAX);
    struct reader r = {.at = text, .end = text + n, .e = e};
    if (read_all(&r) < 0) {
        patch_doc_fini(&r.doc);
        return -1;
    }
    *ret = r.doc;
    return 0;
}
