/* proxy/sniff: what is held back, what passes, and which name is told. */
#include "../../helpers/unit.h"
#include "proxy/sniff.h"

#define HEAD "GET / HTTP/1.1\r\n"

static void test_first_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum sniff_result result;
        const char *host;
    } rows[] = {
        {"", SNIFF_MORE, NULL},
        {"G", SNIFF_MORE, NULL},
        {"GET /", SNIFF_MORE, NULL},
        {HEAD, SNIFF_MORE, NULL},
        {HEAD "Host: a.test\r\n", SNIFF_MORE, NULL},
        {HEAD "Host: A.Test:8080\r\n\r\n", SNIFF_NAMED, "a.test"},
        {HEAD "Host: a.test\r\n\r\nbody", SNIFF_NAMED, "a.test"},
        {"GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", SNIFF_NAMED, "a.test"},
        {"GET / HTTP/1.0\r\n\r\n", SNIFF_UNNAMED, NULL},
        {HEAD "\r\n", SNIFF_UNNAMED, NULL},
        {HEAD "Host: a.test\r\nHost: b.test\r\n\r\n", SNIFF_UNNAMED, NULL},
        {HEAD "Host: evil@a.test\r\n\r\n", SNIFF_UNNAMED, NULL},
        {"GET / HTTP/1.1\nHost: a.test\n\n", SNIFF_UNNAMED, NULL},
        {"GET key\r\n", SNIFF_OTHER, NULL}, /* a key-value store */
        {"GETX", SNIFF_OTHER, NULL},
        {"SSH-2.0-x\r\n", SNIFF_OTHER, NULL},
        {"EHLO a.test\r\n", SNIFF_OTHER, NULL},
        {"*1\r\n$4\r\nPING\r\n", SNIFF_OTHER, NULL},
        {"\x16\x03", SNIFF_MORE, NULL},
        {"\x16\x02", SNIFF_OTHER, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sniff s = {0};
        if (sniff_first_bytes(rows[i].text, strlen(rows[i].text), &s) != rows[i].result)
            fail_msg("%s", rows[i].text);
        if (rows[i].host != NULL)
            assert_string_equal(s.host.text, rows[i].host);
    }
}

static void test_a_line_without_end_passes(void **state)
{
    (void)state;
    static char text[10000];
    struct sniff s = {0};
    memset(text, 'a', sizeof(text));
    memcpy(text, "GET ", 4);
    assert_int_equal(sniff_first_bytes(text, 4000, &s), SNIFF_MORE);
    assert_int_equal(sniff_first_bytes(text, sizeof(text), &s), SNIFF_OTHER);
}

UNIT_MAIN(cmocka_unit_test(test_first_bytes), cmocka_unit_test(test_a_line_without_end_passes))
