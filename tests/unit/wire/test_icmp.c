/* wire/icmp: a datagram that nobody took, and everything that is not quite one. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "wire/icmp.h"

#include <errno.h>
#include <string.h>

#define PACKET 56

/* An answer about UDP from port 40000 to 203.0.113.5:123, without options. */
static void make(unsigned char p[PACKET])
{
    memset(p, 0, PACKET);
    p[0] = 0x45;
    p[9] = 1;
    p[20] = 3;
    p[21] = 3;
    p[28] = 0x45;
    p[28 + 9] = 17;
    memcpy(p + 28 + 16, "\xcb\x00\x71\x05", 4);
    memcpy(p + 48, "\x9c\x40\x00\x7b", 4);
}

static void test_read(void **state)
{
    (void)state;
    unsigned char p[PACKET];
    struct icmp_unreached u;
    make(p);
    assert_int_equal(icmp_unreached_read(p, sizeof(p), &u), 0);
    assert_int_equal(u.to.family, 4);
    assert_memory_equal(u.to.bytes, "\xcb\x00\x71\x05", 4);
    assert_int_equal(u.to_port, 123);
    assert_int_equal(u.from_port, 40000);
}

static void test_options(void **state)
{
    (void)state;
    unsigned char p[PACKET], q[PACKET + 44 + 40];
    struct icmp_unreached u;
    make(p);
    memset(q, 0, sizeof(q));
    memcpy(q, p, 20);
    q[0] = 0x4f; /* 60 bytes */
    memcpy(q + 60, p + 20, 28);
    q[68] = 0x46;
    memcpy(q + 92, p + 48, 8);
    assert_int_equal(icmp_unreached_read(q, sizeof(q), &u), 0);
    assert_int_equal(u.to_port, 123);
}

static void test_everything_else(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        unsigned char value;
    } rows[] = {{0, 0x65}, {0, 0x44},  {0, 0x4f},  {9, 17},    {20, 8},
                {20, 0},   {28, 0x60}, {28, 0x40}, {28, 0x4f}, {37, 6}};
    unsigned char p[PACKET];
    struct icmp_unreached u;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        make(p);
        p[rows[i].at] = rows[i].value;
        assert_int_equal(icmp_unreached_read(p, sizeof(p), &u), -EBADMSG);
    }
    make(p);
    for (size_t n = 0; n < 52; n++) {
        autofree unsigned char *cut = (void *)mem_dup(p, n); /* a byte too far is seen */
        assert_int_equal(icmp_unreached_read(cut, n, &u), -EBADMSG);
    }
}

UNIT_MAIN(cmocka_unit_test(test_read), cmocka_unit_test(test_options),
          cmocka_unit_test(test_everything_else))
