/* wire/base64: see base64.h. */
#include "wire/base64.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* Value of a character plus one; 0 = none of ours. */
static const uint8_t values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

/* Four characters to three bytes; `pads` of them (0 to 2) are not there. False when they are none
 * of ours or have bits behind the end. */
static int quad(const unsigned char *in, unsigned pads, char *out)
{
    uint32_t bits = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned v = i < 4 - pads ? values[in[i]] : 1;
        if (v == 0)
            return -EINVAL;
        bits = bits << 6 | (v - 1);
    }
    if ((pads == 1 && (bits & 0xff) != 0) || (pads == 2 && (bits & 0xffff) != 0))
        return -EINVAL;
    out[0] = (char)(bits >> 16);
    out[1] = (char)(bits >> 8);
    out[2] = (char)bits;
    return 0;
}

/* As quad() without pads, for text that is long: the fault is looked for once, at the end. `values`
 * less one is 255 for what is none of ours, and no value has its bit of 64. */
static int quads(const unsigned char *in, size_t n, char *out)
{
    unsigned bad = 0;
    for (size_t i = 0; i < n; i++, in += 4, out += 3) {
        unsigned a = (uint8_t)(values[in[0]] - 1);
        unsigned b = (uint8_t)(values[in[1]] - 1);
        unsigned c = (uint8_t)(values[in[2]] - 1);
        unsigned d = (uint8_t)(values[in[3]] - 1);
        bad |= a | b | c | d;
        out[0] = (char)(a << 2 | b >> 4);
        out[1] = (char)(b << 4 | c >> 2);
        out[2] = (char)(c << 6 | d);
    }
    return (bad & 64) != 0 ? -EINVAL : 0;
}

int base64_read(const char *text, size_t n, struct buf *out)
{
    if (n % 4 != 0)
        return -EINVAL;
    if (n == 0)
        return 0;
    unsigned pads = text[n - 1] != '=' ? 0 : text[n - 2] != '=' ? 1 : 2;
    char *to = buf_reserve(out, n / 4 * 3);
    const unsigned char *from = (const unsigned char *)text;
    if (quads(from, n / 4 - 1, to) < 0 || quad(from + n - 4, pads, to + n / 4 * 3 - 3) < 0)
        return -EINVAL;
    buf_commit(out, n / 4 * 3 - pads);
    return 0;
}
