/* wire/host: one grammar, one canonical form, and the class of every kind of address. */
#include "../../helpers/unit.h"
#include "wire/host.h"

/* Hostile and odd spellings (C11): what they are, or NULL: nobody. */
static void test_spellings(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *canonical;
    } rows[] = {
        {"allowed.test", "allowed.test"},
        {"ALLOWED.Test", "allowed.test"},
        {"allowed.test.", "allowed.test"},
        {"a", "a"},
        {"my_db", "my_db"},
        {"_acme.x-y.test", "_acme.x-y.test"},
        {"xn--bcher-kva.test", "xn--bcher-kva.test"},
        {"r3---sn-a.test", "r3---sn-a.test"},
        {"1.2.3.4.test", "1.2.3.4.test"},
        {"192.0.2.1", "192.0.2.1"},
        {"::1", "::1"},
        {"2001:DB8:0:0::1", "2001:db8::1"},
        {"::ffff:127.0.0.1", "::ffff:127.0.0.1"},
        {"", NULL},
        {".", NULL},
        {"..", NULL},
        {".allowed.test", NULL},
        {"allowed..test", NULL},
        {"allowed.test..", NULL},
        {"-a.test", NULL},
        {"a-.test", NULL},
        {"xn--", NULL},
        {"xn--.test", NULL},
        {"allowed.test@evil.test", NULL},
        {"[allowed.test]", NULL},
        {"[::1]", NULL},
        {"allowed.test:80", NULL},
        {"allowed.test/x", NULL},
        {"allowed.test#x", NULL},
        {"allowed.test%00", NULL},
        {" allowed.test", NULL},
        {"allowed.test ", NULL},
        {"allowed\ttest", NULL},
        {"allowed\r\n.test", NULL},
        {"b\xc3\xbc"
         "cher.test",
         NULL},
        {"allowed\xe3\x80\x82test", NULL}, /* an ideographic full stop */
        {"0x7f.1", NULL},
        {"127.1", NULL},
        {"2130706433", NULL},
        {"0x7f000001", NULL},
        {"0x", NULL},
        {"a.0x", NULL},
        {"0177.0.0.1", NULL},
        {"127.0.0.01", NULL},
        {"127.0.0.1.", NULL},
        {"256.0.0.1", NULL},
        {"1.2.3.4.5", NULL},
        {"example.1", NULL},
        {"fe80::1%eth0", NULL},
        {"::1.", NULL},
        {":::", NULL},
        {"1::2::3", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct host h = {0};
        struct err e = {0};
        int r = host_parse(rows[i].text, strlen(rows[i].text), &h, &e);
        if ((r == 0) != (rows[i].canonical != NULL))
            fail_msg("\"%s\": %d %s", rows[i].text, r, e.message);
        if (r < 0)
            assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        else
            assert_string_equal(h.text, rows[i].canonical);
    }
}

static void test_nul_and_lengths(void **state)
{
    (void)state;
    struct host h = {0};
    char text[300];
    assert_int_equal(host_parse("evil.test\0.allowed.test", 23, &h, NULL), -1);
    assert_int_equal(host_parse("allowed.test\0", 13, &h, NULL), -1);
    memset(text, 'a', sizeof(text));
    assert_int_equal(host_parse(text, 63, &h, NULL), 0);
    assert_int_equal(host_parse(text, 64, &h, NULL), -1);
    assert_int_equal(host_parse(text, 300, &h, NULL), -1);
    for (size_t i = 63; i < sizeof(text); i += 64)
        text[i] = '.';
    assert_int_equal(host_parse(text, 253, &h, NULL), 0);
    assert_int_equal(host_parse(text, 254, &h, NULL), -1);
    text[253] = '.';
    assert_int_equal(host_parse(text, 254, &h, NULL), 0);
    assert_int_equal(h.len, 253);
}

static void test_authorities(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint16_t fallback;
        const char *canonical; /* NULL: refused */
    } rows[] = {
        {"a.test", 80, "a.test:80"},
        {"A.test:8080", 80, "a.test:8080"},
        {"a.test:80", 0, "a.test:80"},
        {"[::1]:443", 0, "[::1]:443"},
        {"[2001:DB8::]", 80, "[2001:db8::]:80"},
        {"127.0.0.1:1", 0, "127.0.0.1:1"},
        {"a.test:65535", 0, "a.test:65535"},
        {"a.test", 0, NULL},
        {"a.test:", 80, NULL},
        {"a.test:0", 80, NULL},
        {"a.test:080", 80, NULL},
        {"a.test:65536", 80, NULL},
        {"a.test:+80", 80, NULL},
        {"a.test:80 ", 80, NULL},
        {"a.test:80:90", 80, NULL},
        {"user@a.test:80", 80, NULL},
        {"[allowed.test]:443", 0, NULL},
        {"[127.0.0.1]:443", 0, NULL},
        {"[::1", 80, NULL},
        {"[::1]x", 80, NULL},
        {"[::1]]:80", 80, NULL},
        {"[]", 80, NULL},
        {"::1", 80, NULL},
        {"::1:80", 80, NULL},
        {":80", 80, NULL},
        {"", 80, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct host h = {0};
        uint16_t port = 0;
        char text[HOST_AUTHORITY_MAX];
        int r = host_parse_authority(rows[i].text, strlen(rows[i].text), rows[i].fallback, &h,
                                     &port, NULL);
        if ((r == 0) != (rows[i].canonical != NULL))
            fail_msg("\"%s\": %d", rows[i].text, r);
        if (r == 0) {
            host_format_authority(&h, port, text);
            assert_string_equal(text, rows[i].canonical);
        }
    }
}

static void test_address_classes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum addr_class class;
    } rows[] = {
        {"1.1.1.1", ADDR_PUBLIC},
        {"9.255.255.255", ADDR_PUBLIC},
        {"172.15.0.1", ADDR_PUBLIC},
        {"172.32.0.1", ADDR_PUBLIC},
        {"100.63.255.255", ADDR_PUBLIC},
        {"100.128.0.0", ADDR_PUBLIC},
        {"223.255.255.255", ADDR_PUBLIC},
        {"2606:4700::1", ADDR_PUBLIC},
        {"0.0.0.0", ADDR_UNSPECIFIED},
        {"0.1.2.3", ADDR_UNSPECIFIED},
        {"::", ADDR_UNSPECIFIED},
        {"127.0.0.1", ADDR_LOOPBACK},
        {"127.255.255.254", ADDR_LOOPBACK},
        {"::1", ADDR_LOOPBACK},
        {"10.0.0.1", ADDR_PRIVATE},
        {"172.16.0.1", ADDR_PRIVATE},
        {"172.31.255.255", ADDR_PRIVATE},
        {"192.168.0.1", ADDR_PRIVATE},
        {"169.254.0.1", ADDR_LINK_LOCAL},
        {"fe80::1", ADDR_LINK_LOCAL},
        {"febf::1", ADDR_LINK_LOCAL},
        {"100.64.0.1", ADDR_CGNAT},
        {"100.127.255.255", ADDR_CGNAT},
        {"169.254.169.254", ADDR_METADATA},
        {"169.254.170.2", ADDR_METADATA},
        {"100.100.100.200", ADDR_METADATA},
        {"168.63.129.16", ADDR_METADATA},
        {"fd00:ec2::254", ADDR_METADATA},
        {"fc00::1", ADDR_UNIQUE_LOCAL},
        {"fdff::1", ADDR_UNIQUE_LOCAL},
        {"::ffff:10.0.0.1", ADDR_MAPPED},
        {"::ffff:1.1.1.1", ADDR_MAPPED},
        {"::7f00:1", ADDR_MAPPED},
        {"2002:7f00:1::", ADDR_MAPPED},
        {"2001::1", ADDR_MAPPED},
        {"64:ff9b::10.0.0.1", ADDR_PRIVATE},
        {"64:ff9b::127.0.0.1", ADDR_LOOPBACK},
        {"64:ff9b::1.1.1.1", ADDR_PUBLIC},
        {"64:ff9b:1::1", ADDR_RESERVED},
        {"224.0.0.1", ADDR_MULTICAST},
        {"239.255.255.255", ADDR_MULTICAST},
        {"ff02::1", ADDR_MULTICAST},
        {"198.18.0.1", ADDR_BENCHMARK},
        {"198.19.255.255", ADDR_BENCHMARK},
        {"192.0.2.1", ADDR_DOCUMENTATION},
        {"203.0.113.1", ADDR_DOCUMENTATION},
        {"2001:db8::1", ADDR_DOCUMENTATION},
        {"3fff::1", ADDR_DOCUMENTATION},
        {"192.0.0.1", ADDR_RESERVED},
        {"240.0.0.1", ADDR_RESERVED},
        {"255.255.255.255", ADDR_RESERVED},
        {"fec0::1", ADDR_RESERVED},
        {"100::1", ADDR_RESERVED},
        {"2001:10::1", ADDR_RESERVED},
        {"4000::1", ADDR_RESERVED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct host h = {0};
        assert_int_equal(host_parse(rows[i].text, strlen(rows[i].text), &h, NULL), 0);
        if (host_addr_class(&h.addr) != rows[i].class)
            fail_msg("%s is %s", rows[i].text, host_class_name(host_addr_class(&h.addr)));
    }
}

static void test_prefixes(void **state)
{
    (void)state;
    static const char *const bad[] = {"",           "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/",
                                      "10.0.0.0/x", "::/129",      "a.test",     "10.0.0.0/8/8"};
    struct net_prefix p = {0};
    struct host in = {0};
    struct host out = {0};
    host_parse("10.2.255.1", 10, &in, NULL);
    host_parse("10.4.0.1", 8, &out, NULL);
    assert_int_equal(host_parse_prefix("10.0.0.0/14", &p, NULL), 0);
    assert_true(host_prefix_has(&p, &in.addr));
    assert_false(host_prefix_has(&p, &out.addr));
    assert_int_equal(host_parse_prefix("10.2.255.1", &p, NULL), 0);
    assert_int_equal(p.bits, 32);
    assert_true(host_prefix_has(&p, &in.addr));
    assert_int_equal(host_parse_prefix("::/0", &p, NULL), 0);
    assert_false(host_prefix_has(&p, &in.addr));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(host_parse_prefix(bad[i], &p, NULL), -1);
}

static void test_localhost(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is;
    } rows[] = {{"localhost", true},   {"LOCALHOST.", true},      {"a.localhost", true},
                {"xlocalhost", false}, {"localhost.test", false}, {"127.0.0.1", false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct host h = {0};
        assert_int_equal(host_parse(rows[i].text, strlen(rows[i].text), &h, NULL), 0);
        assert_int_equal(host_is_localhost(&h), rows[i].is);
    }
}

UNIT_MAIN(cmocka_unit_test(test_spellings), cmocka_unit_test(test_nul_and_lengths),
          cmocka_unit_test(test_authorities), cmocka_unit_test(test_address_classes),
          cmocka_unit_test(test_prefixes), cmocka_unit_test(test_localhost))
