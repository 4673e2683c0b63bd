/* sandbox/netdoor, netrelay and netenv: what process 1 makes of the proxy's messages, what a zygote
 * passes on and to whom, and where the variables lead. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/netdoor.h"
#include "sandbox/netenv.h"
#include "sandbox/netns.h"
#include "sandbox/netrelay.h"
#include "sys/fd.h"
#include "sys/scm.h"

#include <poll.h>
#include <unistd.h>

static void say(int fd, const char *message)
{
    assert_int_equal(scm_send(fd, message, strlen(message), NULL, 0), 0);
}

static void test_events(void **state)
{
    (void)state;
    static const char *const messages[] = {
        "{\"event\":\"refused\",\"via\":\"http\",\"host\":\"evil.test\",\"port\":80,\"method\":"
        "\"GET\","
        "\"reason\":\"not_allowed\"}\n",
        "{\"event\":\"refused\",\"via\":\"dns\",\"host\":\"evil.test\",\"reason\":\"denied\"}\n",
        "{\"event\":\"name_mismatch\",\"via\":\"connect\",\"host\":\"a.test\",\"port\":443,"
        "\"method\":\"CONNECT\",\"layer\":\"tls\",\"named\":\"b.test\",\"refused\":true}\n",
        "{\"event\":\"name_mismatch\",\"via\":\"connect\",\"host\":\"a.test\",\"refused\":false}\n",
        "{\"event\":\"dropped\",\"count\":3}\n",
        /* nothing that a denial is made of */
        "{\"event\":\"refused\",\"host\":\"x\"}\n",
        "{\"event\":7,\"reason\":[]}\n",
        "{\"event\":\"refused\"\n",
        "2026-01-01T00:00:00Z warn codespace-egress-proxy: words\n",
        "\n",
    };
    int pair[2];
    struct denial list[DENIAL_MAX] = {{{0}}};
    assert_int_equal(scm_pair(pair), 0);
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        say(pair[0], messages[i]);
        assert_true(netdoor_on_event(pair[1], list));
    }
    assert_string_equal(list[0].rule, "network.not_allowed");
    assert_string_equal(list[0].what, "GET evil.test:80");
    assert_string_equal(list[1].rule, "network.denied");
    assert_string_equal(list[1].what, "name evil.test");
    assert_string_equal(list[2].rule, "network.name_mismatch");
    assert_string_equal(list[2].what, "CONNECT a.test:443");
    assert_string_equal(list[3].rule, "network.more");
    assert_string_equal(list[4].rule, "");
    for (size_t i = 0; i < 4; i++)
        assert_non_null(denial_rule_find(list[i].rule));
    close(pair[0]);
    assert_false(netdoor_on_event(pair[1], list));
    assert_string_equal(list[4].rule, "network.proxy_ended");
    close(pair[1]);
}

static void test_waiting(void **state)
{
    (void)state;
    int pair[2];
    struct err e = {0};
    assert_int_equal(scm_pair(pair), 0);
    say(pair[0], "{\"event\":\"ready\",\"filter\":true}\n");
    assert_int_equal(netdoor_wait(pair[1], &e), 0);
    say(pair[0], "2026-01-01T00:00:00Z error codespace-egress-proxy: policy: it is odd\n");
    close(pair[0]);
    assert_int_equal(netdoor_wait(pair[1], &e), -1);
    assert_non_null(strstr(e.message, "did not start: policy: it is odd"));
    assert_null(strstr(e.message, "2026"));
    close(pair[1]);
}

static void test_relay(void **state)
{
    (void)state;
    static const char refused[] = "{\"event\":\"refused\",\"host\":\"evil.test\",\"port\":80,"
                                  "\"method\":\"GET\",\"reason\":\"not_allowed\"}\n";
    int proxy[2], first = -1, second = -1;
    struct netrelay r;
    struct denial a[DENIAL_MAX] = {{{0}}}, b[DENIAL_MAX] = {{{0}}};
    assert_int_equal(scm_pair(proxy), 0);
    assert_int_equal(netrelay_init(&r, proxy[1]), 0);
    assert_int_equal(netrelay_add(&r, &first), 0);
    assert_int_equal(netrelay_add(&r, &second), 0);
    say(proxy[0], refused);
    netrelay_on_event(&r);
    assert_true(netrelay_discard(first)); /* it takes a command only now */
    say(proxy[0], refused);
    say(first, "?");
    netrelay_on_event(&r);
    netrelay_catch_up(first, a); /* its own question is answered twice; the first answer counts */
    assert_int_equal(a[0].count, 1);
    assert_true(netdoor_on_event(second, b) && netdoor_on_event(second, b));
    assert_int_equal(b[0].count, 2);
    close(second);
    netrelay_on_event(&r);
    assert_int_equal(r.ends[1], -1);
    close(proxy[0]);
    netrelay_on_event(&r);
    assert_int_equal(r.proxy_fd, -1);
    assert_false(netrelay_discard(first));
    close(first);
    close(proxy[1]);
    netrelay_fini(&r);
}

static void check_variable(void *user, const char *entry)
{
    struct strv *seen = user;
    autofree char *door = mem_printf("127.0.0.1:%d", NETNS_PORT_PROXY);
    autofree char *name = mem_dup(entry, strcspn(entry, "="));
    const char *value = strchr(entry, '=') + 1;
    assert_false(strv_has(seen, name));
    strv_add(seen, name);
    if (strstr(value, "://") != NULL)
        assert_string_equal(strstr(value, "://") + 3, door);
    if (strcasestr(name, "no_proxy") != NULL || strcasestr(name, "noproxy") != NULL)
        assert_string_equal(value, "");
}

static void test_variables(void **state)
{
    (void)state;
    autostrv seen = {0};
    netenv_each(check_variable, &seen);
    assert_true(strv_has(&seen, "HTTP_PROXY") && strv_has(&seen, "no_proxy"));
    assert_true(seen.len > 30);
}

/* A duplicate of the end that is gone, as a child that has just been made has it, tells nothing
 * under the number of the next one, and nobody waits for what does not come. */
static void test_place_that_is_used_again(void **state)
{
    (void)state;
    int proxy[2], end = -1;
    struct netrelay r;
    assert_int_equal(scm_pair(proxy), 0);
    assert_int_equal(netrelay_init(&r, proxy[0]), 0);
    assert_int_equal(netrelay_add(&r, &end), 0);
    int duplicate = dup(r.ends[0]);
    close(end);
    netrelay_on_event(&r);
    assert_int_equal(r.ends[0], -1);
    assert_int_equal(netrelay_add(&r, &end), 0);
    assert_int_equal(r.n, 1);
    struct pollfd quiet = {.fd = r.epoll_fd, .events = POLLIN};
    assert_int_equal(poll(&quiet, 1, 0), 0);
    netrelay_on_event(&r);
    assert_true(r.ends[0] >= 0);
    close(duplicate);
    close(end);
    netrelay_fini(&r);
    close(proxy[0]);
    close(proxy[1]);
}

UNIT_MAIN(cmocka_unit_test(test_place_that_is_used_again), cmocka_unit_test(test_events),
          cmocka_unit_test(test_waiting), cmocka_unit_test(test_relay),
          cmocka_unit_test(test_variables))
