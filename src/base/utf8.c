/* base/utf8: see utf8.h. */
#include "base/utf8.h"

#include "base/scan.h"

/* How long the character claims to be by its first byte; 0 for a byte that starts none. */
static size_t claimed_len(unsigned char c)
{
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c <= 0xdf)
        return 2;
    if (c >= 0xe0 && c <= 0xef)
        return 3;
    return c >= 0xf0 && c <= 0xf4 ? 4 : 0;
}

/* The second byte carries the rules against overlong forms, surrogates and too large values. */
static bool second_ok(unsigned char first, unsigned char second)
{
    unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high;
}

/* True when the first n bytes of a character that claims more are right so far. */
static bool begins_well(const unsigned char *p, size_t n)
{
    if (n >= 2 && !second_ok(p[0], p[1]))
        return false;
    for (size_t i = 2; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return false;
    }
    return true;
}

size_t utf8_char_len(const unsigned char *p, size_t n)
{
    size_t len = n == 0 ? 0 : claimed_len(p[0]);
    if (len == 0 || len > n)
        return 0;
    return begins_well(p, len) ? len : 0;
}

bool utf8_valid(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    size_t i = 0;
    while (i < n) {
        if (n - i >= SCAN_BYTES && scan_ascii(p + i)) { /* most text is */
            i += SCAN_BYTES;
            continue;
        }
        size_t len = utf8_char_len(p + i, n - i);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

size_t utf8_whole_prefix(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = p[n - back];
        if ((c & 0xc0) == 0x80)
            continue;
        bool cut = claimed_len(c) > back && begins_well(p + n - back, back);
        return cut ? n - back : n;
    }
    return n;
}
