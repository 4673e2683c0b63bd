/* base/scan: how far plain bytes go, a machine word at a time.
 *
 * Theory. Text is checked, escaped and quoted again on its way into an answer, and nearly all of it
 * stands for itself. Each function looks at SCAN_BYTES bytes at once and says how many of them,
 * from the first on, are plain; the caller copies the whole block without looking and keeps so
 * many. On x86-64 a block is a 16-byte vector, which every such processor has (a third of a large
 * read was spent here with 8 bytes at a time); elsewhere it is a word.
 *
 * SCAN_BYTES bytes must be there. Must not: depend on a processor feature that is not always on.
 */
#ifndef CODESPACE_BASE_SCAN_H
#define CODESPACE_BASE_SCAN_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__

#include <emmintrin.h>

#define SCAN_BYTES 16u

static inline __m128i scan_load(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

static inline size_t scan_first(__m128i marks)
{
    unsigned mask = (unsigned)_mm_movemask_epi8(marks);
    return mask == 0 ? SCAN_BYTES : (size_t)__builtin_ctz(mask);
}

static inline __m128i scan_is(__m128i v, char c)
{
    return _mm_cmpeq_epi8(v, _mm_set1_epi8(c));
}

/* Bytes before the first that a JSON string does not hold as it is, or that is not ASCII: below
 * 0x20, '"', '\\', from 0x7f up. (Signed, 0x80 and up are below 0x20 too.) */
static inline size_t scan_plain(const void *p)
{
    __m128i v = scan_load(p);
    __m128i marks = _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8(0x20)), scan_is(v, 0x7f));
    return scan_first(_mm_or_si128(marks, _mm_or_si128(scan_is(v, '"'), scan_is(v, '\\'))));
}

/* Bytes before the first '"' or '\\'. */
static inline size_t scan_unquoted(const void *p)
{
    __m128i v = scan_load(p);
    return scan_first(_mm_or_si128(scan_is(v, '"'), scan_is(v, '\\')));
}

/* Are all of them ASCII? */
static inline bool scan_ascii(const void *p)
{
    return _mm_movemask_epi8(scan_load(p)) == 0;
}

/* How many of n bytes, whole blocks of them and at most SCAN_COUNT_MAX, are c. */
#define SCAN_COUNT_MAX (255u * SCAN_BYTES)
static inline size_t scan_count(const void *p, size_t n, char c)
{
    const char *bytes = p;
    __m128i counts = _mm_setzero_si128(); /* each match is -1 */
    for (size_t i = 0; i < n; i += SCAN_BYTES)
        counts = _mm_sub_epi8(counts, scan_is(scan_load(bytes + i), c));
    __m128i sums = _mm_sad_epu8(counts, _mm_setzero_si128());
    return (size_t)(_mm_cvtsi128_si64(sums) + _mm_cvtsi128_si64(_mm_srli_si128(sums, 8)));
}

#else

/* The tests are the usual ones for a zero byte and for a borrow (Bit Twiddling Hacks, "determine if
 * a word has a byte less than n"): a borrow may mark bytes behind the first that is really marked,
 * never before it. */
#define SCAN_BYTES 8u
#define SCAN_ONES 0x0101010101010101ULL
#define SCAN_HIGHS 0x8080808080808080ULL

static inline uint64_t scan_load(const void *p)
{
    uint64_t word = 0;
    memcpy(&word, p, sizeof(word));
    return le64toh(word);
}

static inline size_t scan_first(uint64_t marks)
{
    marks &= SCAN_HIGHS;
    return marks == 0 ? SCAN_BYTES : (size_t)__builtin_ctzll(marks) / 8;
}

static inline uint64_t scan_is(uint64_t word, char c)
{
    uint64_t x = word ^ (SCAN_ONES * (unsigned char)c);
    return (x - SCAN_ONES) & ~x;
}

static inline size_t scan_plain(const void *p)
{
    uint64_t word = scan_load(p);
    return scan_first(word | (word - SCAN_ONES * 0x20) | (word + SCAN_ONES) | scan_is(word, '"') |
                      scan_is(word, '\\'));
}

static inline size_t scan_unquoted(const void *p)
{
    uint64_t word = scan_load(p);
    return scan_first(scan_is(word, '"') | scan_is(word, '\\'));
}

static inline bool scan_ascii(const void *p)
{
    return (scan_load(p) & SCAN_HIGHS) == 0;
}

/* The carry is kept inside each byte, so that no byte behind a match is marked. */
#define SCAN_COUNT_MAX (255u * SCAN_BYTES)
static inline size_t scan_count(const void *p, size_t n, char c)
{
    const char *bytes = p;
    size_t count = 0;
    for (size_t i = 0; i < n; i += SCAN_BYTES) {
        uint64_t v = scan_load(bytes + i) ^ (SCAN_ONES * (unsigned char)c);
        uint64_t marks = ~(((v & ~SCAN_HIGHS) + ~SCAN_HIGHS) | v | ~SCAN_HIGHS);
        count += (size_t)((marks >> 7) * SCAN_ONES >> 56);
    }
    return count;
}

#endif

#endif
