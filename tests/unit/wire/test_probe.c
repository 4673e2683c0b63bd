/* wire/probe: the causes, and a result there and back. */
#include "../../helpers/unit.h"
#include "base/str.h"
#include "wire/probe.h"

static void test_causes(void **state)
{
    (void)state;
    assert_string_equal(probe_cause_name(PROBE_NO_BWRAP), "no_bwrap");
    assert_true(strlen(probe_cause_remedy(PROBE_NO_BWRAP)) > 0);
    for (int i = 0; i < PROBE_CAUSE_MAX; i++) {
        assert_true(strlen(probe_cause_what((enum probe_cause)i)) > 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(probe_cause_name((enum probe_cause)i),
                                    probe_cause_name((enum probe_cause)j));
    }
    assert_string_equal(probe_cause_name((enum probe_cause)1000), "other");
    assert_string_equal(probe_cause_name((enum probe_cause) - 1), "other");
}

static void test_there_and_back(void **state)
{
    (void)state;
    struct probe_result p = {.cause = PROBE_NO_PROC,
                             .detail = "bwrap: Can't mount proc \"on\" /newroot/proc\n",
                             .bwrap_path = "/usr/bin/bwrap",
                             .bwrap_version = "0.8.0",
                             .user_namespace = true,
                             .uts_namespace = true,
                             .pid1 = true};
    struct probe_result q;
    struct err e = {0};
    autobuf b = BUF_INIT;
    memset(&q, 0xff, sizeof(q));
    probe_write(&p, &b);
    assert_int_equal(probe_read(buf_bytes(&b), b.len, &q, &e), 0);
    assert_memory_equal(&p, &q, sizeof(p));
    p.works = p.seccomp = p.no_new_privs = true;
    p.cause = PROBE_NONE;
    buf_truncate(&b, 0);
    probe_write(&p, &b);
    assert_int_equal(probe_read(buf_bytes(&b), b.len, &q, &e), 0);
    assert_memory_equal(&p, &q, sizeof(p));
}

static void test_refuses(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"works\":true}",
        "{\"works\":1,\"cause\":\"none\"}",
        "{\"works\":true,\"cause\":\"sunspots\"}",
        "{\"works\":true,\"cause\":\"none\",\"bwrap_version\":"
        "\"0123456789012345678901234567890123\"}",
        "{\"works\":true,\"cause\":\"none\",\"pid1\":\"yes\"}",
        "{\"works\":true,\"cause\":\"none\",\"unknown\":true}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct probe_result q = {.works = true, .detail = "kept"};
        struct err e = {0};
        if (probe_read(bad[i], strlen(bad[i]), &q, &e) != -1)
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(e.code, ERR_PARSE_ERROR);
        assert_string_equal(q.detail, "kept");
    }
}

/* A detail that is too long is cut, not refused. */
static void test_long_detail(void **state)
{
    (void)state;
    autobuf b = BUF_INIT;
    struct probe_result q;
    struct err e = {0};
    buf_puts(&b, "{\"works\":false,\"cause\":\"other\",\"detail\":\"");
    for (int i = 0; i < 2000; i++)
        buf_putc(&b, 'x');
    buf_puts(&b, "\"}");
    assert_int_equal(probe_read(buf_bytes(&b), b.len, &q, &e), 0);
    assert_int_equal(strlen(q.detail), sizeof(q.detail) - 1);
}

UNIT_MAIN(cmocka_unit_test(test_causes), cmocka_unit_test(test_there_and_back),
          cmocka_unit_test(test_refuses), cmocka_unit_test(test_long_detail))
