/* base/encode64: see encode64.h. */
#include "base/encode64.h"

#include <stdatomic.h>
#include <stdbool.h>

static char *plain(char *to, const unsigned char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        unsigned v = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                     (left > 2 ? (unsigned)p[i + 2] : 0);
        *to++ = digits[v >> 18];
        *to++ = digits[v >> 12 & 63];
        *to++ = left > 1 ? digits[v >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[v & 63] : '=';
    }
    return to;
}

static atomic_bool plain_forced;

void encode64_force_plain(void)
{
    atomic_store(&plain_forced, true);
}

#if defined(__x86_64__)

#include <tmmintrin.h>

#define SSSE3 __attribute__((target("ssse3")))

/* What is added to a digit's value from `above` on, besides what was added below. */
static inline __m128i step(__m128i values, char above, char more)
{
    return _mm_and_si128(_mm_cmpgt_epi8(values, _mm_set1_epi8(above)), _mm_set1_epi8(more));
}

/* 0..25 are A-Z, 26..51 a-z, 52..61 0-9, 62 '+', 63 '/'. */
static inline __m128i digits_of(__m128i values)
{
    __m128i add = _mm_add_epi8(_mm_set1_epi8('A'), step(values, 25, 'a' - 26 - 'A'));
    add = _mm_add_epi8(add, step(values, 51, '0' - 52 - ('a' - 26)));
    add = _mm_add_epi8(add, step(values, 61, '+' - 62 - ('0' - 52)));
    add = _mm_add_epi8(add, step(values, 62, '/' - 63 - ('+' - 62)));
    return _mm_add_epi8(values, add);
}

/* Sixteen bytes are read, twelve are used. Three stand in each word, the first of them highest; the
 * first digit goes to the lowest byte. */
SSSE3 static inline __m128i sixteen(const unsigned char *p)
{
    const __m128i order = _mm_setr_epi8(2, 1, 0, -1, 5, 4, 3, -1, 8, 7, 6, -1, 11, 10, 9, -1);
    __m128i words = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), order);
    __m128i values = _mm_and_si128(_mm_srli_epi32(words, 18), _mm_set1_epi32(0x3f));
    values = _mm_or_si128(values, _mm_and_si128(_mm_srli_epi32(words, 4), _mm_set1_epi32(0x3f00)));
    values =
        _mm_or_si128(values, _mm_and_si128(_mm_slli_epi32(words, 10), _mm_set1_epi32(0x3f0000)));
    values =
        _mm_or_si128(values, _mm_and_si128(_mm_slli_epi32(words, 24), _mm_set1_epi32(0x3f000000)));
    return digits_of(values);
}

SSSE3 static char *fast(char *to, const unsigned char *p, size_t n)
{
    for (; n >= 16; p += 12, n -= 12, to += 16)
        _mm_storeu_si128((__m128i *)(void *)to, sixteen(p));
    return plain(to, p, n);
}

char *encode64(char *to, const void *bytes, size_t n)
{
    bool can = __builtin_cpu_supports("ssse3") &&
               !atomic_load_explicit(&plain_forced, memory_order_relaxed);
    return can ? fast(to, bytes, n) : plain(to, bytes, n);
}

#else

char *encode64(char *to, const void *bytes, size_t n)
{
    return plain(to, bytes, n);
}

#endif
