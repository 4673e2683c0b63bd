/* wire/warm: there and back, and every way a message can be broken. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "wire/warm.h"

static void make(struct buf *out)
{
    struct helper_request r = {.tty = true, .keep = true, .cwd = (char *)"/w/sub"};
    strv_add(&r.argv, "sh");
    strv_add(&r.argv, "");
    strv_add(&r.env, "A=");
    strv_add(&r.env, "B=1=2");
    warm_command_write(&r, out);
    strv_fini(&r.argv);
    strv_fini(&r.env);
}

static void test_there_and_back(void **state)
{
    (void)state;
    autobuf bytes = BUF_INIT;
    struct warm_command c;
    struct err e = {0};
    make(&bytes);
    assert_int_equal(warm_command_read(buf_bytes(&bytes), bytes.len, &c, &e), 0);
    assert_true(c.tty && c.keep);
    assert_string_equal(c.cwd, "/w/sub");
    assert_int_equal(c.argv.len, 2);
    assert_string_equal(c.argv.items[0], "sh");
    assert_string_equal(c.argv.items[1], "");
    assert_int_equal(c.env.len, 2);
    assert_string_equal(c.env.items[1], "B=1=2");
    warm_command_fini(&c);
}

static void refuse(const char *bytes, size_t n)
{
    struct warm_command c;
    struct err e = {0};
    assert_int_equal(warm_command_read(bytes, n, &c, &e), -1);
    assert_int_equal(e.code, ERR_PARSE_ERROR);
}

static void test_broken(void **state)
{
    (void)state;
    autobuf bytes = BUF_INIT;
    make(&bytes);
    for (size_t n = 0; n < bytes.len; n++)
        refuse(buf_bytes(&bytes), n);
    for (size_t i = 0; i < 20; i++) {
        autofree char *spoiled = mem_dup(buf_bytes(&bytes), bytes.len);
        spoiled[i] ^= 0x5a;
        refuse(spoiled, bytes.len);
    }
    buf_putc(&bytes, 0);
    refuse(buf_bytes(&bytes), bytes.len);
    autofree char *large = mem_zalloc(WARM_MESSAGE_MAX + 1, 1);
    memcpy(large, buf_bytes(&bytes), 20);
    refuse(large, WARM_MESSAGE_MAX + 1);
}

static void refuse_command(const char *cwd, const char *word, const char *variable)
{
    autobuf bytes = BUF_INIT;
    struct helper_request r = {.cwd = (char *)(uintptr_t)cwd};
    if (word != NULL)
        strv_add(&r.argv, word);
    strv_add(&r.env, variable);
    warm_command_write(&r, &bytes);
    refuse(buf_bytes(&bytes), bytes.len);
    strv_fini(&r.argv);
    strv_fini(&r.env);
}

static void test_no_command(void **state)
{
    (void)state;
    refuse_command("", "sh", "A=1");
    refuse_command("w", "sh", "A=1");
    refuse_command("/w", NULL, "A=1");
    refuse_command("/w", "", "A=1");
    refuse_command("/w", "sh", "A");
    refuse_command("/w", "sh", "=1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_no_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
