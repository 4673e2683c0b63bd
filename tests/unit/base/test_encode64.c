/* base/encode64: the vectors of RFC 4648, and both ways of doing it against three bytes at a time.
 */
#include "../../helpers/unit.h"
#include "base/encode64.h"

#include <string.h>

#define LENGTH_MAX 200u
#define ROUNDS 5000u

static void model(char *to, const unsigned char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < n ? p[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            *to++ = i + k <= n ? digits[v >> (18 - 6 * k) & 63] : '=';
    }
    *to = '\0';
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void compare_all(void)
{
    unsigned char bytes[LENGTH_MAX];
    char want[ENCODE64_LEN(LENGTH_MAX) + 1], got[ENCODE64_LEN(LENGTH_MAX) + 1];
    uint32_t seed = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t n = round < LENGTH_MAX ? round : next_random(&seed) % LENGTH_MAX;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (unsigned char)next_random(&seed);
        model(want, bytes, n);
        memset(got, '#', sizeof(got));
        char *end = encode64(got, bytes, n);
        assert_int_equal(end - got, ENCODE64_LEN(n));
        assert_int_equal(*end, '#'); /* nothing is written beyond it */
        *end = '\0';
        assert_string_equal(got, want);
    }
}

static void test_vectors(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char got[16] = "";
        *encode64(got, rows[i][0], strlen(rows[i][0])) = '\0';
        assert_string_equal(got, rows[i][1]);
    }
}

static void test_against_a_model(void **state)
{
    (void)state;
    compare_all();
}

static void test_plain(void **state)
{
    (void)state;
    encode64_force_plain();
    compare_all();
}

UNIT_MAIN(cmocka_unit_test(test_vectors), cmocka_unit_test(test_against_a_model),
          cmocka_unit_test(test_plain))
