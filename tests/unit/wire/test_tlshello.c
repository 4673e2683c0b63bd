/* wire/tlshello: the name in a hello, however it is cut, and what is no hello. */
#include "../../helpers/unit.h"
#include "base/buf.h"
#include "wire/tlshello.h"

static void put_number(struct buf *b, size_t v, size_t bytes)
{
    while (bytes-- > 0)
        buf_putc(b, (char)(v >> 8 * bytes));
}

static void put_vector(struct buf *out, const struct buf *content, size_t bytes)
{
    put_number(out, content->len, bytes);
    buf_put(out, buf_bytes(content), content->len);
}

/* An extension with a list of one name. */
static void put_sni(struct buf *out, const char *name, size_t n)
{
    autobuf list = BUF_INIT;
    autobuf value = BUF_INIT;
    put_number(&list, 0, 1);
    put_number(&list, n, 2);
    buf_put(&list, name, n);
    put_vector(&value, &list, 2);
    put_number(out, 0, 2);
    put_vector(out, &value, 2);
}

/* The handshake message with these extensions. */
static void put_hello(struct buf *out, const struct buf *extensions)
{
    autobuf body = BUF_INIT;
    for (int i = 0; i < 34; i++)
        buf_putc(&body, 3);
    put_number(&body, 0, 1);
    put_number(&body, 2, 2);
    put_number(&body, 0x1301, 2);
    put_number(&body, 1, 1);
    put_number(&body, 0, 1);
    put_vector(&body, extensions, 2);
    put_number(out, 1, 1);
    put_vector(out, &body, 3);
}

/* Cut into records of `size` bytes. */
static void put_records(struct buf *out, const struct buf *message, size_t size)
{
    for (size_t at = 0; at < message->len; at += size) {
        size_t n = message->len - at < size ? message->len - at : size;
        put_number(out, 22, 1);
        put_number(out, 0x0301, 2);
        put_number(out, n, 2);
        buf_put(out, buf_bytes(message) + at, n);
    }
}

static void build(struct buf *out, const char *name, size_t n, size_t record)
{
    autobuf extensions = BUF_INIT;
    autobuf hello = BUF_INIT;
    put_number(&extensions, 0x002b, 2);
    put_number(&extensions, 0, 2);
    if (name != NULL)
        put_sni(&extensions, name, n);
    put_hello(&hello, &extensions);
    put_records(out, &hello, record);
}

static void test_name(void **state)
{
    (void)state;
    for (size_t record = 1; record < 200; record += 13) {
        autobuf b = BUF_INIT;
        struct tlshello hello = {0};
        build(&b, "Www.A.test", 10, record);
        assert_int_equal(tlshello_parse(buf_bytes(&b), b.len, &hello), 1);
        assert_int_equal(hello.name, TLSHELLO_NAME);
        assert_string_equal(hello.host.text, "www.a.test");
        for (size_t n = 0; n < b.len; n++)
            assert_int_equal(tlshello_parse(buf_bytes(&b), n, &hello), 0);
        buf_puts(&b, "\x17\x03\x03"); /* early data follows */
        assert_int_equal(tlshello_parse(buf_bytes(&b), b.len, &hello), 1);
    }
}

static void test_no_name_and_bad_names(void **state)
{
    (void)state;
    struct tlshello hello = {0};
    autobuf none = BUF_INIT;
    autobuf bad = BUF_INIT;
    autobuf twice = BUF_INIT;
    autobuf message = BUF_INIT;
    autobuf records = BUF_INIT;
    build(&none, NULL, 0, 1000);
    assert_int_equal(tlshello_parse(buf_bytes(&none), none.len, &hello), 1);
    assert_int_equal(hello.name, TLSHELLO_NONE);
    build(&bad, "evil.test\0.a.test", 17, 1000);
    assert_int_equal(tlshello_parse(buf_bytes(&bad), bad.len, &hello), 1);
    assert_int_equal(hello.name, TLSHELLO_BAD);
    put_sni(&twice, "a.test", 6);
    put_sni(&twice, "b.test", 6);
    put_hello(&message, &twice);
    put_records(&records, &message, 1000);
    assert_int_equal(tlshello_parse(buf_bytes(&records), records.len, &hello), 1);
    assert_int_equal(hello.name, TLSHELLO_BAD);
}

static void test_no_hello(void **state)
{
    (void)state;
    struct tlshello hello = {0};
    autobuf cut = BUF_INIT;
    autobuf message = BUF_INIT;
    autobuf records = BUF_INIT;
    assert_int_equal(tlshello_parse("GET / HTTP/1.1", 14, &hello), -1);
    assert_int_equal(tlshello_parse("SSH-2.0", 7, &hello), -1);
    assert_int_equal(tlshello_parse("\x16\x02", 2, &hello), -1);
    assert_int_equal(tlshello_parse("\x16\x03\x01\x00\x00\x16", 6, &hello), -1);
    assert_int_equal(tlshello_parse("\x16\x03\x01\x00\x04\x02\x00\x00\x00", 9, &hello), -1);
    assert_int_equal(tlshello_parse("\x16\x03\x01\x00\x04\x01\xff\xff\xff", 9, &hello), -1);
    put_number(&cut, 0, 2); /* an extension that is longer than what is there */
    put_number(&cut, 100, 2);
    put_hello(&message, &cut);
    put_records(&records, &message, 1000);
    assert_int_equal(tlshello_parse(buf_bytes(&records), records.len, &hello), -1);
}

UNIT_MAIN(cmocka_unit_test(test_name), cmocka_unit_test(test_no_name_and_bad_names),
          cmocka_unit_test(test_no_hello))
