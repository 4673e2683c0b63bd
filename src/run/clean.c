/* run/clean: see clean.h. */
#include "run/clean.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

#define ESC 0x1b
#define BEL 0x07

struct cell {
    unsigned char len; /* 0 = a blank that was never written */
    char bytes[4];
};

struct line {
    struct cell cells[CLEAN_LINE_MAX];
    size_t len; /* cells in use */
    size_t at;  /* the cursor */
    struct buf *out;
};

static void flush(struct line *l)
{
    for (size_t i = 0; i < l->len; i++) {
        if (l->cells[i].len == 0)
            buf_putc(l->out, ' ');
        else
            buf_put(l->out, l->cells[i].bytes, l->cells[i].len);
    }
    l->len = 0;
    l->at = 0;
}

static void put(struct line *l, const char *bytes, size_t n)
{
    if (l->at == CLEAN_LINE_MAX)
        flush(l);
    struct cell *c = &l->cells[l->at++];
    c->len = (unsigned char)n;
    memcpy(c->bytes, bytes, n);
    if (l->at > l->len)
        l->len = l->at;
}

/* The cursor moves within the line; cells that it passes over are blanks. */
static void move_to(struct line *l, size_t at)
{
    l->at = at < CLEAN_LINE_MAX ? at : CLEAN_LINE_MAX - 1;
    while (l->len < l->at)
        l->cells[l->len++].len = 0;
}

/* Erase in line: 0 from the cursor on, 1 up to it, 2 all. */
static void erase(struct line *l, unsigned how)
{
    if (how == 0 || how == 2)
        l->len = l->at < l->len ? l->at : l->len;
    if (how == 0)
        return;
    for (size_t i = 0; i < l->len && i <= l->at; i++)
        l->cells[i].len = 0;
}

static void apply_csi(struct line *l, char final, unsigned count, bool has_count)
{
    unsigned n = has_count && count > 0 ? count : 1;
    switch (final) {
    case 'K':
        erase(l, has_count ? count : 0);
        return;
    case 'C':
        move_to(l, l->at + n);
        return;
    case 'D':
        move_to(l, l->at > n ? l->at - n : 0);
        return;
    case 'G':
        move_to(l, n - 1);
        return;
    default:
        return;
    }
}

/* Behind "ESC [": parameters, then a final byte. The index after it. */
static size_t take_csi(struct line *l, const char *p, size_t n, size_t i)
{
    unsigned count = 0;
    bool has_count = false;
    bool plain = true;
    for (; i < n && (unsigned char)p[i] >= 0x20 && (unsigned char)p[i] < 0x40; i++) {
        bool digit = p[i] >= '0' && p[i] <= '9';
        plain = plain && digit;
        has_count = has_count || digit;
        if (digit && count < CLEAN_LINE_MAX)
            count = count * 10 + (unsigned)(p[i] - '0');
    }
    if (i >= n || (unsigned char)p[i] < 0x40 || (unsigned char)p[i] > 0x7e)
        return i; /* broken off: what follows is text again */
    if (plain)
        apply_csi(l, p[i], count, has_count);
    return i + 1;
}

/* A string (title, hyperlink): to BEL or ESC \. */
static size_t skip_string(const char *p, size_t n, size_t i)
{
    for (; i < n; i++) {
        if (p[i] == BEL)
            return i + 1;
        if (p[i] == ESC && i + 1 < n && p[i + 1] == '\\')
            return i + 2;
        if (p[i] == '\n') /* no string has one: it was never ended */
            return i;
    }
    return n;
}

/* Behind ESC. */
static size_t take_escape(struct line *l, const char *p, size_t n, size_t i)
{
    if (i >= n)
        return n;
    if (p[i] == '[')
        return take_csi(l, p, n, i + 1);
    if (strchr("]PX^_", p[i]) != NULL && p[i] != '\0')
        return skip_string(p, n, i + 1);
    while (i < n && (unsigned char)p[i] >= 0x20 && (unsigned char)p[i] < 0x30)
        i++; /* intermediate bytes, as of a character set */
    return i < n && (unsigned char)p[i] >= 0x30 && (unsigned char)p[i] < 0x7f ? i + 1 : i;
}

static void take_control(struct line *l, char c)
{
    if (c == '\n') {
        flush(l);
        buf_putc(l->out, c);
    } else if (c == '\r') {
        l->at = 0;
    } else if (c == '\b') {
        l->at -= l->at > 0;
    } else if (c == '\t') {
        put(l, &c, 1);
    }
}

void clean_text(const char *bytes, size_t n, struct buf *out)
{
    autofree struct line *l = mem_realloc(NULL, 1, sizeof(*l));
    l->len = 0;
    l->at = 0;
    l->out = out;
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == ESC) {
            i = take_escape(l, bytes, n, i + 1);
        } else if (c < 0x20 || c == 0x7f) {
            take_control(l, bytes[i++]);
        } else {
            size_t len = utf8_char_len((const unsigned char *)bytes + i, n - i);
            len = len == 0 ? 1 : len;
            put(l, bytes + i, len);
            i += len;
        }
    }
    flush(l);
}
