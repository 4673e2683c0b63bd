/* wire/dns: queries and answers both ways, and messages that are not what they seem. */
#include "../../helpers/unit.h"
#include "wire/dns.h"

#include <errno.h>

static struct host host_of(const char *text)
{
    struct host h = {0};
    assert_int_equal(host_parse(text, strlen(text), &h, NULL), 0);
    return h;
}

static void test_query_round_trip(void **state)
{
    (void)state;
    struct host name = host_of("a.example.test");
    struct dns_query q = {0};
    autobuf b = BUF_INIT;
    dns_query_write(0x1234, &name, DNS_AAAA, &b);
    assert_int_equal(dns_query_parse(buf_bytes(&b), b.len, &q), 0);
    assert_int_equal(q.id, 0x1234);
    assert_int_equal(q.type, DNS_AAAA);
    assert_true(q.has_host && q.recursion_desired);
    assert_string_equal(q.host.text, "a.example.test");
    for (size_t n = 0; n < b.len; n++)
        assert_true(dns_query_parse(buf_bytes(&b), n, &q) < 0);
}

static void test_answer_round_trip(void **state)
{
    (void)state;
    struct host name = host_of("a.test");
    const struct net_addr addr = {4, {198, 18, 0, 7}};
    struct dns_query q = {0};
    struct dns_answer a = {0};
    autobuf query = BUF_INIT;
    autobuf answer = BUF_INIT;
    autobuf none = BUF_INIT;
    dns_query_write(7, &name, DNS_A, &query);
    assert_int_equal(dns_query_parse(buf_bytes(&query), query.len, &q), 0);
    dns_answer_write(&q, DNS_NOERROR, &addr, 30, &answer);
    assert_int_equal(dns_answer_parse(buf_bytes(&answer), answer.len, 7, &name, DNS_A, &a), 0);
    assert_int_equal(a.n_addrs, 1);
    assert_memory_equal(&a.addrs[0], &addr, sizeof(addr));
    assert_int_equal(a.ttl_s, 30);
    dns_answer_write(&q, DNS_NXDOMAIN, NULL, 0, &none);
    assert_int_equal(dns_answer_parse(buf_bytes(&none), none.len, 7, &name, DNS_A, &a), 0);
    assert_int_equal(a.rcode, DNS_NXDOMAIN);
    assert_int_equal(a.n_addrs, 0);
}

/* Answers to something else are nobody's. */
static void test_answers_to_others(void **state)
{
    (void)state;
    struct host name = host_of("a.test");
    struct host other = host_of("b.test");
    struct dns_query q = {0};
    struct dns_answer a = {0};
    autobuf query = BUF_INIT;
    autobuf answer = BUF_INIT;
    dns_query_write(7, &name, DNS_A, &query);
    assert_int_equal(dns_query_parse(buf_bytes(&query), query.len, &q), 0);
    dns_answer_write(&q, DNS_NOERROR, NULL, 0, &answer);
    const char *d = buf_bytes(&answer);
    assert_int_equal(dns_answer_parse(d, answer.len, 8, &name, DNS_A, &a), -EBADMSG);
    assert_int_equal(dns_answer_parse(d, answer.len, 7, &other, DNS_A, &a), -EBADMSG);
    assert_int_equal(dns_answer_parse(d, answer.len, 7, &name, DNS_AAAA, &a), -EBADMSG);
    assert_int_equal(dns_answer_parse(buf_bytes(&query), query.len, 7, &name, DNS_A, &a), -EBADMSG);
}

#define HEADER(answers) "\0\7\201\200\0\1\0" answers "\0\0\0\0"
#define QUESTION "\1a\4test\0\0\1\0\1"

static int parse(const char *data, size_t n, struct dns_answer *ret)
{
    struct host name = host_of("a.test");
    return dns_answer_parse(data, n, 7, &name, DNS_A, ret);
}

static void test_aliases_in_any_order(void **state)
{
    (void)state;
    /* b.test A, then a.test CNAME b.test: the address is used once the alias is known. */
    static const char data[] = HEADER("\2") QUESTION "\1b\300\16\0\1\0\1\0\0\0\11\0\4\1\2\3\4"
                                                     "\300\14\0\5\0\1\0\0\0\5\0\4\1b\300\16";
    struct dns_answer a = {0};
    assert_int_equal(parse(data, sizeof(data) - 1, &a), 0);
    assert_int_equal(a.n_addrs, 1);
    assert_int_equal(a.addrs[0].bytes[3], 4);
    assert_int_equal(a.ttl_s, 5);
}

static void test_records_of_others_are_passed_over(void **state)
{
    (void)state;
    static const char data[] = HEADER("\1") QUESTION "\1b\300\16\0\1\0\1\0\0\0\11\0\4\1\2\3\4";
    struct dns_answer a = {0};
    assert_int_equal(parse(data, sizeof(data) - 1, &a), 0);
    assert_int_equal(a.n_addrs, 0);
}

static void test_malformed(void **state)
{
    (void)state;
    static const struct {
        const char *data;
        size_t n;
    } rows[] = {
#define ROW(text) {text, sizeof(text) - 1}
        ROW(HEADER("\1") QUESTION),                                        /* a record is missing */
        ROW(HEADER("\1") QUESTION "\300\14\0\1\0\1\0\0\0\11\0\4\1\2\3"),   /* data cut */
        ROW(HEADER("\1") QUESTION "\300\30\0\1\0\1\0\0\0\11\0\4\1\2\3\4"), /* pointer to itself */
        ROW(HEADER("\1") QUESTION "\300\377\0\1\0\1\0\0\0\11\0\4\1\2\3\4"),
        ROW(HEADER("\1") QUESTION "\100\14\0\1\0\1\0\0\0\11\0\4\1\2\3\4"), /* label type 01 */
        ROW(HEADER("\0") "\300\14\0\1\0\1"),                               /* question loops */
#undef ROW
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dns_answer a = {0};
        if (parse(rows[i].data, rows[i].n, &a) != -EBADMSG)
            fail_msg("row %zu", i);
    }
}

/* Names that are no hosts: a dot or a NUL inside a label, the root, a number. */
static void test_odd_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t n;
    } rows[] = {
#define ROW(text) {text, sizeof(text)}
        ROW("\12allow.test"),
        ROW("\4a\0bc\4test"),
        ROW(""),
        ROW("\3"
            "127\1"
            "1"),
        ROW("\3a b"),
#undef ROW
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        autobuf b = BUF_INIT;
        struct dns_query q = {0};
        buf_put(&b, "\0\1\1\0\0\1\0\0\0\0\0\0", 12);
        buf_put(&b, rows[i].name, rows[i].n);
        buf_put(&b, "\0\1\0\1", 4);
        assert_int_equal(dns_query_parse(buf_bytes(&b), b.len, &q), 0);
        if (q.has_host)
            fail_msg("row %zu is %s", i, q.host.text);
    }
}

static void test_queries_that_are_answered_with_an_error(void **state)
{
    (void)state;
    struct dns_query q = {0};
    assert_int_equal(dns_query_parse("\0\1\50\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1", 19, &q), -EINVAL);
    assert_int_equal(q.rcode, DNS_NOTIMP);
    assert_int_equal(dns_query_parse("\0\1\1\0\0\2\0\0\0\0\0\0\1a\0\0\1\0\1", 19, &q), -EINVAL);
    assert_int_equal(q.rcode, DNS_FORMERR);
    assert_int_equal(dns_query_parse("\0\1\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\3", 19, &q), -EINVAL);
    assert_int_equal(q.rcode, DNS_REFUSED);
    autobuf out = BUF_INIT;
    dns_answer_write(&q, q.rcode, NULL, 0, &out);
    assert_int_equal(out.len, 19);
}

UNIT_MAIN(cmocka_unit_test(test_query_round_trip), cmocka_unit_test(test_answer_round_trip),
          cmocka_unit_test(test_answers_to_others), cmocka_unit_test(test_aliases_in_any_order),
          cmocka_unit_test(test_records_of_others_are_passed_over),
          cmocka_unit_test(test_malformed), cmocka_unit_test(test_odd_names),
          cmocka_unit_test(test_queries_that_are_answered_with_an_error))
