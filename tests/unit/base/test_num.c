/* base/num: only whole decimal numbers in range. */
#include "../../helpers/unit.h"
#include "base/num.h"

#include <errno.h>

static void test_table(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int status;
        uint64_t value;
    } rows[] = {
        {"0", 0, 0},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, 0},
        {"99999999999999999999999", -ERANGE, 0},
        {"007", 0, 7},
        {"", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"+1", -EINVAL, 0},
        {" 1", -EINVAL, 0},
        {"1 ", -EINVAL, 0},
        {"0x1", -EINVAL, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t v = 4711;
        assert_int_equal(num_parse_u64(rows[i].text, 0, UINT64_MAX, &v), rows[i].status);
        assert_int_equal(v, rows[i].status == 0 ? rows[i].value : 4711);
    }
}

static void test_range(void **state)
{
    (void)state;
    uint64_t v = 1;
    assert_int_equal(num_parse_u64("5", 6, 9, &v), -ERANGE);
    assert_int_equal(num_parse_u64("10", 6, 9, &v), -ERANGE);
    assert_int_equal(num_parse_u64("9", 6, 9, &v), 0);
    assert_int_equal(v, 9);
}

UNIT_MAIN(cmocka_unit_test(test_table), cmocka_unit_test(test_range))
