/* base/jsonw: see jsonw.h. */
#include "base/jsonw.h"

#include "base/encode64.h"
#include "base/escape.h"
#include "base/mem.h"
#include "base/utf8.h"

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

/* In blocks, so that the room that is asked for stays in proportion. */
void jsonw_escape(struct buf *out, const void *bytes, size_t n)
{
    enum { BLOCK = 4096 };
    const char *p = bytes;
    while (n > 0) {
        size_t take = n < BLOCK ? n : BLOCK;
        if (take < n) /* a character is not cut */
            take = utf8_whole_prefix(p, take);
        char *start = buf_reserve(out, ESCAPE_ROOM(take));
        buf_commit(out, (size_t)(escape_bytes(start, p, take) - start));
        p += take;
        n -= take;
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
    separate(w);
    char *at = buf_reserve(w->out, ENCODE64_LEN(n) + 2);
    at[0] = '"';
    char *end = encode64(at + 1, bytes, n);
    *end++ = '"';
    buf_commit(w->out, (size_t)(end - at));
}

static void put_number(struct jsonw *w, const char *text)
{
    separate(w);
    buf_puts(w->out, text);
}

/* By hand: every answer holds some, and snprintf took longer than the rest of a small one. */
static void put_decimal(struct jsonw *w, bool negative, uint64_t v)
{
    char text[24];
    size_t at = sizeof(text) - 1;
    text[at] = '\0';
    do {
        text[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    if (negative)
        text[--at] = '-';
    put_number(w, text + at);
}

void jsonw_int(struct jsonw *w, int64_t v)
{
    put_decimal(w, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void jsonw_uint(struct jsonw *w, uint64_t v)
{
    put_decimal(w, false, v);
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
