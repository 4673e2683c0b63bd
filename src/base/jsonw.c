/* base/jsonw: see jsonw.h. */
#include "base/jsonw.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <endian.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void jsonw_init(struct jsonw *w, struct buf *out)
{
    *w = (struct jsonw){.out = out};
}

/* Called before every value and key: writes the comma that is due. */
static void separate(struct jsonw *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    uint64_t bit = UINT64_C(1) << w->depth;
    if (w->depth > 0 && (w->has_item & bit))
        buf_putc(w->out, ',');
    w->has_item |= bit;
}

static void open_container(struct jsonw *w, char c)
{
    separate(w);
    ensure(w->depth < JSONW_DEPTH_MAX);
    buf_putc(w->out, c);
    w->depth++;
    w->has_item &= ~(UINT64_C(1) << w->depth);
}

static void close_container(struct jsonw *w, char c)
{
    ensure(w->depth > 0 && !w->after_key);
    w->depth--;
    buf_putc(w->out, c);
}

void jsonw_object(struct jsonw *w)
{
    open_container(w, '{');
}

void jsonw_object_end(struct jsonw *w)
{
    close_container(w, '}');
}

void jsonw_array(struct jsonw *w)
{
    open_container(w, '[');
}

void jsonw_array_end(struct jsonw *w)
{
    close_container(w, ']');
}

void jsonw_key(struct jsonw *w, const char *key)
{
    separate(w);
    size_t n = strlen(key);
    char *at = buf_reserve(w->out, n + 3);
    at[0] = '"';
    memcpy(at + 1, key, n);
    at[n + 1] = '"';
    at[n + 2] = ':';
    buf_commit(w->out, n + 3);
    w->after_key = true;
}

/* 0: copy as it is; 'u': \u00XX; 1: part of a multi-byte character; else the letter after '\'. */
static const unsigned char escape_class[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
    ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't', [0x7f] = 'u',
};

static unsigned char class_of(unsigned char c)
{
    if (c >= 0x80)
        return 1;
    if (escape_class[c] != 0)
        return escape_class[c];
    return c < 0x20 ? 'u' : 0;
}

/* Longest output of one input byte: \u00XX. */
#define ESCAPED_MAX 6u

/* How many of the eight bytes at p, from the first on, stand for themselves: not below 0x20, no
 * quote, no backslash, not from 0x7f up. The tests are the usual ones for a zero byte and for a
 * borrow (Bit Twiddling Hacks, "determine if a word has a byte less than n"): a borrow may mark
 * bytes behind the first that is really marked, never before it. */
static size_t plain_prefix(const unsigned char *p)
{
    const uint64_t ones = 0x0101010101010101ULL;
    uint64_t word = 0;
    memcpy(&word, p, sizeof(word));
    word = le64toh(word);
    uint64_t quote = word ^ (ones * '"');
    uint64_t slash = word ^ (ones * '\\');
    uint64_t marks =
        (word | (word - ones * 0x20) | (word + ones) | (quote - ones) | (slash - ones)) &
        0x8080808080808080ULL;
    return marks == 0 ? 8 : (size_t)__builtin_ctzll(marks) / 8;
}

static char *put_escape(char *to, unsigned char c, unsigned char class)
{
    static const char digits[] = "0123456789abcdef";
    *to++ = '\\';
    *to++ = (char)class;
    if (class != 'u')
        return to;
    *to++ = '0';
    *to++ = '0';
    *to++ = digits[c >> 4];
    *to++ = digits[c & 15];
    return to;
}

/* One character from p (n bytes are there) to *to; how many bytes of p it was. */
static size_t put_char(char **to, const unsigned char *p, size_t n)
{
    unsigned char class = class_of(*p);
    size_t len = class == 1 ? utf8_char_len(p, n) : 1;
    if (class == 0 || (class == 1 && len > 0)) {
        memcpy(*to, p, len);
        *to += len;
        return len;
    }
    if (class == 1) {
        memcpy(*to, "\xef\xbf\xbd", 3);
        *to += 3;
        return 1;
    }
    *to = put_escape(*to, *p, class);
    return 1;
}

/* In blocks, so that room is asked for once a block and eight plain bytes cost one test: answers
 * are escaped twice (the text holds the JSON), which makes this the hottest loop of a large read.
 */
void jsonw_escape(struct buf *out, const void *bytes, size_t n)
{
    enum { BLOCK = 4096 };
    const unsigned char *p = bytes;
    while (n > 0) {
        size_t take = n < BLOCK ? n : BLOCK;
        char *start = buf_reserve(out, (take + 4) * ESCAPED_MAX);
        char *to = start;
        const unsigned char *end = p + take;
        while (p < end) {
            size_t plain = end - p >= 8 ? plain_prefix(p) : 0;
            if (plain > 0) { /* eight are copied, those that count are kept */
                memcpy(to, p, 8);
                to += plain;
                p += plain;
                n -= plain;
            }
            if (plain < 8 && p < end) {
                size_t used = put_char(&to, p, n);
                p += used;
                n -= used;
            }
        }
        buf_commit(out, (size_t)(to - start));
    }
}

void jsonw_strn(struct jsonw *w, const void *bytes, size_t n)
{
    separate(w);
    buf_putc(w->out, '"');
    jsonw_escape(w->out, bytes, n);
    buf_putc(w->out, '"');
}

void jsonw_str(struct jsonw *w, const char *s)
{
    if (s == NULL) {
        jsonw_null(w);
        return;
    }
    jsonw_strn(w, s, strlen(s));
}

void jsonw_base64(struct jsonw *w, const void *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = bytes;
    separate(w);
    char *at = buf_reserve(w->out, (n + 2) / 3 * 4 + 2);
    char *q = at;
    *q++ = '"';
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        unsigned v = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                     (left > 2 ? (unsigned)p[i + 2] : 0);
        *q++ = digits[v >> 18];
        *q++ = digits[v >> 12 & 63];
        *q++ = left > 1 ? digits[v >> 6 & 63] : '=';
        *q++ = left > 2 ? digits[v & 63] : '=';
    }
    *q++ = '"';
    buf_commit(w->out, (size_t)(q - at));
}

static void put_number(struct jsonw *w, const char *text)
{
    separate(w);
    buf_puts(w->out, text);
}

void jsonw_int(struct jsonw *w, int64_t v)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, v);
    put_number(w, text);
}

void jsonw_uint(struct jsonw *w, uint64_t v)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, v);
    put_number(w, text);
}

void jsonw_double(struct jsonw *w, double v)
{
    char text[40];
    snprintf(text, sizeof(text), "%.17g", v);
    put_number(w, isfinite(v) ? text : "null");
}

void jsonw_bool(struct jsonw *w, bool v)
{
    put_number(w, v ? "true" : "false");
}

void jsonw_null(struct jsonw *w)
{
    put_number(w, "null");
}

void jsonw_raw(struct jsonw *w, const char *json, size_t n)
{
    separate(w);
    buf_put(w->out, json, n);
}

void jsonw_kstr(struct jsonw *w, const char *key, const char *s)
{
    jsonw_key(w, key);
    jsonw_str(w, s);
}

void jsonw_kint(struct jsonw *w, const char *key, int64_t v)
{
    jsonw_key(w, key);
    jsonw_int(w, v);
}

void jsonw_kuint(struct jsonw *w, const char *key, uint64_t v)
{
    jsonw_key(w, key);
    jsonw_uint(w, v);
}

void jsonw_kbool(struct jsonw *w, const char *key, bool v)
{
    jsonw_key(w, key);
    jsonw_bool(w, v);
}
