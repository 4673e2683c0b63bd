/* base/err: the table is whole, messages are cut visibly, context wraps. */
#include "../../helpers/unit.h"
#include "base/err.h"

#include <errno.h>

static void test_table_is_whole(void **state)
{
    (void)state;
    for (int i = 1; i < ERR_CODE_MAX; i++) {
        const struct err_info *info = err_info((enum err_code)i);
        assert_non_null(info->name);
        assert_true(info->rpc_code < 0);
        assert_true(info->http_status >= 400 && info->http_status < 600);
        assert_true(info->exit_status > 0 && info->exit_status < 125);
        assert_true(strlen(info->manual) > 10);
        assert_int_equal(err_code_of(info->name), i);
    }
    assert_int_equal(err_code_of("NO_SUCH"), ERR_NONE);
    assert_string_equal(err_info((enum err_code)9999)->name, "INTERNAL");
}

static void test_errno_becomes_a_sentence(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(err_sys(&e, ERR_FILE_OPERATION_FAILED, -EACCES, "cannot open %s", "a"), -1);
    assert_int_equal(e.sys, EACCES);
    assert_string_equal(e.message, "cannot open a: Permission denied");
    err_wrap(&e, "workspace %s", "demo");
    assert_string_equal(e.message, "workspace demo: cannot open a: Permission denied");
    assert_int_equal(e.code, ERR_FILE_OPERATION_FAILED);
}

static void test_long_messages_say_that_they_are_cut(void **state)
{
    (void)state;
    static char long_text[4000];
    struct err e = {0};
    memset(long_text, 'x', sizeof(long_text) - 1);
    err_set(&e, ERR_INTERNAL, "%s", long_text);
    assert_string_equal(e.message + strlen(e.message) - 3, "...");
    err_wrap(&e, "more");
    assert_string_equal(e.message + strlen(e.message) - 3, "...");
    err_sys(&e, ERR_INTERNAL, EIO, "%s", long_text);
    assert_string_equal(e.message + strlen(e.message) - 3, "...");
}

static void test_null_err_is_fine(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ERR_INTERNAL, "x"), -1);
    assert_int_equal(err_sys(NULL, ERR_INTERNAL, EIO, "x"), -1);
    assert_int_equal(err_wrap(NULL, "x"), -1);
}

UNIT_MAIN(cmocka_unit_test(test_table_is_whole), cmocka_unit_test(test_errno_becomes_a_sentence),
          cmocka_unit_test(test_long_messages_say_that_they_are_cut),
          cmocka_unit_test(test_null_err_is_fine))
