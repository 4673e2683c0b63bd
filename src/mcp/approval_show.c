/* mcp/approval_show: see approval_show.h. */
#include "mcp/approval_show.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/udiff.h"
#include "core/v4a.h"
#include "wire/json.h"

#include <inttypes.h>
#include <json-c/linkhash.h>
#include <string.h>
#include <time.h>

/* Paths that are listed of a patch, and lines of a value that has several. */
#define FILES_SHOWN 40u
#define LINE_COMMAND_MAX 160u

/* Characters that are not seen, or that change how others are seen. Source: the general categories
 * Cc, Cf, Zl, Zp, Zs (other than U+0020), Co, Cs and the blank letters of Unicode 15; and the
 * blocks that are written from right to left (bidirectional classes R, AL and AN), since one such
 * letter turns round the order of the digits, blanks and signs beside it. Isolates (U+2068) would
 * keep the letters readable, but not every terminal and dialog knows them, and where they are not
 * known something else is read than what runs. */
static const struct {
    uint32_t from, to;
} hidden[] = {
    {0x0000, 0x001f},    {0x007f, 0x00a0},   {0x00ad, 0x00ad},   {0x034f, 0x034f},
    {0x0590, 0x08ff},    {0x115f, 0x1160},   {0x1680, 0x1680},   {0x17b4, 0x17b5},
    {0x180b, 0x180f},    {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},
    {0x2800, 0x2800},    {0x3000, 0x3000},   {0x3164, 0x3164},   {0xd800, 0xf8ff},
    {0xfb1d, 0xfdff},    {0xfe00, 0xfe0f},   {0xfe70, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb},    {0x10800, 0x10fff}, {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
    {0x13430, 0x1343f},  {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0x1e800, 0x1efff},
    {0xe0000, 0x10ffff},
};

static bool is_hidden(uint32_t c)
{
    for (size_t i = 0; i < ARRAY_LEN(hidden); i++) {
        if (c >= hidden[i].from && c <= hidden[i].to)
            return true;
    }
    return false;
}

static uint32_t decode(const unsigned char *p, size_t len)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = p[0] & masks[len];
    for (size_t i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3fu);
    return c;
}

/* One character, or one byte that is none. Returns how many bytes it took. */
static size_t put_char(struct buf *out, const unsigned char *p, size_t n)
{
    size_t len = utf8_char_len(p, n);
    uint32_t c = len > 0 ? decode(p, len) : 0;
    if (len == 0)
        buf_printf(out, "\\x%02x", *p);
    else if (c == '\n')
        buf_puts(out, "\\n");
    else if (c == '\t')
        buf_puts(out, "\\t");
    else if (c == '"' || c == '\\')
        buf_printf(out, "\\%c", (char)c);
    else if (c < 0x80 && is_hidden(c))
        buf_printf(out, "\\x%02x", (unsigned)c);
    else if (is_hidden(c))
        buf_printf(out, "\\u{%" PRIx32 "}", c);
    else
        buf_put(out, p, len);
    return len > 0 ? len : 1;
}

void approval_show_text(struct buf *out, const void *bytes, size_t n, size_t max)
{
    const unsigned char *p = bytes;
    size_t at = 0;
    size_t end = max == 0 || n < max ? n : max;
    buf_putc(out, '"');
    while (at < end)
        at += put_char(out, p + at, n - at);
    buf_putc(out, '"');
    if (at < n)
        buf_printf(out, " ... %zu MORE BYTES ARE NOT SHOWN", n - at);
}

/* A value of several lines, each in quotes of its own. */
static void put_lines(struct buf *out, const char *text, size_t n, size_t max)
{
    size_t end = max == 0 || n < max ? n : max;
    size_t at = 0;
    while (at < end) {
        const char *stop = memchr(text + at, '\n', n - at);
        size_t len = stop != NULL ? (size_t)(stop - text) - at : n - at;
        buf_puts(out, "    ");
        approval_show_text(out, text + at, len, end - at);
        buf_putc(out, '\n');
        at += len + 1;
    }
    if (at < n)
        buf_printf(out, "    ... %zu MORE BYTES ARE NOT SHOWN\n", n - at);
}

struct show {
    struct buf *out;
    bool whole;
    size_t start;       /* of this call in `out` */
    const char *format; /* of the patch, as the call says; NULL: by its first line */
};

/* How much of a value may be shown: less when much was shown already. */
static size_t room(const struct show *s)
{
    size_t used = s->out->len - s->start;
    if (s->whole)
        return 0;
    if (used >= APPROVAL_SHOW_MAX)
        return 1;
    size_t left = APPROVAL_SHOW_MAX - used;
    return left < APPROVAL_SHOW_VALUE_MAX ? left : APPROVAL_SHOW_VALUE_MAX;
}

static void put_string(const struct show *s, struct json_object *value)
{
    approval_show_text(s->out, json_object_get_string(value),
                       (size_t)json_object_get_string_len(value), room(s));
}

static void put_value(const struct show *s, struct json_object *value)
{
    if (json_object_is_type(value, json_type_string)) {
        put_string(s, value);
        return;
    }
    const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
    approval_show_text(s->out, text, strlen(text), room(s));
}

/* ---- members that deserve lines of their own ---- */

static void put_argv(const struct show *s, struct json_object *argv)
{
    size_t n = json_object_array_length(argv);
    size_t i = 0;
    buf_printf(s->out, "%zu words:", n);
    for (; i < n && (s->whole || s->out->len - s->start < APPROVAL_SHOW_MAX); i++) {
        buf_putc(s->out, ' ');
        put_string(s, json_object_array_get_idx(argv, i));
    }
    if (i < n)
        buf_printf(s->out, " ... %zu MORE WORDS ARE NOT SHOWN", n - i);
}

static const char *section_word(const struct patch_section *x)
{
    static const char *const words[] = {
        [PATCH_ADD] = "add", [PATCH_UPDATE] = "update", [PATCH_DELETE] = "delete"};
    if (x->kind == PATCH_MOVE)
        return x->copy ? "copy" : "move";
    return words[x->kind];
}

static void put_section(const struct show *s, const struct patch_section *x)
{
    buf_printf(s->out, "    %s ", section_word(x));
    approval_show_text(s->out, x->path, strlen(x->path), room(s));
    if (x->kind == PATCH_MOVE) {
        buf_puts(s->out, " to ");
        approval_show_text(s->out, x->move_to, strlen(x->move_to), room(s));
    }
    if (x->mode == PATCH_MODE_EXECUTABLE)
        buf_puts(s->out, ", made executable");
    buf_putc(s->out, '\n');
}

/* Read as the tool will read it: one text may be two patches of different files. */
static bool is_unified(const struct show *s, const char *text, size_t n)
{
    if (str_eq(s->format, "unified") || str_eq(s->format, "v4a"))
        return str_eq(s->format, "unified");
    return udiff_begins(text, n);
}

/* The paths first, since a long patch may not be shown whole. */
static void put_files(const struct show *s, const char *text, size_t n)
{
    struct patch_doc doc = {0};
    int status = is_unified(s, text, n) ? udiff_parse(text, n, PATCH_STRIP_AUTO, &doc, NULL)
                                        : v4a_parse(text, n, &doc, NULL);
    if (status < 0) {
        buf_puts(s->out, "  files: not known; the text below is no patch that can be read\n");
        return;
    }
    buf_printf(s->out, "  files: %zu\n", doc.n);
    size_t most = s->whole ? doc.n : FILES_SHOWN;
    size_t i = 0;
    for (; i < doc.n && i < most; i++)
        put_section(s, &doc.sections[i]);
    if (i < doc.n)
        buf_printf(s->out, "    ... %zu MORE FILES ARE NOT SHOWN\n", doc.n - i);
    patch_doc_fini(&doc);
}

static void put_patch(const struct show *s, struct json_object *value)
{
    const char *text = json_object_get_string(value);
    size_t n = (size_t)json_object_get_string_len(value);
    put_files(s, text, n);
    buf_printf(s->out, "  patch: %zu bytes\n", n);
    put_lines(s->out, text, n, s->whole ? 0 : APPROVAL_SHOW_MAX - APPROVAL_SHOW_VALUE_MAX);
}

static void put_member(const struct show *s, const char *name, struct json_object *value)
{
    if (str_eq(name, "patch") && json_object_is_type(value, json_type_string)) {
        put_patch(s, value);
        return;
    }
    buf_puts(s->out, "  ");
    buf_puts(s->out, name);
    buf_puts(s->out, ": ");
    if (str_eq(name, "command") && json_object_is_type(value, json_type_array))
        put_argv(s, value);
    else
        put_value(s, value);
    buf_putc(s->out, '\n');
}

/* Names of members are those of a tool's table, so they need no quotes; others are not shown as
 * names. */
static bool is_plain_name(const char *name)
{
    return strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name);
}

/* A command that can be told more is not only what it is called with. */
static void put_open_stdin(const struct show *s, struct json_object *args)
{
    bool tty = json_object_get_boolean(json_get(args, "tty"));
    if (json_get(args, "command") != NULL && (tty || json_get(args, "stdin") == NULL))
        buf_puts(s->out, "  stdin: stays open; more can be written to it without asking again\n");
}

static void put_arguments(const struct show *s, struct json_object *args)
{
    json_object_object_foreach(args, name, value)
    {
        if (!str_eq(name, "workspace_id") && is_plain_name(name))
            put_member(s, name, value);
    }
    put_open_stdin(s, args);
}

void approval_show_call(struct buf *out, const struct approval *a, bool whole)
{
    struct show s = {out, whole, out->len, NULL};
    autojson *args = NULL;
    buf_printf(out, "  tool: %s\n  workspace: ", approval_tool_name(a->tool));
    approval_show_text(out, a->workspace_id, strlen(a->workspace_id), 0);
    buf_putc(out, '\n');
    if (json_parse(a->arguments, strlen(a->arguments), &args, NULL) < 0 ||
        json_get(args, "scrubbed") != NULL)
        buf_puts(out, "  its arguments are not kept any more\n");
    else {
        s.format = json_str(json_get(args, "format"));
        put_arguments(&s, args);
    }
}

static void put_time(struct buf *out, const char *what, uint64_t ms)
{
    struct tm tm;
    char text[32];
    time_t t = (time_t)(ms / 1000);
    gmtime_r(&t, &tm);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (ms != 0)
        buf_printf(out, "  %s: %s\n", what, text);
}

void approval_show(struct buf *out, const struct approval *a, bool whole)
{
    buf_printf(out, "%s %s\n", a->approval_id, approval_state_name(a->state));
    put_time(out, "asked", a->created_ms);
    put_time(out, "decided", a->resolved_ms);
    put_time(out, "ended", a->ended_ms);
    if (a->resolved_by[0] != '\0')
        buf_printf(out, "  decided by: %s\n", a->resolved_by);
    approval_show_call(out, a, whole);
}

static void put_gist(struct buf *out, const struct approval *a)
{
    autojson *args = NULL;
    if (json_parse(a->arguments, strlen(a->arguments), &args, NULL) < 0)
        return;
    struct json_object *argv = json_get(args, "command");
    const char *patch = json_str(json_get(args, "patch"));
    bool array = json_object_is_type(argv, json_type_array);
    size_t n = array ? json_object_array_length(argv) : 0;
    size_t start = out->len;
    size_t i = 0;
    for (; i < n && out->len - start < LINE_COMMAND_MAX; i++) {
        struct json_object *word = json_object_array_get_idx(argv, i);
        buf_putc(out, ' ');
        approval_show_text(out, json_object_get_string(word),
                           (size_t)json_object_get_string_len(word), LINE_COMMAND_MAX);
    }
    if (i < n)
        buf_printf(out, " ... %zu MORE WORDS ARE NOT SHOWN", n - i);
    if (patch != NULL)
        buf_printf(out, " %zu bytes of patch", strlen(patch));
}

void approval_show_line(struct buf *out, const struct approval *a, uint64_t now_ms)
{
    uint64_t age_s = now_ms > a->created_ms ? (now_ms - a->created_ms) / 1000 : 0;
    buf_printf(out, "%s  %-8s  %" PRIu64 " s old  ", a->approval_id, approval_state_name(a->state),
               age_s);
    approval_show_text(out, a->workspace_id, strlen(a->workspace_id), 0);
    buf_printf(out, "  %s", approval_tool_name(a->tool));
    put_gist(out, a);
    buf_putc(out, '\n');
}

void approval_show_json(struct jsonw *w, const struct approval *a, bool with_arguments)
{
    autobuf shown = BUF_INIT;
    approval_show_call(&shown, a, false);
    jsonw_object(w);
    jsonw_kstr(w, "approval_id", a->approval_id);
    jsonw_kstr(w, "state", approval_state_name(a->state));
    jsonw_kstr(w, "workspace_id", a->workspace_id);
    jsonw_kstr(w, "tool", approval_tool_name(a->tool));
    jsonw_kuint(w, "created_at", a->created_ms / 1000);
    if (a->resolved_ms != 0)
        jsonw_kuint(w, "resolved_at", a->resolved_ms / 1000);
    if (a->ended_ms != 0)
        jsonw_kuint(w, "ended_at", a->ended_ms / 1000);
    if (a->resolved_by[0] != '\0')
        jsonw_kstr(w, "resolved_by", a->resolved_by);
    jsonw_kstr(w, "shown", buf_cstr(&shown));
    if (with_arguments) {
        jsonw_key(w, "arguments");
        jsonw_raw(w, a->arguments, strlen(a->arguments));
    }
    jsonw_object_end(w);
}
