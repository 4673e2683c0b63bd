/* base/map: against a plain array, through growth and removal. */
#include "../../helpers/unit.h"
#include "base/map.h"
#include "base/mem.h"

#include <stdio.h>

enum { KEYS = 500 };

static void test_random_walk_against_an_array(void **state)
{
    (void)state;
    struct map m = {0};
    void *model[KEYS] = {0};
    size_t live = 0;
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        seed = seed * 1103515245u + 12345u;
        unsigned k = (seed >> 8) % KEYS;
        char key[24];
        snprintf(key, sizeof(key), "key-%u", k);
        if (seed & 0x40000000u) {
            void *value = (void *)(uintptr_t)(round + 1);
            live += model[k] == NULL;
            assert_ptr_equal(map_set(&m, key, value), model[k]);
            model[k] = value;
        } else {
            live -= model[k] != NULL;
            assert_ptr_equal(map_remove(&m, key), model[k]);
            model[k] = NULL;
        }
        assert_ptr_equal(map_get(&m, key), model[k]);
        assert_int_equal(m.used, live);
    }
    size_t pos = 0;
    size_t seen = 0;
    const char *key = NULL;
    while (map_next(&m, &pos, &key) != NULL)
        seen++;
    assert_int_equal(seen, live);
    assert_true(m.cap <= 4 * KEYS);
    map_fini(&m);
}

static void test_empty(void **state)
{
    (void)state;
    struct map m = {0};
    size_t pos = 0;
    assert_null(map_get(&m, "x"));
    assert_null(map_remove(&m, "x"));
    assert_null(map_next(&m, &pos, NULL));
    map_fini(&m);
}

UNIT_MAIN(cmocka_unit_test(test_random_walk_against_an_array), cmocka_unit_test(test_empty))
