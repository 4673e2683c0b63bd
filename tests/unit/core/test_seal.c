/* core/seal: signatures and their comparison. */
#include "../../helpers/unit.h"
#include "core/seal.h"

#include <string.h>

/* RFC 4231, test case 2. */
static void test_known_answer(void **state)
{
    (void)state;
    char hex[SEAL_HEX + 1];
    seal_sign("Jefe", 4, "what do ya want for nothing?", hex);
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void test_differs(void **state)
{
    (void)state;
    char one[SEAL_HEX + 1], other[SEAL_HEX + 1];
    seal_sign("key", 3, "text", one);
    seal_sign("kez", 3, "text", other);
    assert_string_not_equal(one, other);
    seal_sign("key", 3, "texu", other);
    assert_string_not_equal(one, other);
    seal_sign("key", 3, "text", other);
    assert_true(seal_equal(one, other, SEAL_HEX));
    other[SEAL_HEX - 1] ^= 1;
    assert_false(seal_equal(one, other, SEAL_HEX));
    assert_true(seal_equal(one, other, SEAL_HEX - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answer),
        cmocka_unit_test(test_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
