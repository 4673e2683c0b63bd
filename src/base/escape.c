/* base/escape: see escape.h. */
#include "base/escape.h"

#include "base/scan.h"
#include "base/utf8.h"

#include <stdatomic.h>

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

/* ---- everywhere ---- */

static char *plain_bytes(char *to, const unsigned char *p, size_t n)
{
    while (n > 0) {
        size_t plain = n >= SCAN_BYTES ? scan_plain(p) : 0;
        if (plain > 0) { /* all are copied, those that count are kept */
            memcpy(to, p, SCAN_BYTES);
            to += plain;
        } else {
            plain = put_char(&to, p, n);
        }
        p += plain;
        n -= plain;
    }
    return to;
}

static char *plain_json(char *to, const unsigned char *p, size_t n)
{
    while (n > 0) {
        size_t plain = n >= SCAN_BYTES ? scan_unquoted(p) : 0;
        if (plain > 0) {
            memcpy(to, p, SCAN_BYTES);
            to += plain;
        } else {
            if (*p == '"' || *p == '\\')
                *to++ = '\\';
            *to++ = (char)*p;
            plain = 1;
        }
        p += plain;
        n -= plain;
    }
    return to;
}

/* ---- with SSSE3 ---- */

#if defined(__x86_64__)

#include <immintrin.h>

#define SSSE3 __attribute__((target("ssse3")))

/* By which of four bytes get a backslash before them (the first is bit 0): where each byte of the
 * result comes from, and the backslashes. */
#define NONE (char)0x80
#define B '\\'
static const char spread_from[16][8] = {
    {0, 1, 2, 3, NONE, NONE, NONE, NONE}, {NONE, 0, 1, 2, 3, NONE, NONE, NONE},
    {0, NONE, 1, 2, 3, NONE, NONE, NONE}, {NONE, 0, NONE, 1, 2, 3, NONE, NONE},
    {0, 1, NONE, 2, 3, NONE, NONE, NONE}, {NONE, 0, 1, NONE, 2, 3, NONE, NONE},
    {0, NONE, 1, NONE, 2, 3, NONE, NONE}, {NONE, 0, NONE, 1, NONE, 2, 3, NONE},
    {0, 1, 2, NONE, 3, NONE, NONE, NONE}, {NONE, 0, 1, 2, NONE, 3, NONE, NONE},
    {0, NONE, 1, 2, NONE, 3, NONE, NONE}, {NONE, 0, NONE, 1, 2, NONE, 3, NONE},
    {0, 1, NONE, 2, NONE, 3, NONE, NONE}, {NONE, 0, 1, NONE, 2, NONE, 3, NONE},
    {0, NONE, 1, NONE, 2, NONE, 3, NONE}, {NONE, 0, NONE, 1, NONE, 2, NONE, 3},
};
static const char spread_slashes[16][8] = {
    {0},
    {B},
    {0, B},
    {B, 0, B},
    {0, 0, B},
    {B, 0, 0, B},
    {0, B, 0, B},
    {B, 0, B, 0, B},
    {0, 0, 0, B},
    {B, 0, 0, 0, B},
    {0, B, 0, 0, B},
    {B, 0, B, 0, 0, B},
    {0, 0, B, 0, B},
    {B, 0, 0, B, 0, B},
    {0, B, 0, B, 0, B},
    {B, 0, B, 0, B, 0, B},
};
static const unsigned char spread_len[16] = {4, 5, 5, 6, 5, 6, 6, 7, 5, 6, 6, 7, 6, 7, 7, 8};
#undef NONE
#undef B

static inline __m128i load_8(const char *p)
{
    int64_t word = 0;
    memcpy(&word, p, sizeof(word));
    return _mm_cvtsi64_si128(word);
}

/* The 16 bytes of v, those marked in `mask` after a backslash. */
SSSE3 static inline char *spread(char *to, __m128i v, unsigned mask)
{
    if (mask == 0) {
        memcpy(to, &v, 16);
        return to + 16;
    }
    for (int i = 0; i < 4; i++) {
        unsigned row = mask >> (4 * i) & 15;
        __m128i bytes = _mm_shuffle_epi8(v, load_8(spread_from[row]));
        bytes = _mm_or_si128(bytes, load_8(spread_slashes[row]));
        memcpy(to, &bytes, 8);
        to += spread_len[row];
        v = _mm_srli_si128(v, 4);
    }
    return to;
}

SSSE3 static char *ssse3_json(char *to, const unsigned char *p, size_t n)
{
    for (; n >= 16; p += 16, n -= 16) {
        __m128i v = scan_load(p);
        __m128i marks = _mm_or_si128(scan_is(v, '"'), scan_is(v, '\\'));
        to = spread(to, v, (unsigned)_mm_movemask_epi8(marks));
    }
    return plain_json(to, p, n);
}

/* Sixteen bytes or, where one of them has no short form, some characters. */
SSSE3 static char *ssse3_bytes(char *to, const unsigned char *p, size_t n)
{
    const __m128i short_forms =
        _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 'b', 't', 'n', 0, 'f', 'r', 0, 0);
    while (n >= 16) {
        __m128i v = scan_load(p);
        /* A lookup goes by the low four bits, and gives 0 from 0x80 up. */
        __m128i letters =
            _mm_and_si128(_mm_shuffle_epi8(short_forms, v), _mm_cmplt_epi8(v, _mm_set1_epi8(0x10)));
        __m128i as_it_is = _mm_cmpeq_epi8(letters, _mm_setzero_si128());
        __m128i rare = _mm_or_si128(_mm_and_si128(_mm_cmplt_epi8(v, _mm_set1_epi8(0x20)), as_it_is),
                                    scan_is(v, 0x7f));
        size_t used = scan_first(rare);
        if (used == 16) {
            __m128i marks = _mm_or_si128(scan_is(v, '"'), scan_is(v, '\\'));
            unsigned mask = (unsigned)_mm_movemask_epi8(marks) |
                            (~(unsigned)_mm_movemask_epi8(as_it_is) & 0xffffu);
            to = spread(to, _mm_or_si128(_mm_and_si128(as_it_is, v), letters), mask);
        } else {
            for (used = 0; used < 16;)
                used += put_char(&to, p + used, n - used);
        }
        p += used;
        n -= used;
    }
    return plain_bytes(to, p, n);
}

/* ---- with AVX-512 VBMI2 ---- */

#define VBMI2 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")))

/* The 32 bytes of v, those marked in `mask` after a backslash. Writes 64 bytes, of which some are
 * not kept: there is room for them, since each byte may need two. */
VBMI2 static inline char *close_gaps(char *to, __m256i v, uint32_t mask)
{
    const __m512i slashes = _mm512_set1_epi16('\\');
    __m512i pairs = _mm512_or_si512(_mm512_slli_epi16(_mm512_cvtepu8_epi16(v), 8), slashes);
    uint64_t keep = _pdep_u64(mask, 0x5555555555555555ULL) | 0xaaaaaaaaaaaaaaaaULL;
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(keep, pairs));
    return to + 32 + __builtin_popcount(mask);
}

VBMI2 static inline __m256i load_32(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

VBMI2 static inline uint32_t quotes(__m256i v)
{
    return _mm256_cmpeq_epi8_mask(v, _mm256_set1_epi8('"')) |
           _mm256_cmpeq_epi8_mask(v, _mm256_set1_epi8('\\'));
}

VBMI2 static char *vbmi2_json(char *to, const unsigned char *p, size_t n)
{
    for (; n >= 32; p += 32, n -= 32) {
        __m256i v = load_32(p);
        to = close_gaps(to, v, quotes(v));
    }
    return plain_json(to, p, n);
}

/* As ssse3_bytes(). */
VBMI2 static char *vbmi2_bytes(char *to, const unsigned char *p, size_t n)
{
    const __m256i short_forms = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 'b', 't', 'n', 0, 'f', 'r', 0, 0));
    while (n >= 32) {
        __m256i v = load_32(p);
        uint32_t low = _mm256_cmplt_epu8_mask(v, _mm256_set1_epi8(0x10));
        __m256i letters = _mm256_maskz_shuffle_epi8(low, short_forms, v);
        uint32_t short_form = _mm256_test_epi8_mask(letters, letters);
        /* Signed: from 0x80 up, and below 0x20. */
        uint32_t rare = (_mm256_cmplt_epi8_mask(v, _mm256_set1_epi8(0x20)) & ~short_form) |
                        _mm256_cmpeq_epi8_mask(v, _mm256_set1_epi8(0x7f));
        size_t used = 32;
        if (rare == 0) {
            __m256i bytes = _mm256_mask_mov_epi8(v, short_form, letters);
            to = close_gaps(to, bytes, quotes(v) | short_form);
        } else {
            for (used = 0; used < 16;)
                used += put_char(&to, p + used, n - used);
        }
        p += used;
        n -= used;
    }
    return plain_bytes(to, p, n);
}

/* ---- which ---- */

static atomic_int most_allowed = ESCAPE_VBMI2;

static enum escape_way best_way(void)
{
    if (__builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
        return ESCAPE_VBMI2;
    return __builtin_cpu_supports("ssse3") ? ESCAPE_SSSE3 : ESCAPE_PLAIN;
}

static enum escape_way way(void)
{
    enum escape_way most =
        (enum escape_way)atomic_load_explicit(&most_allowed, memory_order_relaxed);
    enum escape_way best = best_way();
    return best < most ? best : most;
}

bool escape_force(enum escape_way most)
{
    atomic_store(&most_allowed, most);
    return way() == most;
}

char *escape_bytes(char *to, const void *bytes, size_t n)
{
    switch (way()) {
    case ESCAPE_VBMI2:
        return vbmi2_bytes(to, bytes, n);
    case ESCAPE_SSSE3:
        return ssse3_bytes(to, bytes, n);
    default:
        return plain_bytes(to, bytes, n);
    }
}

char *escape_json(char *to, const void *json, size_t n)
{
    switch (way()) {
    case ESCAPE_VBMI2:
        return vbmi2_json(to, json, n);
    case ESCAPE_SSSE3:
        return ssse3_json(to, json, n);
    default:
        return plain_json(to, json, n);
    }
}

#else

bool escape_force(enum escape_way most)
{
    return most == ESCAPE_PLAIN;
}

char *escape_bytes(char *to, const void *bytes, size_t n)
{
    return plain_bytes(to, bytes, n);
}

char *escape_json(char *to, const void *json, size_t n)
{
    return plain_json(to, json, n);
}

#endif
