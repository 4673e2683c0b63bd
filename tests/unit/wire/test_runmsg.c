/* wire/runmsg: every message there and back, cut, doubled, out of range, of another version. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "wire/runmsg.h"
#include "wire/runmsg_fields.h"

static void fill_exec(struct runmsg_exec *x)
{
    x->workspace.id = mem_strdup("demo");
    x->workspace.root = mem_strdup("/w");
    x->workspace.ino = UINT64_MAX;
    x->workspace.mounts.items = mem_zalloc(2, sizeof(struct runmsg_mount));
    x->workspace.mounts.n = 2;
    struct runmsg_mount *mounts = x->workspace.mounts.items;
    mounts[0].path = mem_strdup("/a");
    mounts[1].path = mem_strdup("/b");
    mounts[1].writable = true;
    strv_add(&x->argv, "sh");
    strv_add(&x->argv, "");
    x->rows = 65535;
    x->has_stdin = true;
    buf_put(&x->stdin_data, "\0\xff\n", 3);
    x->has_first = true;
    x->first.until_exit = true;
    x->hold_ms = 20;
}

static void fill_page(struct runmsg_page *p)
{
    p->status.process_id = mem_strdup("proc-1");
    p->status.exit_code = 137;
    strv_add(&p->status.removed, ".git");
    buf_put(&p->bytes, "\x00\xc3", 2);
    p->n_bytes = 2;
    p->cursor = 12345678901;
}

/* A message of that kind with some content. */
static void make(struct runmsg *m, enum runmsg_kind kind, enum runmsg_op op)
{
    *m = (struct runmsg){.request_id = kind == RUNMSG_EVENT ? NULL : mem_strdup("r-7")};
    void *data = runmsg_new_data(m, kind, op);
    if (kind == RUNMSG_EVENT) {
        ((struct runmsg_status *)data)->process_id = mem_strdup("proc-1");
    } else if (kind == RUNMSG_REQUEST && op == RUNMSG_EXEC) {
        fill_exec(data);
    } else if (kind == RUNMSG_RESPONSE && op == RUNMSG_READ) {
        fill_page(data);
    } else if (kind == RUNMSG_RESPONSE && op == RUNMSG_EXEC) {
        struct runmsg_started *s = data;
        s->process_id = mem_strdup("proc-1");
        s->has_page = true;
        fill_page(&s->page);
    } else if (kind == RUNMSG_RESPONSE && op == RUNMSG_LIST) {
        struct runmsg_listing *l = data;
        l->items.items = mem_zalloc(1, sizeof(struct runmsg_status));
        l->items.n = 1;
        ((struct runmsg_status *)l->items.items)->process_id = mem_strdup("p");
    } else if (op == RUNMSG_RULES && kind == RUNMSG_REQUEST) {
        *(struct runmsg_rules *)data = (struct runmsg_rules){mem_strdup("w"), mem_strdup("{}")};
    } else if (op == RUNMSG_RULES) {
        struct runmsg_ruled *r = data;
        strv_add(&r->changed, "proc-1");
        strv_add(&r->others, "proc-2");
        r->why = mem_strdup("it was not there");
    } else {
        struct runmsg_id *first = data; /* most begin with a string that must be there */
        if (op == RUNMSG_HELLO && kind == RUNMSG_RESPONSE)
            ((struct runmsg_welcome *)data)->worker_id = mem_strdup("w");
        else if (op != RUNMSG_LIST && op != RUNMSG_PING && !(op == RUNMSG_PROBE && kind == 0) &&
                 !(kind == RUNMSG_RESPONSE &&
                   (op >= RUNMSG_WRITE && op != RUNMSG_PROBE && op != RUNMSG_LIST)))
            first->process_id = mem_strdup("x");
    }
}

static void each(void (*check)(const char *text, size_t n))
{
    for (int kind = 0; kind <= RUNMSG_EVENT; kind++) {
        for (int op = 0; op < (kind == RUNMSG_EVENT ? 1 : RUNMSG_OP_MAX); op++) {
            struct runmsg m;
            autobuf text = BUF_INIT;
            make(&m, (enum runmsg_kind)kind,
                 kind == RUNMSG_EVENT ? RUNMSG_OP_MAX : (enum runmsg_op)op);
            runmsg_write(&m, &text);
            check(buf_cstr(&text), text.len);
            runmsg_fini(&m);
        }
    }
}

static void check_round_trip(const char *text, size_t n)
{
    struct runmsg m;
    struct err e = {0};
    autobuf again = BUF_INIT;
    int rc = runmsg_read(text, n, &m, &e);
    if (rc != 0)
        fail_msg("%s: %s", text, e.message);
    runmsg_write(&m, &again);
    assert_int_equal(again.len, n);
    assert_memory_equal(buf_bytes(&again), text, n);
    runmsg_fini(&m);
}

static void check_truncated(const char *text, size_t n)
{
    for (size_t cut = 0; cut < n; cut++) {
        struct runmsg m;
        struct err e = {0};
        assert_int_equal(runmsg_read(text, cut, &m, &e), -1);
        assert_int_not_equal(e.code, ERR_NONE);
        runmsg_fini(&m);
    }
}

/* Two in one frame, and one byte changed at each place: refused or read, never worse. */
static void check_damaged(const char *text, size_t n)
{
    struct runmsg m;
    struct err e = {0};
    autobuf twice = BUF_INIT;
    buf_put(&twice, text, n);
    buf_put(&twice, text, n);
    assert_int_equal(runmsg_read(buf_bytes(&twice), twice.len, &m, &e), -1);
    runmsg_fini(&m);
    for (size_t i = 0; i < n; i++) {
        autofree char *copy = mem_dup(text, n);
        copy[i] ^= 0x11;
        int rc = runmsg_read(copy, n, &m, &e);
        assert_true(rc >= -1 && rc <= 1);
        runmsg_fini(&m);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    each(check_round_trip);
}

static void test_truncated(void **state)
{
    (void)state;
    each(check_truncated);
}

static void test_damaged(void **state)
{
    (void)state;
    each(check_damaged);
}

static void test_rows(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rc;
        enum err_code code;
    } rows[] = {
        {"{\"protocol\":4,\"kind\":\"request\",\"request_id\":\"a\",\"x\":1}", 1, 0},
        {"{\"protocol\":6}", 1, 0},
        {"{\"protocol\":\"5\"}", -1, ERR_INVALID_REQUEST},
        {"{}", -1, ERR_INVALID_REQUEST},
        {"[]", -1, ERR_INVALID_REQUEST},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"\",\"op\":{}}", -1,
         ERR_INVALID_REQUEST},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"fly\","
         "\"data\":{}}}",
         -1, ERR_METHOD_NOT_FOUND},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"ping\","
         "\"data\":{\"x\":1}}}",
         -1, ERR_INVALID_REQUEST},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"ping\","
         "\"data\":{}},\"more\":1}",
         -1, ERR_INVALID_REQUEST},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"ping\","
         "\"data\":{}}}",
         0, 0},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"signal\","
         "\"data\":{\"process_id\":\"p\",\"signal\":65}}}",
         -1, ERR_INVALID_REQUEST},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"signal\","
         "\"data\":{\"process_id\":\"p\",\"signal\":-1}}}",
         -1, ERR_INVALID_REQUEST},
        {"{\"protocol\":5,\"kind\":\"event\",\"event\":{\"type\":\"other\",\"data\":{}}}", -1,
         ERR_INVALID_REQUEST},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct runmsg m;
        struct err e = {0};
        assert_int_equal(runmsg_read(rows[i].text, strlen(rows[i].text), &m, &e), rows[i].rc);
        assert_int_equal(e.code, rows[i].code);
        if (i == 0)
            assert_string_equal(m.request_id, "a"); /* for the answer */
        runmsg_fini(&m);
    }
}

/* The sender's limits are the reader's: what is too long is named. */
static void test_limits(void **state)
{
    (void)state;
    struct runmsg m, back;
    struct err e = {0};
    autobuf text = BUF_INIT;
    make(&m, RUNMSG_REQUEST, RUNMSG_EXEC);
    struct runmsg_exec *x = m.data;
    char *big = mem_zalloc(RUNMSG_STRING_MAX + 2, 1);
    memset(big, 'x', RUNMSG_STRING_MAX + 1);
    strv_add_take(&x->argv, big);
    runmsg_write(&m, &text);
    assert_int_equal(runmsg_read(buf_bytes(&text), text.len, &back, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_non_null(strstr(e.message, "argv"));
    assert_string_equal(back.request_id, "r-7");
    runmsg_fini(&back);
    runmsg_fini(&m);
}

static void test_failure(void **state)
{
    (void)state;
    struct runmsg back;
    struct err e = {0};
    autobuf text = BUF_INIT;
    struct runmsg m = {.kind = RUNMSG_RESPONSE, .request_id = mem_strdup("q"), .failed = true};
    err_set(&m.failure, ERR_STDIN_FULL, "a \"b\" \x01 c");
    m.failure.sys = 7;
    runmsg_write(&m, &text);
    assert_int_equal(runmsg_read(buf_bytes(&text), text.len, &back, &e), 0);
    assert_true(back.failed);
    assert_int_equal(back.failure.code, ERR_STDIN_FULL);
    assert_int_equal(back.failure.sys, 7);
    assert_string_equal(back.failure.message, m.failure.message);
    runmsg_fini(&back);
    runmsg_fini(&m);
}

/* Behind the object or, from one who does not know of that, as base64 in it. */
static void test_large_pages(void **state)
{
    (void)state;
    struct runmsg m = {.request_id = mem_strdup("r-1")}, back;
    struct err e;
    autobuf text = BUF_INIT;
    struct runmsg_page *page = runmsg_new_data(&m, RUNMSG_RESPONSE, RUNMSG_READ);
    for (unsigned i = 0; i < 262144; i++)
        buf_putc(&page->bytes, (char)(i * 2654435761u >> 13));
    page->n_bytes = page->bytes.len;
    page->cursor = 262144;
    page->status.process_id = mem_strdup("proc-1");
    runmsg_write(&m, &text);
    assert_int_equal(runmsg_read(buf_bytes(&text), text.len, &back, &e), 0);
    const struct runmsg_page *got = back.data;
    assert_int_equal(got->bytes.len, 262144);
    assert_memory_equal(buf_bytes(&got->bytes), buf_bytes(&page->bytes), 262144);
    assert_int_equal(got->cursor, 262144);
    runmsg_fini(&back);
    runmsg_fini(&m);
    char long_text[1025];
    memset(long_text, 'A', 1024);
    long_text[1024] = '\0';
#define PAGE(data)                                                                                 \
    "{\"protocol\":5,\"kind\":\"response\",\"request_id\":\"a\",\"ok\":true,\"result\":{"          \
    "\"type\":\"read\",\"data\":{" data "\"status\":{\"process_id\":\"p\"}}}}"
    static const struct {
        const char *before, *after;
        int rc;
    } rows[] = {
        {PAGE("\"bytes\":\"%s%s\","), "", 0},
        {PAGE("\"bytes\":\"%s%s\","), "\\u0041AAA", 0},
        {PAGE("\"bytes\":\"%s%s\","), "AAA", -1},
        {PAGE("\"bytes\":\"%s%s\","), "AA=A", -1},
        {PAGE("\"bytes\":\"%s%s\","), "A \xff/", -1},
        {PAGE("\"bytes\":\"%s\",\"bytes\":\"AAA%s\","), "A", -1},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"ping\","
         "\"data\":{"
         "\"bytes\":\"%s%s\"}}}",
         "", -1},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"bytes\":\"%s%s\",\"op\":{"
         "\"op\":"
         "\"ping\",\"data\":{}}}",
         "", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *at = strstr(rows[i].before, "%s");
        const char *second = strstr(at + 2, "%s");
        autofree char *whole =
            mem_printf("%.*s%s%.*s%s%s", (int)(at - rows[i].before), rows[i].before, long_text,
                       (int)(second - at - 2), at + 2, rows[i].after, second + 2);
        assert_int_equal(runmsg_read(whole, strlen(whole), &back, &e), rows[i].rc);
        runmsg_fini(&back);
    }
}

/* What stands behind an object: of a page, and as many as it says; nothing of anything else. */
static void test_bytes_behind(void **state)
{
    (void)state;
#define READ(data)                                                                                 \
    "{\"protocol\":5,\"kind\":\"response\",\"request_id\":\"a\",\"ok\":true,\"result\":{"          \
    "\"type\":\"read\",\"data\":{" data "\"status\":{\"process_id\":\"p\"}}}}"
    static const struct {
        const char *text;
        const char *behind; /* NULL = not even the NUL */
        size_t n;
        int rc;
    } rows[] = {
        {READ("\"n_bytes\":3,"), "a\0b", 3, 0},
        {READ("\"n_bytes\":3,"), "a\0bc", 4, -1},
        {READ("\"n_bytes\":3,"), "a\0", 2, -1},
        {READ("\"n_bytes\":3,"), "", 0, -1},
        {READ("\"n_bytes\":3,"), NULL, 0, -1},
        {READ(""), "abc", 3, -1},
        {READ(""), "", 0, -1},
        {READ(""), NULL, 0, 0},
        {READ("\"bytes\":\"AAAA\","), NULL, 0, 0},
        {READ("\"bytes\":\"AAAA\",\"n_bytes\":3,"), NULL, 0, -1},
        {READ("\"bytes\":\"AAAA\",\"n_bytes\":3,"), "abc", 3, -1},
        {"{\"protocol\":5,\"kind\":\"request\",\"request_id\":\"a\",\"op\":{\"op\":\"ping\","
         "\"data\":{}}}",
         "abc", 3, -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct runmsg m;
        struct err e = {0};
        autobuf text = BUF_INIT;
        buf_puts(&text, rows[i].text);
        if (rows[i].behind != NULL)
            buf_putc(&text, '\0');
        buf_put(&text, rows[i].behind, rows[i].n);
        assert_int_equal(runmsg_read(buf_bytes(&text), text.len, &m, &e), rows[i].rc);
        assert_int_equal(e.code != ERR_NONE, rows[i].rc != 0);
        runmsg_fini(&m);
    }
}

UNIT_MAIN(cmocka_unit_test(test_bytes_behind), cmocka_unit_test(test_large_pages),
          cmocka_unit_test(test_round_trip), cmocka_unit_test(test_truncated),
          cmocka_unit_test(test_damaged), cmocka_unit_test(test_rows),
          cmocka_unit_test(test_limits), cmocka_unit_test(test_failure))
