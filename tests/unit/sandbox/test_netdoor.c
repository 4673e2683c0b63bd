/* sandbox/netdoor, netrelay and netenv: what process 1 makes of the proxy's messages, what a zygote
 * passes on and to whom, and where the variables lead. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "base/str.h"
#include "sandbox/netdoor.h"
#include "sandbox/netenv.h"
#include "sandbox/netlost.h"
#include "sandbox/netns.h"
#include "sandbox/netrelay.h"
#include "sandbox/netwho.h"
#include "sys/fd.h"
#include "sys/scm.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
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
        "{\"event\":\"name_mismatch\",\"via\":\"connect\",\"host\":\"b.test\",\"port\":443,"
        "\"method\":\"CONNECT\",\"layer\":\"tls\",\"named\":\"c.test\",\"refused\":false}\n",
        "{\"event\":\"dropped\",\"count\":3}\n",
        "{\"event\":\"refused\",\"via\":\"udp\",\"host\":\"203.0.113.5\",\"port\":123,\"method\":"
        "\"UDP\",\"reason\":\"udp\",\"client\":99999}\n",
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
    assert_string_equal(list[3].rule, "network.name_mismatch_seen");
    assert_string_equal(list[3].what, "CONNECT b.test:443");
    assert_string_equal(list[4].rule, "network.more");
    assert_string_equal(list[5].rule, "network.udp");
    assert_string_equal(list[5].what, "UDP 203.0.113.5:123");
    assert_int_equal(list[5].pid, 0);
    assert_string_equal(list[6].rule, "");
    for (size_t i = 0; i < 6; i++)
        assert_non_null(denial_rule_find(list[i].rule));
    close(pair[0]);
    assert_false(netdoor_on_event(pair[1], list));
    assert_string_equal(list[6].rule, "network.proxy_ended");
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

/* A child has a connection; its port says who it is, and a port that nobody has says nothing. */
static void test_who(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    struct denial d = {.rule = "network.denied", .count = 1};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        char byte;
        close(listener);
        _exit(connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && read(fd, &byte, 1) == 0 ? 0
                                                                                              : 1);
    }
    int fd = accept4(listener, (struct sockaddr *)&at, &len, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    uint16_t port = ntohs(at.sin_port);
    /* On the host here, where others may have more sockets and processes than it goes through. */
    for (int i = 0; d.pid == 0 && i < 9000; i++) {
        netwho_tell(false, port, &d);
        poll(NULL, 0, d.pid == 0 ? 10 : 0);
    }
    assert_int_equal(d.pid, pid);
    assert_non_null(strstr(d.process, "test_netdoor"));
    struct denial none[] = {{.rule = "network.denied", .count = NETWHO_LOOKS_MAX + 1},
                            {.rule = "filter.more", .count = 1}};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        netwho_tell(false, port, &none[i]);
        assert_int_equal(none[i].pid, 0);
    }
    struct denial unknown = {.rule = "network.denied", .count = 1};
    netwho_tell(false, 0, &unknown);
    netwho_tell(true, port, &unknown); /* no datagram socket has it */
    assert_int_equal(unknown.pid, 0);
    close(fd);
    close(listener);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_counter(void **state)
{
    (void)state;
    struct denial list[DENIAL_MAX] = {{{0}}};
    netlost_tell(-1, list); /* not known: nothing is said */
    assert_string_equal(list[0].rule, "");
    assert_true(netlost_count() >= 0);
    netlost_tell(netlost_count(), list);
    assert_true(list[0].count < DENIAL_COUNT_MAX);
}

UNIT_MAIN(cmocka_unit_test(test_who), cmocka_unit_test(test_counter),
          cmocka_unit_test(test_place_that_is_used_again), cmocka_unit_test(test_events),
          cmocka_unit_test(test_waiting), cmocka_unit_test(test_relay),
          cmocka_unit_test(test_variables))
