/* core/search: see search.h. What ripgrep writes, read: one JSON record a line on standard output,
 * what it passed over on standard error. */
#include "core/search.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "wire/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bytes of ripgrep's own messages that are kept. */
#define SAID_MAX 600
/* Of a long line, bytes that are shown before the first hit. */
#define LEAD 100
/* Of a line in an answer, what is not its text. */
#define LINE_BYTES 60
/* A longer record is read at once, since only a part of it is kept; the others wait until it is
 * known that the page shows them. */
#define WAITING_MAX 4096

/* A line that was found: the record as it came, or what was read of it. */
struct found_line {
    bool match;
    char *record; /* NULL: `line` is filled */
    size_t len;
    struct search_line line;
};

struct found_file {
    char *path;
    struct found_line *lines;
    size_t n;
    size_t cap;
};

struct search {
    unsigned before;
    unsigned after;
    bool binary;
    uint64_t offset;
    uint64_t limit;
    uint64_t max_bytes;
    uint64_t quick_max;  /* larger files are dropped; 0 = ripgrep does it */
    uint64_t page_bytes; /* so far */
    bool page_full;
    bool stopped;
    struct buf output; /* an unfinished line of each */
    struct buf errors;
    bool skipping; /* the line on standard output is too long */
    size_t held;
    struct found_file file; /* that is being read; path NULL = none */
    uint64_t file_matches;
    struct found_file *files;
    size_t n;
    size_t cap;
    struct search_page page;
    char said[SAID_MAX];
};

static void file_fini(struct found_file *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->lines[i].record);
        free(f->lines[i].line.text);
    }
    free(f->lines);
    free(f->path);
    *f = (struct found_file){0};
}

void search_page_fini(struct search_page *p)
{
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < p->files[i].n; k++)
            free(p->files[i].lines[k].text);
        free(p->files[i].lines);
        free(p->files[i].path);
    }
    free(p->files);
    *p = (struct search_page){0};
}

struct search *search_new(const struct search_request *q)
{
    struct search *s = mem_new(struct search);
    s->before = q->before;
    s->after = q->after;
    s->binary = q->binary;
    s->offset = q->offset;
    s->limit = q->limit;
    s->max_bytes = q->max_bytes;
    s->quick_max = q->quick ? SEARCH_FILE_MAX : 0;
    return s;
}

void search_free(struct search *s)
{
    if (s == NULL)
        return;
    file_fini(&s->file);
    for (size_t i = 0; i < s->n; i++)
        file_fini(&s->files[i]);
    free(s->files);
    search_page_fini(&s->page);
    buf_fini(&s->output);
    buf_fini(&s->errors);
    free(s);
}

__attribute__((format(printf, 2, 3))) static void cut_short(struct search *s, const char *format,
                                                            ...)
{
    if (s->page.incomplete)
        return;
    va_list ap;
    va_start(ap, format);
    vsnprintf(s->page.reason, sizeof(s->page.reason), format, ap);
    va_end(ap);
    s->page.incomplete = true;
}

bool search_is_full(const struct search *s)
{
    return s->held > SEARCH_HELD_MAX;
}

bool search_again(const struct search *s, int exit_status)
{
    bool ended = exit_status >= 0 && exit_status <= 2;
    return !ended || s->page.incomplete || s->output.len > 0 || s->file.path != NULL;
}

void search_lost(struct search *s)
{
    cut_short(s, "some of ripgrep's output was lost, because it came faster than it was read");
    buf_reset(&s->output, 0);
    s->skipping = true;
    file_fini(&s->file); /* what follows may be of another one */
}

void search_stopped(struct search *s, const char *reason)
{
    s->stopped = true;
    cut_short(s, "%s", reason);
}

/* ---- texts: {"text": "..."} or {"bytes": "base64"} ---- */

static int base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

static void put_base64(struct buf *b, const char *text, size_t n)
{
    uint32_t bits = 0;
    unsigned have = 0;
    for (size_t i = 0; i < n && base64_value(text[i]) >= 0; i++) {
        bits = bits << 6 | (uint32_t)base64_value(text[i]);
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        buf_putc(b, (char)(bits >> have & 255));
    }
}

static bool take_text(struct json_object *obj, struct buf *out)
{
    struct json_object *text = json_get(obj, "text");
    struct json_object *bytes = json_get(obj, "bytes");
    if (json_object_is_type(text, json_type_string))
        buf_put(out, json_object_get_string(text), (size_t)json_object_get_string_len(text));
    else if (json_object_is_type(bytes, json_type_string))
        put_base64(out, json_object_get_string(bytes), (size_t)json_object_get_string_len(bytes));
    else
        return false;
    return true;
}

static uint64_t number_of(struct json_object *obj, const char *name)
{
    struct json_object *v = json_get(obj, name);
    int64_t n = json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : 0;
    return n > 0 ? (uint64_t)n : 0;
}

/* ---- lines ---- */

/* Forward to the beginning of a character, where there are any. */
static size_t whole_from(const char *bytes, size_t at, size_t len)
{
    for (size_t i = at; i < len && i < at + 4; i++) {
        if (((unsigned char)bytes[i] & 0xc0) != 0x80)
            return i;
    }
    return at;
}

static void cut_line(struct search_line *l, const char *bytes, size_t len, size_t hit)
{
    size_t from = 0;
    if (len > SEARCH_COLUMNS_MAX && hit > LEAD)
        from = whole_from(bytes, hit - LEAD, len);
    if (from > 0 && len - from < SEARCH_COLUMNS_MAX)
        from = whole_from(bytes, len - SEARCH_COLUMNS_MAX, len);
    size_t n = len - from;
    if (n > SEARCH_COLUMNS_MAX)
        n = utf8_whole_prefix(bytes + from, SEARCH_COLUMNS_MAX);
    l->text = mem_dup(bytes + from, n);
    l->len = n;
    l->cut_front = from > 0;
    l->cut_back = from + n < len;
}

static void read_line(struct json_object *data, bool match, struct search_line *ret)
{
    autobuf text = BUF_INIT;
    struct json_object *hits = json_get(data, "submatches");
    (void)take_text(json_get(data, "lines"), &text);
    size_t len = text.len;
    const char *bytes = buf_bytes(&text);
    while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == '\r'))
        len--;
    *ret = (struct search_line){.number = number_of(data, "line_number"), .match = match};
    size_t hit = 0;
    if (json_object_is_type(hits, json_type_array)) {
        ret->hits = json_object_array_length(hits);
        if (ret->hits > 0)
            hit = number_of(json_object_array_get_idx(hits, 0), "start");
    }
    hit = hit < len ? hit : len;
    ret->column = match ? hit + 1 : 0;
    cut_line(ret, bytes, len, hit);
}

/* Have the line read. Errors: INTERNAL. */
static int settle(struct found_line *l, struct err *e)
{
    autojson *obj = NULL;
    if (l->record == NULL)
        return 0;
    if (json_parse(l->record, l->len, &obj, e) < 0)
        return err_set(e, ERR_INTERNAL, "what the search program wrote is not ripgrep's JSON");
    read_line(json_get(obj, "data"), l->match, &l->line);
    free(steal(l->record));
    return 0;
}

static int add_line(struct search *s, const char *record, size_t n, bool match, struct err *e)
{
    struct found_line l = {.match = match, .record = mem_dup(record, n), .len = n};
    if (n > WAITING_MAX && settle(&l, e) < 0) {
        free(l.record);
        return -1;
    }
    void *items = s->file.lines;
    mem_grow(&items, &s->file.cap, s->file.n + 1, sizeof(l));
    s->file.lines = items;
    s->file.lines[s->file.n++] = l;
    s->held += sizeof(l) + (l.record != NULL ? n : l.line.len);
    return 0;
}

/* ---- records ---- */

static void begin_file(struct search *s, struct json_object *data)
{
    autobuf path = BUF_INIT;
    file_fini(&s->file);
    s->file_matches = 0;
    if (!take_text(json_get(data, "path"), &path))
        return;
    const char *name = buf_cstr(&path);
    s->file.path = mem_strdup(str_starts(name, "./") ? name + 2 : name);
    s->held += path.len + sizeof(struct found_file);
}

static void end_file(struct search *s, struct json_object *data)
{
    struct json_object *offset = json_get(data, "binary_offset");
    if (s->file.path == NULL)
        return;
    if (s->quick_max > 0 && number_of(json_get(data, "stats"), "bytes_searched") > s->quick_max) {
        s->page.skipped.too_large++;
        file_fini(&s->file);
        return;
    }
    if (!s->binary && json_object_is_type(offset, json_type_int)) {
        s->page.skipped.binary++;
        file_fini(&s->file);
        return;
    }
    s->page.total += s->file_matches;
    s->page.total_files += s->file_matches > 0;
    void *items = s->files;
    mem_grow(&items, &s->cap, s->n + 1, sizeof(struct found_file));
    s->files = items;
    s->files[s->n++] = s->file;
    s->file = (struct found_file){0};
}

static int take_line(struct search *s, const char *record, size_t n, bool match, struct err *e)
{
    s->file_matches += match;
    if (s->held <= SEARCH_HELD_MAX)
        return add_line(s, record, n, match, e);
    cut_short(s, "more was found than SEARCH_HELD_MAX (%u) bytes; use a narrower pattern or glob",
              SEARCH_HELD_MAX);
    return 0;
}

static bool begins(const char *record, size_t n, const char *with)
{
    size_t len = strlen(with);
    return n > len && memcmp(record, with, len) == 0;
}

static int take_record(struct search *s, const char *record, size_t n, struct err *e)
{
    autojson *obj = NULL;
    if (n == 0)
        return 0;
    /* Most records by far, and few of them are shown. */
    if (begins(record, n, "{\"type\":\"match\","))
        return take_line(s, record, n, true, e);
    if (begins(record, n, "{\"type\":\"context\","))
        return take_line(s, record, n, false, e);
    if (json_parse(record, n, &obj, e) < 0)
        return err_set(e, ERR_INTERNAL, "what the search program wrote is not ripgrep's JSON");
    const char *type = json_str(json_get(obj, "type"));
    struct json_object *data = json_get(obj, "data");
    if (type == NULL)
        return err_set(e, ERR_INTERNAL, "what the search program wrote is not ripgrep's JSON");
    if (strcmp(type, "begin") == 0)
        begin_file(s, data);
    else if (strcmp(type, "end") == 0)
        end_file(s, data);
    else if (strcmp(type, "match") == 0 || strcmp(type, "context") == 0)
        return take_line(s, record, n, type[0] == 'm', e);
    return 0;
}

/* Bytes up to the LF are there, or not yet. */
static int finish_record(struct search *s, struct err *e)
{
    int rc = s->skipping ? 0 : take_record(s, buf_bytes(&s->output), s->output.len, e);
    if (s->skipping)
        s->file_matches++;
    s->skipping = false;
    buf_reset(&s->output, 1u << 16);
    return rc;
}

int search_feed_output(struct search *s, const char *bytes, size_t n, struct err *e)
{
    while (n > 0) {
        const char *lf = memchr(bytes, '\n', n);
        size_t part = lf != NULL ? (size_t)(lf - bytes) : n;
        if (!s->skipping)
            buf_put(&s->output, bytes, part);
        if (s->output.len > SEARCH_RECORD_MAX) {
            cut_short(s, "a line is longer than SEARCH_RECORD_MAX (%u) bytes", SEARCH_RECORD_MAX);
            buf_reset(&s->output, 0);
            s->skipping = true;
        }
        if (lf == NULL)
            return 0;
        if (finish_record(s, e) < 0)
            return -1;
        bytes += part + 1;
        n -= part + 1;
    }
    return 0;
}

/* ---- standard error ---- */

static bool holds(const char *line, const char *part)
{
    return strstr(line, part) != NULL;
}

static void count_skipped(struct search *s, const char *line)
{
    struct search_skipped *k = &s->page.skipped;
    if (!holds(line, ": ignoring "))
        return;
    if (holds(line, ": Ignore(IgnoreMatch(Hidden))"))
        k->hidden++;
    else if (holds(line, ": Ignore(IgnoreMatch(Gitignore("))
        k->ignored++;
    else if (holds(line, "failed to pass subject filter"))
        k->special++;
    else if (str_ends(line, " bytes"))
        k->too_large++;
}

static void take_error(struct search *s, const char *line)
{
    if (str_starts(line, "DEBUG|") || str_starts(line, "TRACE|")) {
        count_skipped(s, line);
        return;
    }
    if (holds(line, " (os error "))
        s->page.skipped.unreadable++;
    size_t have = strlen(s->said);
    snprintf(s->said + have, sizeof(s->said) - have, "%s%s", have > 0 ? "\n" : "", line);
}

void search_feed_errors(struct search *s, const char *bytes, size_t n)
{
    while (n > 0) {
        const char *lf = memchr(bytes, '\n', n);
        size_t part = lf != NULL ? (size_t)(lf - bytes) : n;
        /* Of a long line the beginning and the end say what it is. */
        if (s->errors.len > 2 * SAID_MAX)
            buf_truncate(&s->errors, SAID_MAX);
        size_t keep = part < 2 * SAID_MAX ? part : 2 * SAID_MAX;
        buf_put(&s->errors, bytes + part - keep, keep);
        if (lf == NULL)
            return;
        take_error(s, buf_cstr(&s->errors));
        buf_reset(&s->errors, 1u << 16);
        bytes += part + 1;
        n -= part + 1;
    }
}

/* ---- the page ---- */

static int by_path(const void *a, const void *b)
{
    const struct found_file *x = a;
    const struct found_file *y = b;
    return strcmp(x->path, y->path);
}

/* What a line adds to an answer, about. */
static size_t shown_bytes(const struct found_line *l)
{
    size_t n = l->record != NULL ? l->len : l->line.len;
    return n < SEARCH_COLUMNS_MAX + LINE_BYTES ? n : SEARCH_COLUMNS_MAX + LINE_BYTES;
}

/* Pages have no holes: what follows a match that did not fit belongs to the next one. */
static bool has_room(struct search *s, uint64_t at, const struct found_line *l)
{
    if (at < s->offset || at - s->offset >= s->limit)
        return false;
    s->page_bytes += shown_bytes(l) * (1 + s->before + s->after);
    if (s->max_bytes > 0 && s->page_bytes > s->max_bytes && at > s->offset)
        s->page_full = true;
    return !s->page_full;
}

/* Mark of the file's lines those matches that the page holds, and their context; the number of
 * matches marked. `at` is the number of matches before this file. */
static uint64_t mark_lines(struct search *s, const struct found_file *f, uint64_t at, bool *keep)
{
    uint64_t marked = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (!f->lines[i].match)
            continue;
        bool in_page = has_room(s, at, &f->lines[i]);
        at++;
        if (!in_page)
            continue;
        marked++;
        keep[i] = true;
        for (size_t k = 1; k <= s->before && k <= i && !f->lines[i - k].match; k++)
            keep[i - k] = true;
        for (size_t k = 1; k <= s->after && i + k < f->n && !f->lines[i + k].match; k++)
            keep[i + k] = true;
    }
    return marked;
}

/* Move what is marked into the page. */
static int add_file(struct found_file *f, const bool *keep, struct search_page *p, struct err *e)
{
    struct search_file *to = &p->files[p->n++];
    to->path = steal(f->path);
    to->lines = mem_zalloc(f->n, sizeof(struct search_line));
    for (size_t i = 0; i < f->n; i++) {
        if (!keep[i])
            continue;
        if (settle(&f->lines[i], e) < 0)
            return -1;
        to->lines[to->n++] = f->lines[i].line;
        f->lines[i].line.text = NULL;
    }
    return 0;
}

static uint64_t matches_of(const struct found_file *f)
{
    uint64_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->lines[i].match;
    return n;
}

static int make_page(struct search *s, struct search_page *p, struct err *e)
{
    uint64_t at = 0;
    if (s->n > 0)
        qsort(s->files, s->n, sizeof(struct found_file), by_path);
    p->files = mem_zalloc(s->n, sizeof(struct search_file));
    p->offset = s->offset;
    for (size_t i = 0; i < s->n; i++) {
        struct found_file *f = &s->files[i];
        autofree bool *keep = mem_zalloc(f->n, sizeof(bool));
        uint64_t marked = mark_lines(s, f, at, keep);
        at += matches_of(f);
        p->matches += marked;
        if (marked > 0 && add_file(f, keep, p, e) < 0)
            return -1;
    }
    p->truncated = p->offset + p->matches < at;
    return 0;
}

int search_finish(struct search *s, int exit_status, struct search_page *ret, struct err *e)
{
    if (s->errors.len > 0)
        take_error(s, buf_cstr(&s->errors));
    /* 0: found, 1: nothing found, 2: something went wrong, maybe only a file. */
    bool partial = s->stopped || (exit_status == 2 && (s->page.skipped.unreadable > 0 || s->n > 0));
    if (exit_status == 2 && !partial)
        return err_set(e, ERR_INVALID_ARGUMENT, "ripgrep refuses the search: %.500s", s->said);
    if (exit_status != 0 && exit_status != 1 && !partial)
        return err_set(e, ERR_FILE_OPERATION_FAILED,
                       "the search ended before it was done (status %d)%s%.500s", exit_status,
                       s->said[0] != '\0' ? ": " : "", s->said);
    if (s->output.len > 0 || s->file.path != NULL)
        cut_short(s, "ripgrep's output ends in the middle of a file");
    if (make_page(s, &s->page, e) < 0)
        return -1;
    *ret = s->page;
    s->page = (struct search_page){0};
    return 0;
}
