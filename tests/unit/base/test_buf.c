/* base/buf: appending, consuming from the front, giving storage back. */
#include "../../helpers/unit.h"
#include "base/buf.h"

static void test_append_and_consume(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%d,", i);
    assert_memory_equal(buf_bytes(&b), "0,1,2,", 6);
    size_t len = b.len;
    buf_consume(&b, 4);
    assert_int_equal(b.len, len - 4);
    assert_memory_equal(buf_bytes(&b), "2,3,", 4);
    buf_consume(&b, b.len);
    assert_int_equal(b.start, 0);
}

static void test_reserve_reuses_the_front(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    buf_put(&b, "0123456789012345678901234567890123456789", 40);
    buf_consume(&b, 39);
    size_t cap = b.cap;
    buf_reserve(&b, 60);
    assert_int_equal(b.cap, cap);
    assert_memory_equal(buf_bytes(&b), "9", 1);
}

static void test_reset_gives_large_storage_back(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    memset(buf_reserve(&b, 100000), 'x', 100000);
    buf_commit(&b, 100000);
    buf_reset(&b, 4096);
    assert_null(b.data);
    buf_puts(&b, "small");
    buf_reset(&b, 4096);
    assert_non_null(b.data);
    assert_int_equal(b.len, 0);
}

static void test_steal_and_cstr(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    assert_string_equal(buf_bytes(&b), "");
    buf_puts(&b, "text");
    assert_string_equal(buf_cstr(&b), "text");
    char *s = buf_steal(&b);
    assert_string_equal(s, "text");
    free(s);
    assert_int_equal(b.len, 0);
}

UNIT_MAIN(cmocka_unit_test(test_append_and_consume),
          cmocka_unit_test(test_reserve_reuses_the_front),
          cmocka_unit_test(test_reset_gives_large_storage_back),
          cmocka_unit_test(test_steal_and_cstr))
