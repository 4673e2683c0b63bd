/* core/hunk by a model: random files, random edits, the patch for them written out, applied, and
 * every byte compared. The model knows lines and endings only, not how places are found.
 *
 * Two kinds of rounds: lines that are all different, with several hunks of a little context; and
 * lines that repeat all the time, with the whole file as context of one hunk.
 */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/v4a.h"

#include <stdio.h>

#define ROUNDS 4000
#define LINES 60

static uint64_t seed;

static unsigned rnd(unsigned below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % below);
}

enum edit { KEEP, REMOVE, REPLACE };

struct model_line {
    char text[40];
    const char *eol;
    enum edit edit;
    char with[40];       /* REPLACE */
    unsigned n_inserted; /* behind this line */
    char inserted[3][40];
};

struct model {
    struct model_line lines[LINES];
    size_t n;
    bool unique;
    bool bom;
    bool final_newline;
};

static void random_text(const struct model *m, size_t i, char out[40])
{
    static const char *const bits[] = {
        "a", "b", "",  "  x",   "\xff\xfe", "caf\xe9", "\xe2\x80\x94", "@@", "*** End Patch",
        "+", "-", " ", "tab\t", "\r",       "$&"};
    const char *bit = bits[rnd(ARRAY_LEN(bits))];
    if (m->unique)
        snprintf(out, 40, "%zu.%u %s.", i, rnd(1000000), bit);
    else
        snprintf(out, 40, "%s", bit);
    /* A CR at the end of a line would be half of an ending. */
    size_t n = strlen(out);
    if (n > 0 && out[n - 1] == '\r')
        out[n - 1] = 'r';
}

static void random_model(struct model *m)
{
    static const char *const endings[] = {"\n", "\r\n"};
    unsigned kind = rnd(3); /* LF, CR LF, mixed */
    *m = (struct model){
        .n = rnd(LINES), .unique = rnd(2), .bom = rnd(8) == 0, .final_newline = rnd(3) > 0};
    unsigned rate = 1 + rnd(10);
    for (size_t i = 0; i < m->n; i++) {
        struct model_line *l = &m->lines[i];
        random_text(m, i, l->text);
        l->eol = endings[kind == 2 ? rnd(2) : kind];
        if (rnd(rate) != 0)
            continue;
        l->edit = (enum edit)rnd(3);
        random_text(m, i, l->with);
        /* What goes behind the last line without an ending is the table's business. */
        if (i + 1 < m->n || m->final_newline)
            l->n_inserted = rnd(4);
        for (unsigned k = 0; k < l->n_inserted; k++)
            random_text(m, i, l->inserted[k]);
    }
    /* An empty last line without an ending is no line. */
    if (m->n > 0 && !m->final_newline && m->lines[m->n - 1].text[0] == '\0')
        m->final_newline = true;
}

static const char *ending(const struct model *m, size_t i)
{
    return i + 1 == m->n && !m->final_newline ? "" : m->lines[i].eol;
}

static void write_file(const struct model *m, struct buf *b)
{
    buf_puts(b, m->bom ? "\xef\xbb\xbf" : "");
    for (size_t i = 0; i < m->n; i++)
        buf_printf(b, "%s%s", m->lines[i].text, ending(m, i));
}

/* The ending of what is inserted behind line i: the one of the last line that the same run of
 * changes removed; of the line before the run when it removed none. */
static const char *inserted_ending(const struct model *m, size_t i)
{
    return m->lines[i].eol;
}

static void write_expected(const struct model *m, struct buf *b)
{
    buf_puts(b, m->bom ? "\xef\xbb\xbf" : "");
    for (size_t i = 0; i < m->n; i++) {
        const struct model_line *l = &m->lines[i];
        if (l->edit == KEEP)
            buf_printf(b, "%s%s", l->text, ending(m, i));
        if (l->edit == REPLACE)
            buf_printf(b, "%s%s", l->with, ending(m, i));
        for (unsigned k = 0; k < l->n_inserted; k++)
            buf_printf(b, "%s%s", l->inserted[k], inserted_ending(m, i));
    }
}

static bool is_changed(const struct model_line *l)
{
    return l->edit != KEEP || l->n_inserted > 0;
}

static void write_hunk_line(const struct model_line *l, struct buf *b)
{
    buf_printf(b, "%c%s\n", l->edit == KEEP ? ' ' : '-', l->text);
    if (l->edit == REPLACE)
        buf_printf(b, "+%s\n", l->with);
    for (unsigned k = 0; k < l->n_inserted; k++)
        buf_printf(b, "+%s\n", l->inserted[k]);
}

/* One hunk a run of changes, with `context` lines around; a separate line between two hunks. */
static void write_hunks(const struct model *m, size_t context, struct buf *b)
{
    for (size_t i = 0; i < m->n;) {
        if (!is_changed(&m->lines[i])) {
            i++;
            continue;
        }
        size_t from = i > context ? i - context : 0;
        size_t to = i;
        for (size_t k = i; k < m->n && k <= to + 2 * context; k++) {
            if (is_changed(&m->lines[k]))
                to = k;
        }
        size_t end = to + 1 + context < m->n ? to + 1 + context : m->n;
        buf_puts(b, "@@\n");
        for (size_t k = from; k < end; k++)
            write_hunk_line(&m->lines[k], b);
        i = end;
    }
}

static void write_patch(const struct model *m, struct buf *b)
{
    buf_puts(b, "*** Begin Patch\n*** Update File: f\n");
    if (m->unique) {
        write_hunks(m, rnd(4), b);
    } else {
        for (size_t i = 0; i < m->n; i++)
            write_hunk_line(&m->lines[i], b);
    }
    buf_puts(b, "*** End Patch\n");
}

/* When runs of removed and inserted lines mix endings, which ending an inserted line takes is a
 * choice that the table test pins; the model only speaks about runs where there is none. */
static bool model_decides(const struct model *m)
{
    for (size_t i = 0; i < m->n; i++) {
        bool plain = m->lines[i].n_inserted == 0 && m->lines[i].edit != REMOVE;
        bool mixed = false;
        size_t end = i + 1;
        for (; is_changed(&m->lines[i]) && end < m->n && m->lines[end].edit != KEEP; end++) {
            plain &= m->lines[end].n_inserted == 0 && m->lines[end].edit != REMOVE;
            mixed |= strcmp(m->lines[end].eol, m->lines[i].eol) != 0;
        }
        if (mixed && !plain)
            return false;
        i = end - 1;
    }
    return true;
}

/* The last line goes, and what is inserted before it becomes the last: pinned by the table. */
static bool tail_is_plain(const struct model *m)
{
    return m->final_newline || m->n == 0 || m->lines[m->n - 1].edit != REMOVE;
}

static bool any_change(const struct model *m)
{
    for (size_t i = 0; i < m->n; i++) {
        if (is_changed(&m->lines[i]))
            return true;
    }
    return false;
}

static void check_round(const struct model *m, uint64_t round_seed)
{
    autobuf file = BUF_INIT;
    autobuf patch = BUF_INIT;
    autobuf want = BUF_INIT;
    autobuf got = BUF_INIT;
    struct patch_doc d = {0};
    struct err e = {0};
    uint64_t work = 0;
    bool fuzzy = false;
    write_file(m, &file);
    write_patch(m, &patch);
    write_expected(m, &want);
    if (v4a_parse(buf_bytes(&patch), patch.len, &d, &e) < 0)
        fail_msg("seed %llu: %s\n%s", (unsigned long long)round_seed, e.message, buf_cstr(&patch));
    if (hunks_apply("f", buf_bytes(&file), file.len, d.sections[0].hunks, d.sections[0].n, &got,
                    &work, &fuzzy, &e) < 0)
        fail_msg("seed %llu: %s\n%s", (unsigned long long)round_seed, e.message, buf_cstr(&patch));
    if (got.len != want.len || memcmp(buf_bytes(&got), buf_bytes(&want), got.len) != 0)
        fail_msg("seed %llu: from \"%s\"\nby %s\ncomes \"%s\"\nnot \"%s\"",
                 (unsigned long long)round_seed, buf_cstr(&file), buf_cstr(&patch), buf_cstr(&got),
                 buf_cstr(&want));
    assert_false(fuzzy);
    patch_doc_fini(&d);
}

static void test_random_edits(void **state)
{
    (void)state;
    size_t checked = 0;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct model m;
        seed = 0x9e3779b97f4a7c15u * (i + 1);
        random_model(&m);
        if (!any_change(&m) || !model_decides(&m) || !tail_is_plain(&m))
            continue;
        check_round(&m, i);
        checked++;
    }
    assert_true(checked > ROUNDS / 4);
}

UNIT_MAIN(cmocka_unit_test(test_random_edits))
