/* wire/json: see json.h. */
#include "wire/json.h"

#include "base/mem.h"
#include "base/scan.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A parser that read more is not kept. */
#define PARSER_KEEP_BYTES 65536u

void json_cleanup(struct json_object **obj)
{
    json_object_put(*obj);
}

/* What a linear pass over text that json-c accepted can tell. */
struct lint {
    size_t members;  /* name/value pairs as written */
    bool nul_in_key; /* a member name holds \u0000 */
    const char *lax; /* what RFC 8259 does not allow and json-c does; NULL = nothing */
    size_t at;       /* where */
};

/* The end of the string that starts at text[i] == '"': the index after its closing quote. */
static size_t skip_string(const char *text, size_t n, size_t i, bool *ret_nul, struct lint *lint)
{
    *ret_nul = false;
    for (i++; i < n && text[i] != '"'; i++) {
        while (n - i > SCAN_BYTES && scan_plain(text + i) == SCAN_BYTES)
            i += SCAN_BYTES;
        if (text[i] == '"')
            break;
        if ((unsigned char)text[i] < 0x20 && lint->lax == NULL) {
            lint->lax = "a control character inside a string";
            lint->at = i;
        }
        if (text[i] != '\\')
            continue;
        if (n - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0)
            *ret_nul = true;
        i++;
    }
    return i + 1;
}

/* What ends a number or a literal. */
static bool structural(char c)
{
    static const bool table[256] = {
        ['{'] = true, ['}'] = true, ['['] = true,  [']'] = true,  [','] = true,  [':'] = true,
        ['"'] = true, [' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true,
    };
    return table[(unsigned char)c];
}

/* A number or a literal from text[i] on: the index after it. */
static size_t skip_word(const char *text, size_t n, size_t i, struct lint *lint)
{
    static const char *const literals[] = {"true", "false", "null"};
    size_t start = i;
    while (i < n && !structural(text[i]))
        i++;
    size_t len = i - start;
    bool number = text[start] == '-' || (text[start] >= '0' && text[start] <= '9');
    for (size_t k = 0; k < ARRAY_LEN(literals); k++) {
        if (strlen(literals[k]) == len && memcmp(literals[k], text + start, len) == 0)
            return i;
    }
    size_t digit = text[start] == '-' ? start + 1 : start;
    bool leading_zero = number && digit + 1 < i && text[digit] == '0' && text[digit + 1] >= '0' &&
                        text[digit + 1] <= '9';
    if ((!number || leading_zero) && lint->lax == NULL) {
        lint->lax = "a word that is neither a number nor true, false or null";
        lint->at = start;
    }
    return i > start ? i : i + 1;
}

static struct lint lint_text(const char *text, size_t n)
{
    struct lint out = {0};
    bool nul = false;
    for (size_t i = 0; i < n;) {
        if (text[i] == '"') {
            i = skip_string(text, n, i, &nul, &out);
        } else if (!structural(text[i])) {
            i = skip_word(text, n, i, &out);
        } else {
            out.members += text[i] == ':';
            out.nul_in_key |= text[i] == ':' && nul;
            i++;
        }
    }
    return out;
}

/* Asked before a value is made. Every value but the first has a comma or an opening bracket before
 * it, so a text of two bytes for each cannot hold more. What is too deep ends where it is. */
static bool has_too_many_values(const char *text, size_t n)
{
    struct lint ignored = {0};
    bool nul = false;
    size_t values = 0;
    unsigned depth = 0;
    if (n / 2 <= JSON_VALUES_MAX)
        return false;
    for (size_t i = 0; i < n && depth <= JSON_DEPTH_MAX; i++) {
        if (text[i] == '"') {
            i = skip_string(text, n, i, &nul, &ignored) - 1;
            continue;
        }
        bool opens = text[i] == '[' || text[i] == '{';
        bool closes = text[i] == ']' || text[i] == '}';
        char next = i + 1 < n ? text[i + 1] : ']';
        depth = closes ? depth - (depth > 0) : depth + opens;
        values += (opens && next != ']' && next != '}') || text[i] == ',';
    }
    return values > JSON_VALUES_MAX;
}

static size_t count_members(struct json_object *obj)
{
    size_t n = 0;
    if (json_object_is_type(obj, json_type_object)) {
        json_object_object_foreach(obj, key, value)
        {
            (void)key;
            n += 1 + count_members(value);
        }
    } else if (json_object_is_type(obj, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(obj); i++)
            n += count_members(json_object_array_get_idx(obj, i));
    }
    return n;
}

static int check_text(struct json_object *obj, const char *text, size_t n, struct err *e)
{
    struct lint lint = lint_text(text, n);
    if (lint.lax != NULL)
        return err_set(e, ERR_PARSE_ERROR, "JSON: %s at byte %zu", lint.lax, lint.at);
    if (lint.nul_in_key)
        return err_set(e, ERR_PARSE_ERROR, "JSON: a member name holds a NUL character");
    if (lint.members != count_members(obj))
        return err_set(e, ERR_PARSE_ERROR, "JSON: two members of one object have the same name");
    return 0;
}

static bool only_blanks(const char *text, size_t from, size_t n)
{
    for (; from < n; from++) {
        if (strchr(" \t\r\n", text[from]) == NULL || text[from] == '\0')
            return false;
    }
    return true;
}

void json_parser_fini(struct json_parser *p)
{
    if (p->tok != NULL)
        json_tokener_free(p->tok);
    p->tok = NULL;
}

/* One that is ready for a new document. */
static struct json_tokener *parser_start(struct json_parser *p)
{
    if (p->tok == NULL) {
        p->tok = json_tokener_new_ex(JSON_DEPTH_MAX);
        ensure(p->tok != NULL);
        json_tokener_set_flags(p->tok, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
    }
    json_tokener_reset(p->tok);
    return p->tok;
}

int json_parse(const char *text, size_t n, struct json_object **ret, struct err *e)
{
    struct json_parser p = {0};
    int status = json_parse_with(&p, text, n, ret, e);
    json_parser_fini(&p);
    return status;
}

int json_parse_with(struct json_parser *p, const char *text, size_t n, struct json_object **ret,
                    struct err *e)
{
    if (n > INT32_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED, "JSON: document of %zu bytes is too long", n);
    if (!utf8_valid(text, n)) /* json-c's own check lets surrogates through */
        return err_set(e, ERR_PARSE_ERROR, "JSON: the bytes are not UTF-8");
    if (has_too_many_values(text, n))
        return err_set(e, ERR_LIMIT_EXCEEDED,
                       "JSON: the document holds more than JSON_VALUES_MAX (%u) values; send fewer "
                       "at a time",
                       JSON_VALUES_MAX);
    struct json_tokener *tok = parser_start(p);
    autojson *obj = json_tokener_parse_ex(tok, text, (int)n);
    enum json_tokener_error error = json_tokener_get_error(tok);
    size_t end = json_tokener_get_parse_end(tok);
    /* A bare number ends only at the byte after it. */
    if (error == json_tokener_continue && n > 0) {
        obj = json_tokener_parse_ex(tok, "", 1);
        error = json_tokener_get_error(tok);
        end = n;
    }
    if (n > PARSER_KEEP_BYTES) /* it holds as much as its longest string */
        json_parser_fini(p);
    if (error == json_tokener_error_depth)
        return err_set(e, ERR_PARSE_ERROR,
                       "JSON: nested deeper than JSON_DEPTH_MAX (%d) at byte %zu; send a flatter "
                       "document",
                       JSON_DEPTH_MAX, end);
    if (error != json_tokener_success)
        return err_set(e, ERR_PARSE_ERROR, "JSON: %s at byte %zu",
                       error == json_tokener_continue ? "the document is not complete"
                                                      : json_tokener_error_desc(error),
                       end);
    if (!only_blanks(text, end, n))
        return err_set(e, ERR_PARSE_ERROR, "JSON: text after the document at byte %zu", end);
    if (check_text(obj, text, n, e) < 0)
        return -1;
    *ret = steal(obj);
    return 0;
}

struct json_object *json_get(struct json_object *obj, const char *name)
{
    struct json_object *value = NULL;
    if (!json_object_is_type(obj, json_type_object))
        return NULL;
    return json_object_object_get_ex(obj, name, &value) ? value : NULL;
}

const char *json_str(struct json_object *obj)
{
    if (!json_object_is_type(obj, json_type_string))
        return NULL;
    const char *s = json_object_get_string(obj);
    return strlen(s) == (size_t)json_object_get_string_len(obj) ? s : NULL;
}

/* ---- reading by table ---- */

struct reader {
    const char *where;
    enum err_code code;
    struct err *e;
};

static const char *dot(const struct reader *r)
{
    return *r->where == '\0' ? "" : ".";
}

#define REFUSE(r, f, ...) refuse((r), (f)->name, __VA_ARGS__)
__attribute__((format(printf, 3, 4))) static int refuse(const struct reader *r, const char *name,
                                                        const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    return err_set(r->e, r->code, "%s%s%s: %s", r->where, dot(r), name, text);
}

static const char *kind_text(enum json_kind kind)
{
    static const char *const text[] = {
        [JSON_STR] = "a string",
        [JSON_BYTES] = "a string",
        [JSON_BOOL] = "true or false",
        [JSON_U64] = "a whole number",
        [JSON_ENUM] = "a string",
        [JSON_STRV] = "an array of strings",
        [JSON_STRMAP] = "an object whose values are strings",
        [JSON_OBJECT] = "an object",
        [JSON_ARRAY] = "an array",
    };
    return text[kind];
}

static int wrong_type(const struct reader *r, const struct json_field *f, struct json_object *v)
{
    const char *got = json_object_is_type(v, json_type_null)
                          ? "null"
                          : json_type_to_name(json_object_get_type(v));
    return REFUSE(r, f, "must be %s, not %s", kind_text(f->kind), got);
}

static int check_range(const struct reader *r, const struct json_field *f, uint64_t v,
                       const char *what)
{
    if (v < f->min || (f->max != 0 && v > f->max))
        return REFUSE(r, f,
                      "%s %" PRIu64 " is out of range; %" PRIu64 " to %" PRIu64 " is accepted",
                      what, v, f->min, f->max == 0 ? UINT64_MAX : f->max);
    return 0;
}

static int read_string(const struct reader *r, const struct json_field *f, struct json_object *v,
                       char *at)
{
    if (!json_object_is_type(v, json_type_string))
        return wrong_type(r, f, v);
    const char *s = json_object_get_string(v);
    size_t len = (size_t)json_object_get_string_len(v);
    if (f->kind == JSON_STR && strlen(s) != len)
        return REFUSE(r, f, "must not hold a NUL character");
    if (check_range(r, f, len, "a length of") < 0)
        return -1;
    if (f->kind == JSON_STR)
        memcpy(at, &s, sizeof(s));
    else
        memcpy(at, &(struct json_bytes){s, len}, sizeof(struct json_bytes));
    return 0;
}

static int read_number(const struct reader *r, const struct json_field *f, struct json_object *v,
                       char *at)
{
    if (!json_object_is_type(v, json_type_int))
        return wrong_type(r, f, v);
    if (json_object_get_int64(v) < 0)
        return REFUSE(r, f, "must not be negative");
    uint64_t number = json_object_get_uint64(v);
    if (number == UINT64_MAX) /* json-c gives this for everything that is larger, too */
        return REFUSE(r, f, "is larger than any number that is accepted here");
    if (check_range(r, f, number, "the value") < 0)
        return -1;
    memcpy(at, &number, sizeof(number));
    return 0;
}

static int read_enum(const struct reader *r, const struct json_field *f, struct json_object *v,
                     char *at)
{
    const char *s = json_str(v);
    if (s == NULL)
        return wrong_type(r, f, v);
    char all[256] = "";
    for (int i = 0; f->names[i] != NULL; i++) {
        if (strcmp(f->names[i], s) == 0) {
            memcpy(at, &i, sizeof(i));
            return 0;
        }
        size_t used = strlen(all);
        snprintf(all + used, sizeof(all) - used, "%s\"%s\"", i ? ", " : "", f->names[i]);
    }
    return REFUSE(r, f, "\"%.64s\" is not one of %s", s, all);
}

static int read_strv(const struct reader *r, const struct json_field *f, struct json_object *v)
{
    if (!json_object_is_type(v, json_type_array))
        return wrong_type(r, f, v);
    size_t n = json_object_array_length(v);
    for (size_t i = 0; i < n; i++) {
        if (json_str(json_object_array_get_idx(v, i)) == NULL)
            return REFUSE(r, f, "item %zu must be a string without NUL characters", i);
    }
    return check_range(r, f, n, "a count of");
}

static int read_strmap(const struct reader *r, const struct json_field *f, struct json_object *v)
{
    if (!json_object_is_type(v, json_type_object))
        return wrong_type(r, f, v);
    json_object_object_foreach(v, key, value)
    {
        if (json_str(value) == NULL)
            return REFUSE(r, f, "\"%.64s\" must be a string without NUL characters", key);
    }
    return check_range(r, f, (uint64_t)json_object_object_length(v), "a count of");
}

static int read_container(const struct reader *r, const struct json_field *f, struct json_object *v)
{
    bool array = f->kind == JSON_ARRAY;
    if (!json_object_is_type(v, array ? json_type_array : json_type_object))
        return wrong_type(r, f, v);
    return array ? check_range(r, f, json_object_array_length(v), "a count of") : 0;
}

static int read_field(const struct reader *r, const struct json_field *f, struct json_object *v,
                      void *out)
{
    char *at = (char *)out + f->offset;
    int status = 0;
    switch (f->kind) {
    case JSON_STR:
    case JSON_BYTES:
        return read_string(r, f, v, at);
    case JSON_U64:
        return read_number(r, f, v, at);
    case JSON_ENUM:
        return read_enum(r, f, v, at);
    case JSON_BOOL:
        if (!json_object_is_type(v, json_type_boolean))
            return wrong_type(r, f, v);
        *(bool *)at = json_object_get_boolean(v);
        return 0;
    case JSON_STRV:
        status = read_strv(r, f, v);
        break;
    case JSON_STRMAP:
        status = read_strmap(r, f, v);
        break;
    case JSON_OBJECT:
    case JSON_ARRAY:
        status = read_container(r, f, v);
        break;
    }
    if (status == 0)
        memcpy(at, &v, sizeof(v));
    return status;
}

/* Edit distance, cut off at `SHORT`; only for hints, so names are short. */
static unsigned distance(const char *a, const char *b)
{
    enum { SHORT = 32 };
    unsigned row[SHORT + 1];
    size_t n = strlen(a);
    size_t m = strlen(b);
    if (n > SHORT || m > SHORT)
        return SHORT;
    for (size_t j = 0; j <= m; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            unsigned step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < step ? change : step;
        }
    }
    return row[m];
}

/* "cmd" for "command": the letters in their order, the ends the same. */
static bool abbreviates(const char *shorter, const char *name)
{
    size_t n = strlen(shorter);
    size_t m = strlen(name);
    size_t found = 0;
    for (const char *p = name; *p != '\0' && found < n; p++)
        found += *p == shorter[found];
    return found == n && m > n && *name == *shorter && name[m - 1] == shorter[n - 1];
}

/* How far a name is from the one that may have been meant. A name that was left off in the middle
 * or shortened is nearer than one with other letters; half of them others is no resemblance. */
static unsigned farness(const char *given, const char *name)
{
    enum { SHORTENED_MIN = 3, FAR = 100 };
    size_t n = strlen(given);
    size_t m = strlen(name);
    if (n >= SHORTENED_MIN && m >= SHORTENED_MIN && strncmp(given, name, n < m ? n : m) == 0)
        return 0;
    if (n >= SHORTENED_MIN && abbreviates(given, name))
        return 1;
    unsigned d = distance(given, name);
    return d > 3 || d > (n + 1) / 2 ? FAR : 2 * d;
}

static int unknown_member(const struct reader *r, const struct json_field *fields, size_t n,
                          const char *name)
{
    const char *best = NULL;
    unsigned nearest = 8;
    char all[384] = "";
    for (size_t i = 0; i < n; i++) {
        if (fields[i].flags & JSON_IGNORED)
            continue;
        unsigned far = farness(name, fields[i].name);
        if (far < nearest) {
            nearest = far;
            best = fields[i].name;
        }
        size_t used = strlen(all);
        snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", fields[i].name);
    }
    char short_name[80];
    snprintf(short_name, sizeof(short_name), "%s", name);
    if (best != NULL)
        return refuse(r, short_name, "no such name here; did you mean \"%s\"?", best);
    return refuse(r, short_name, "no such name here; accepted: %s", all);
}

static const struct json_field *field_of(const struct json_field *fields, size_t n,
                                         const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    }
    return NULL;
}

int json_read(struct json_object *obj, const char *where, const struct json_field *fields, size_t n,
              void *out, enum err_code code, struct err *e)
{
    struct reader r = {where, code, e};
    if (!json_object_is_type(obj, json_type_object))
        return err_set(e, code, "%s%smust be an object", where, *where == '\0' ? "" : ": ");
    json_object_object_foreach(obj, key, value)
    {
        const struct json_field *f = field_of(fields, n, key);
        if (f == NULL)
            return unknown_member(&r, fields, n, key);
        if (f->flags & JSON_IGNORED)
            continue;
        if (json_object_is_type(value, json_type_null) && !(f->flags & JSON_REQUIRED))
            continue;
        if (read_field(&r, f, value, out) < 0)
            return -1;
    }
    for (size_t i = 0; i < n; i++) {
        if ((fields[i].flags & JSON_REQUIRED) && json_get(obj, fields[i].name) == NULL)
            return refuse(&r, fields[i].name, "is required (%s)", kind_text(fields[i].kind));
    }
    return 0;
}

/* ---- the same table as a schema ---- */

static void schema_items(struct jsonw *w, const char *key)
{
    jsonw_key(w, key);
    jsonw_object(w);
    jsonw_kstr(w, "type", "string");
    jsonw_object_end(w);
}

static void schema_enum(struct jsonw *w, const char *const *names)
{
    jsonw_key(w, "enum");
    jsonw_array(w);
    for (; *names != NULL; names++)
        jsonw_str(w, *names);
    jsonw_array_end(w);
}

static void schema_field(struct jsonw *w, const struct json_field *f)
{
    static const char *const types[] = {
        [JSON_STR] = "string",    [JSON_BYTES] = "string",  [JSON_BOOL] = "boolean",
        [JSON_U64] = "integer",   [JSON_ENUM] = "string",   [JSON_STRV] = "array",
        [JSON_STRMAP] = "object", [JSON_OBJECT] = "object", [JSON_ARRAY] = "array",
    };
    jsonw_key(w, f->name);
    jsonw_object(w);
    jsonw_kstr(w, "type", types[f->kind]);
    if (f->about != NULL)
        jsonw_kstr(w, "description", f->about);
    if (f->kind == JSON_U64) {
        jsonw_kuint(w, "minimum", f->min);
        if (f->max != 0)
            jsonw_kuint(w, "maximum", f->max);
    }
    if (f->kind == JSON_ENUM)
        schema_enum(w, f->names);
    if (f->kind == JSON_STRV)
        schema_items(w, "items");
    if (f->kind == JSON_ARRAY && f->items != NULL) {
        jsonw_key(w, "items");
        jsonw_raw(w, f->items, strlen(f->items));
    }
    if (f->kind == JSON_STRMAP)
        schema_items(w, "additionalProperties");
    if (f->fallback != NULL) {
        jsonw_key(w, "default");
        jsonw_raw(w, f->fallback, strlen(f->fallback));
    }
    jsonw_object_end(w);
}

void json_schema(struct jsonw *w, const struct json_field *fields, size_t n)
{
    jsonw_object(w);
    jsonw_kstr(w, "type", "object");
    jsonw_key(w, "properties");
    jsonw_object(w);
    for (size_t i = 0; i < n; i++) {
        if (!(fields[i].flags & JSON_IGNORED))
            schema_field(w, &fields[i]);
    }
    jsonw_object_end(w);
    jsonw_key(w, "required");
    jsonw_array(w);
    for (size_t i = 0; i < n; i++) {
        if (fields[i].flags & JSON_REQUIRED)
            jsonw_str(w, fields[i].name);
    }
    jsonw_array_end(w);
    jsonw_kbool(w, "additionalProperties", false);
    jsonw_object_end(w);
}
