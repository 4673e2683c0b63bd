/* base/escape: both ways of doing it give what a byte at a time gives, whatever stands where. */
#include "../../helpers/unit.h"
#include "base/buf.h"
#include "base/escape.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define LENGTH_MAX 80u
#define ROUNDS 20000u

/* What RFC 8259 and escape.h say, without any trick. */
static void model_bytes(struct buf *out, const unsigned char *p, size_t n)
{
    static const char names[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    for (size_t i = 0; i < n;) {
        size_t len = utf8_char_len(p + i, n - i);
        const char *name = p[i] == '\0' ? NULL : strchr(names, p[i]);
        if (name != NULL)
            buf_printf(out, "\\%c", letters[name - names]);
        else if (p[i] < 0x20 || p[i] == 0x7f)
            buf_printf(out, "\\u%04x", p[i]);
        else if (len == 0)
            buf_puts(out, "\xef\xbf\xbd");
        else
            buf_put(out, p + i, len);
        i += len == 0 ? 1 : len;
    }
}

static void model_json(struct buf *out, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '"' || p[i] == '\\')
            buf_putc(out, '\\');
        buf_putc(out, (char)p[i]);
    }
}

static uint64_t seed = 0x9e3779b97f4a7c15ULL;

static unsigned roll(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % n;
}

/* Mostly letters, with what is special in between. */
static size_t make_text(unsigned char text[LENGTH_MAX], bool json)
{
    static const char *const pieces[] = {"\"",   "\\",          "\n",       "\t",
                                         "\x01", "\x7f",        "\xc3\xa9", "\xf0\x9f\x98\x80",
                                         "\xff", "\xed\xa0\x80"};
    size_t n = 0;
    unsigned rare = 1 + roll(12);
    size_t want = roll(LENGTH_MAX - 4);
    while (n < want) {
        const char *piece = roll(rare) == 0 ? pieces[roll(json ? 2 : ARRAY_LEN(pieces))] : "x";
        memcpy(text + n, piece, strlen(piece));
        n += strlen(piece);
    }
    return n;
}

typedef char *escape_fn(char *to, const void *bytes, size_t n);
typedef void model_fn(struct buf *out, const unsigned char *p, size_t n);

/* The room is exactly what the header asks for, so that ASan sees a byte too many. */
static void compare(escape_fn *escape, model_fn *model, const unsigned char *text, size_t n,
                    size_t room)
{
    autobuf want = BUF_INIT;
    autofree char *to = mem_zalloc(room, 1);
    autofree unsigned char *copy = mem_zalloc(n == 0 ? 1 : n, 1);
    memcpy(copy, text, n);
    model(&want, text, n);
    size_t got = (size_t)(escape(to, copy, n) - to);
    assert_int_equal(got, want.len);
    assert_memory_equal(to, buf_bytes(&want), got);
}

static void compare_all(void)
{
    unsigned char text[LENGTH_MAX];
    for (unsigned i = 0; i < ROUNDS; i++) {
        size_t n = make_text(text, false);
        compare(escape_bytes, model_bytes, text, n, ESCAPE_ROOM(n));
        n = make_text(text, true);
        compare(escape_json, model_json, text, n, ESCAPE_JSON_ROOM(n));
    }
    for (unsigned c = 0; c < 256; c++) { /* each byte at each place of a block */
        for (size_t at = 0; at < 36; at++) {
            memset(text, 'a', 36);
            text[at] = (unsigned char)c;
            compare(escape_bytes, model_bytes, text, 20, ESCAPE_ROOM(20));
            compare(escape_bytes, model_bytes, text, 36, ESCAPE_ROOM(36));
        }
    }
    memset(text, '\x01', sizeof(text));
    compare(escape_bytes, model_bytes, text, sizeof(text), ESCAPE_ROOM(sizeof(text)));
    memset(text, '"', sizeof(text));
    compare(escape_json, model_json, text, sizeof(text), ESCAPE_JSON_ROOM(sizeof(text)));
}

/* A processor without a way takes a lesser one, so no row is skipped. */
static void test_as_the_model(void **state)
{
    (void)state;
    static const enum escape_way ways[] = {ESCAPE_VBMI2, ESCAPE_SSSE3, ESCAPE_PLAIN};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        if (!escape_force(ways[i]))
            print_message("way %d is not one of this processor\n", (int)ways[i]);
        compare_all();
    }
    assert_true(escape_force(ESCAPE_PLAIN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
