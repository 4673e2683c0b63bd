/* tests/helpers/unit: what every cmocka test includes, in the order that cmocka wants. */
#ifndef CODESPACE_TESTS_UNIT_H
#define CODESPACE_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* UNIT_MAIN(cmocka_unit_test(a), cmocka_unit_test(b)) */
#define UNIT_MAIN(...)                                                                             \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                           \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }

#endif
