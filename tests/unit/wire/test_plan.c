/* wire/plan: there and back, and every way a file can be broken. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "wire/plan.h"

static void make(struct plan *p)
{
    *p = (struct plan){.tty = true, .keep = true, .own_network = true, .namespaces = true};
    p->bwrap = mem_strdup("/usr/bin/bwrap");
    p->workspace = mem_strdup("/w");
    p->cwd = mem_strdup("/w/sub");
    strv_add(&p->argv, "sh");
    strv_add(&p->argv, "");
    strv_add(&p->argv, "-c");
    strv_add(&p->env, "A=b");
    strv_add(&p->sources, "");
    strv_add(&p->sources, "/w");
    strv_add(&p->sources, "=a text\n");
    strv_add(&p->guards, "/w/.git");
    strv_add(&p->guards, "");
    strv_add(&p->masks, "f/w/secret");
    strv_add(&p->masks, "r/w/a/.git");
    p->limits[PLAN_LIMIT_FILE_SIZE] = 1ull << 40;
    buf_put(&p->filter, "01234567", 8);
    buf_put(&p->args, "--dev\0/dev", 11);
}

static void test_there_and_back(void **state)
{
    (void)state;
    struct plan p, q;
    struct err e = {0};
    autobuf a = BUF_INIT;
    autobuf b = BUF_INIT;
    make(&p);
    plan_write(&p, &a);
    assert_int_equal(plan_read(buf_bytes(&a), a.len, &q, &e), 0);
    assert_true(q.tty && !q.report && q.keep && q.own_network && !q.zygote && q.namespaces);
    assert_string_equal(q.cwd, "/w/sub");
    assert_int_equal(q.argv.len, 3);
    assert_string_equal(q.argv.items[1], "");
    assert_int_equal(q.guards.len, 2);
    assert_int_equal(q.masks.len, 2);
    assert_int_equal(q.limits[PLAN_LIMIT_FILE_SIZE], 1ull << 40);
    assert_int_equal(q.limits[PLAN_LIMIT_CPU_SECONDS], 0);
    /* bubblewrap reads from there to the end of the file */
    assert_int_equal(a.len - q.args_at, 11);
    assert_memory_equal(buf_bytes(&a) + q.args_at, "--dev\0/dev", 11);
    plan_write(&q, &b);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(buf_bytes(&a), buf_bytes(&b), a.len);
    plan_fini(&p);
    plan_fini(&q);
}

/* Every proper prefix and every longer file is refused. */
static void test_lengths(void **state)
{
    (void)state;
    struct plan p, q;
    struct err e = {0};
    autobuf a = BUF_INIT;
    make(&p);
    plan_write(&p, &a);
    for (size_t n = 0; n < a.len; n++) {
        autofree char *copy = mem_dup(buf_bytes(&a), n);
        assert_int_equal(plan_read(copy, n, &q, &e), -1);
        assert_int_equal(e.code, ERR_PARSE_ERROR);
    }
    buf_putc(&a, '\0');
    assert_int_equal(plan_read(buf_bytes(&a), a.len, &q, &e), -1);
    plan_fini(&p);
}

/* Any one byte of the head changed is refused or changes only a flag. */
static void test_head_bytes(void **state)
{
    (void)state;
    struct plan p, q;
    struct err e = {0};
    autobuf a = BUF_INIT;
    make(&p);
    plan_write(&p, &a);
    char *bytes = a.data + a.start;
    for (size_t i = 0; i < 48; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] = (char)(bytes[i] ^ (1 << bit));
            int rc = plan_read(bytes, a.len, &q, &e);
            if (rc == 0) {
                assert_int_equal(i, 8);
                plan_fini(&q);
            }
            bytes[i] = (char)(bytes[i] ^ (1 << bit));
        }
    }
    plan_fini(&p);
}

static void refuse(struct plan *p, const char *word)
{
    struct plan q = {0};
    struct err e = {0};
    autobuf a = BUF_INIT;
    plan_write(p, &a);
    assert_int_equal(plan_read(buf_bytes(&a), a.len, &q, &e), -1);
    if (strstr(e.message, word) == NULL)
        fail_msg("%s: %s", word, e.message);
    assert_null(q.bwrap);
    plan_fini(p);
}

static void test_content(void **state)
{
    (void)state;
    struct plan p;
    make(&p);
    p.report = p.zygote = true;
    refuse(&p, "exclude each other");
    make(&p);
    p.cwd[0] = 'x';
    refuse(&p, "paths");
    make(&p);
    strv_fini(&p.argv);
    refuse(&p, "argv");
    make(&p);
    strv_add(&p.sources, "relative");
    refuse(&p, "sources");
    make(&p);
    strv_add(&p.guards, "/w/.codex");
    refuse(&p, "guards");
    make(&p);
    strv_add(&p.guards, "a/b");
    strv_add(&p.guards, "");
    refuse(&p, "guards");
    make(&p);
    strv_add(&p.masks, "x/w");
    refuse(&p, "masks");
    make(&p);
    strv_add(&p.masks, "frelative");
    refuse(&p, "masks");
    make(&p);
    buf_putc(&p.filter, 'x');
    refuse(&p, "filter");
    make(&p);
    buf_truncate(&p.filter, 0);
    refuse(&p, "filter");
    make(&p);
    buf_putc(&p.args, 'x');
    refuse(&p, "args");
    make(&p);
    for (unsigned i = 0; i < PLAN_SOURCES_MAX; i++)
        strv_add(&p.sources, "");
    refuse(&p, "sources");
}

UNIT_MAIN(cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_lengths),
          cmocka_unit_test(test_head_bytes), cmocka_unit_test(test_content))
