/* codespace-egress-proxy: the only thing that a networked command can reach.
 *
 * Everything comes by descriptor: the policy, the listeners (made inside the sandbox's network
 * namespace), where to tell what happens, and whose life it shares. Order of the start: arguments;
 * the policy; the files of name resolution; what is not needed is given up (proxy/harden); only
 * then the listeners are watched, so no untrusted byte is read by a process that could still do
 * more. "ready" on the status descriptor means that all of it is done. A step that fails ends the
 * program with its own exit code, and whoever started it must not start the command then.
 *
 * Must not: write to a file, start a program, or outlive the other end of the life descriptor.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "proxy/control.h"
#include "proxy/credential.h"
#include "proxy/door.h"
#include "proxy/harden.h"
#include "proxy/nameserver.h"
#include "proxy/tls.h"
#include "proxy/unreached.h"
#include "sys/fd.h"
#include "sys/scm.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Listeners of each kind: IPv4 and IPv6, UDP and TCP, with room. */
#define MAIN_FDS_MAX 8

/* Documented in the manual. */
enum exit_code {
    EXIT_OK = 0,
    EXIT_USAGE = 64,
    EXIT_LOOP = 70,
    EXIT_LISTEN = 71,
    EXIT_HARDEN = 77,
    EXIT_POLICY = 78,
};

static const char help[] =
    "usage: codespace-egress-proxy --policy-fd N --listen-fd N --status-fd N --life-fd N\n"
    "         [--transparent-fd N] [--dns-fd N] [--control-fd N] [--inject-fd N]\n"
    "         [--trust-fd N --ca-fd N] [--nameserver ADDRESS[:PORT]] [--limit NAME=MS]\n"
    "       codespace-egress-proxy --policy-fd N --handover-fd N --status-fd N --life-fd N ...\n"
    "       codespace-egress-proxy --version | --help\n"
    "Started by codespace-linux-sandbox; see codespace-egress-proxy(1).\n";

struct fds {
    int fd[MAIN_FDS_MAX];
    size_t n;
};

struct options {
    struct fds policy, listen, transparent, dns, status, life, control, handover, inject, trust, ca;
    struct strv nameservers;
    struct strv limits;
};

#define AT(member) offsetof(struct options, member)
static const struct {
    const char *name;
    size_t offset;
    size_t min;
    size_t max;
} fd_options[] = {
    {"--policy-fd", AT(policy), 1, 1},
    {"--listen-fd", AT(listen), 0, MAIN_FDS_MAX},
    {"--handover-fd", AT(handover), 0, 1},
    {"--transparent-fd", AT(transparent), 0, MAIN_FDS_MAX},
    {"--dns-fd", AT(dns), 0, MAIN_FDS_MAX},
    {"--status-fd", AT(status), 1, 1},
    {"--life-fd", AT(life), 1, 1},
    {"--control-fd", AT(control), 0, 1},
    {"--inject-fd", AT(inject), 0, 1},
    {"--trust-fd", AT(trust), 0, 1},
    {"--ca-fd", AT(ca), 0, 1},
};
#undef AT

static struct fds *fds_of(struct options *o, size_t row)
{
    return (struct fds *)(void *)((char *)o + fd_options[row].offset);
}

static int usage(const char *option, const char *why)
{
    log_error("%s: %s", option, why);
    return -1;
}

static int parse_option(struct options *o, const char *name, const char *value)
{
    uint64_t fd = 0;
    if (strcmp(name, "--nameserver") == 0) {
        strv_add(&o->nameservers, value);
        return 0;
    }
    if (strcmp(name, "--limit") == 0) {
        strv_add(&o->limits, value);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(fd_options); i++) {
        struct fds *list = fds_of(o, i);
        if (strcmp(name, fd_options[i].name) != 0)
            continue;
        if (num_parse_u64(value, 3, 65535, &fd) < 0)
            return usage(name, "must be a descriptor from 3 on");
        if (list->n == fd_options[i].max)
            return usage(name, "given too often");
        list->fd[list->n++] = (int)fd;
        return 0;
    }
    return usage(name, "no such option; see codespace-egress-proxy(1)");
}

static int parse_options(struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            return usage(argv[i], "needs a value");
        if (parse_option(o, argv[i], argv[i + 1]) < 0)
            return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(fd_options); i++) {
        if (fds_of(o, i)->n < fd_options[i].min)
            return usage(fd_options[i].name, "is required");
    }
    if (o->listen.n == 0 && o->handover.n == 0)
        return usage("--listen-fd", "is required, or --handover-fd");
    return 0;
}

/* Up to the end, or a little more than `max`. Closes it. */
static int read_text(int *fd, size_t max, const char *option, struct buf *text, struct err *e)
{
    ssize_t n = 1;
    while (n > 0 && text->len <= max) {
        n = fd_read(*fd, buf_reserve(text, END_BLOCK), END_BLOCK);
        if (n < 0)
            return err_sys(e, ERR_CONFIG_INVALID, (int)n, "%s", option);
        buf_commit(text, (size_t)n);
    }
    fd_close(fd);
    return 0;
}

static int read_policy(int *fd, struct egress_policy *ret, struct err *e)
{
    autobuf text = BUF_INIT;
    if (read_text(fd, EGRESS_POLICY_MAX, "--policy-fd", &text, e) < 0)
        return -1;
    return egress_policy_parse(buf_bytes(&text), text.len, ret, e);
}

/* Before anything of our own is opened. */
static int close_strangers(struct options *o)
{
    int keep[ARRAY_LEN(fd_options) * MAIN_FDS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(fd_options); i++) {
        for (size_t k = 0; k < fds_of(o, i)->n; k++)
            keep[n++] = fds_of(o, i)->fd[k];
    }
    int r = harden_descriptors(keep, n);
    if (r < 0)
        log_error("descriptors: %s", strerror(-r));
    return r;
}

static int give_up_the_rest(struct proxy *p)
{
    unsigned descriptors = 0;
    const char *step = NULL;
    int r = harden_process(&descriptors, &step);
    if (r < 0) {
        log_error("%s: %s", step, strerror(-r));
        return r;
    }
    if (descriptors < PROXY_SPARE_DESCRIPTORS + 2) {
        log_error("RLIMIT_NOFILE is %u; at least %u are needed", descriptors,
                  PROXY_SPARE_DESCRIPTORS + 2);
        return -EMFILE;
    }
    p->conns_max = (descriptors - PROXY_SPARE_DESCRIPTORS) / 2;
    if (p->conns_max > PROXY_CONNECTIONS_MAX)
        p->conns_max = PROXY_CONNECTIONS_MAX;
    r = harden_filter();
    if (r < 0)
        log_error("system call filter: %s", strerror(-r));
    return r;
}

static struct proxy proxy;
static struct door doors[2 * MAIN_FDS_MAX + HANDOVER_PUBLISH_MAX];
static int published[HANDOVER_PUBLISH_MAX];
static uint32_t published_ports[HANDOVER_PUBLISH_MAX];
static uint32_t n_published;
static struct nameserver nameservers[MAIN_FDS_MAX];
static struct control control;
static struct unreached unreached;
static int unreached_fd = -1;

/* One message of the helper, exactly as it has to be. */
static int receive(int fd, void *message, size_t n, int *fds, size_t n_fds)
{
    ssize_t got = scm_receive(fd, message, n, fds, n_fds);
    if (got == (ssize_t)n)
        return 0;
    log_error("the helper handed nothing over: %s",
              got < 0 ? strerror((int)-got) : "another length");
    return -1;
}

static int take_doors(struct options *o, int fd)
{
    struct handover_head head;
    int fds[HANDOVER_DOORS];
    if (receive(fd, &head, sizeof(head), fds, HANDOVER_DOORS) < 0)
        return -1;
    if (head.magic != HANDOVER_MAGIC || head.publish > HANDOVER_PUBLISH_MAX) {
        log_error("the helper is of another version");
        return -1;
    }
    o->listen = (struct fds){{fds[HANDOVER_PROXY]}, 1};
    o->transparent = (struct fds){{fds[HANDOVER_TRANSPARENT]}, 1};
    o->dns = (struct fds){{fds[HANDOVER_NAMES_UDP], fds[HANDOVER_NAMES_TCP]}, 2};
    n_published = head.publish;
    proxy.rules_fd = fds[HANDOVER_RULES];
    unreached_fd = fds[HANDOVER_UNREACHED];
    proxy.holds = true;
    return 0;
}

/* wire/handover */
static int take_over(struct options *o)
{
    int fd = o->handover.n > 0 ? o->handover.fd[0] : -1;
    int fds[HANDOVER_GROUP];
    struct handover_group group;
    if (fd < 0)
        return 0;
    if (take_doors(o, fd) < 0)
        return -1;
    for (int i = 0; i < HANDOVER_GROUPS; i++) {
        if (receive(fd, &group, sizeof(group), fds, HANDOVER_GROUP) < 0)
            return -1;
        for (int k = 0; k < HANDOVER_GROUP; k++)
            inside_add(&proxy.inside, (int)group.family, fds[k]);
    }
    for (uint32_t i = 0; i < n_published; i++) {
        struct handover_publish one;
        if (receive(fd, &one, sizeof(one), &published[i], 1) < 0)
            return -1;
        published_ports[i] = one.port;
    }
    close(fd);
    return 0;
}

static int listen_all(struct options *o)
{
    size_t n_doors = 0;
    int none = -1;
    int r =
        control_start(&control, &proxy, &o->life.fd[0], o->control.n ? &o->control.fd[0] : &none);
    for (size_t i = 0; r == 0 && i < o->listen.n; i++)
        r = door_open(&doors[n_doors++], &proxy, DOOR_PROXY, &o->listen.fd[i]);
    for (size_t i = 0; r == 0 && i < o->transparent.n; i++)
        r = door_open(&doors[n_doors++], &proxy, DOOR_TRANSPARENT, &o->transparent.fd[i]);
    for (size_t i = 0; r == 0 && i < n_published; i++) {
        r = door_open(&doors[n_doors], &proxy, DOOR_PUBLISH, &published[i]);
        doors[n_doors++].port = (uint16_t)published_ports[i];
    }
    for (size_t i = 0; r == 0 && i < o->dns.n; i++)
        r = nameserver_start(&nameservers[i], &proxy, &o->dns.fd[i]);
    if (r == 0)
        r = unreached_start(&unreached, &proxy, &unreached_fd);
    if (r < 0)
        log_error("a listener cannot be watched: %s", strerror(-r));
    return r;
}

/* proxy/tls, when a rule asks for it. */
static int prepare_tls(struct options *o, struct err *e)
{
    autobuf trust = BUF_INIT;
    if (!inject_has_intercept(&proxy.credentials))
        return 0;
    if (o->trust.n == 0 || o->ca.n == 0)
        return err_set(e, ERR_CONFIG_INVALID,
                       "\"tls\": \"intercept\" needs --trust-fd and --ca-fd");
    if (read_text(&o->trust.fd[0], TLS_TRUST_MAX, "--trust-fd", &trust, e) < 0)
        return -1;
    if (trust.len > TLS_TRUST_MAX)
        return err_set(e, ERR_CONFIG_INVALID, "the trust store has more than TLS_TRUST_MAX (%u)",
                       TLS_TRUST_MAX);
    return tls_new(&proxy.credentials, &trust, &proxy.tls, e);
}

/* What the sandbox shall trust, into a pipe that whoever builds its view reads. */
static int tell_authority(struct options *o)
{
    autobuf text = BUF_INIT;
    if (proxy.tls == NULL)
        return 0;
    tls_write_bundle(proxy.tls, &text);
    int r = fd_write_all(o->ca.fd[0], buf_bytes(&text), text.len);
    if (r < 0)
        log_error("--ca-fd: %s", strerror(-r));
    fd_close(&o->ca.fd[0]);
    return r;
}

static int prepare(struct options *o)
{
    struct err e = {0};
    if (read_policy(&o->policy.fd[0], &proxy.policy, &e) < 0) {
        log_error("policy: %s", e.message);
        return EXIT_POLICY;
    }
    if (o->inject.n > 0 && credential_read(&o->inject.fd[0], &proxy.credentials, &e) < 0) {
        log_error("--inject-fd: %s", e.message);
        return EXIT_POLICY;
    }
    if (prepare_tls(o, &e) < 0) {
        log_error("interception: %s", e.message);
        return EXIT_POLICY;
    }
    int r = loop_init(&proxy.loop);
    if (r < 0) {
        log_error("epoll: %s", strerror(-r));
        return EXIT_LOOP;
    }
    for (size_t i = 0; i < o->limits.len; i++) {
        if (loop_set_limit(&proxy.loop, o->limits.items[i]) < 0) {
            log_error("--limit: \"%s\" is no limit of codespace-egress-proxy(1), or a longer time",
                      o->limits.items[i]);
            return EXIT_USAGE;
        }
    }
    list_init(&proxy.conns);
    standins_init(&proxy.standins);
    proxy.generation = 1;
    proxy.rules_fd = -1;
    resolver_init(&proxy.resolver, &proxy.loop);
    for (size_t i = 0; i < o->nameservers.len; i++) {
        if (resolver_add_server(&proxy.resolver, o->nameservers.items[i]) < 0) {
            log_error("--nameserver: \"%s\" is not an address, or one too many",
                      o->nameservers.items[i]);
            return EXIT_USAGE;
        }
    }
    resolver_read_files(&proxy.resolver);
    return EXIT_OK;
}

/* Text to standard output; the exit status. */
static int say(const char *text)
{
    return fd_write_all(STDOUT_FILENO, text, strlen(text)) < 0 ? EXIT_LOOP : EXIT_OK;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    log_setup("codespace-egress-proxy", LOG_WARN);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return say("codespace-egress-proxy " CODESPACE_VERSION "\n");
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return say(help);
    if (parse_options(&options, argc, argv) < 0)
        return EXIT_USAGE;
    signal(SIGPIPE, SIG_IGN);
    if (close_strangers(&options) < 0)
        return EXIT_HARDEN;
    int code = prepare(&options);
    strv_fini(&options.nameservers);
    strv_fini(&options.limits);
    if (code != EXIT_OK)
        return code;
    if (take_over(&options) < 0 || tell_authority(&options) < 0)
        return EXIT_LISTEN;
    status_init(&proxy.status, options.status.fd[0]);
    if (give_up_the_rest(&proxy) < 0)
        return EXIT_HARDEN;
    if (listen_all(&options) < 0)
        return EXIT_LISTEN;
    status_ready(&proxy.status, harden_has_filter());
    int r = loop_run(&proxy.loop);
    if (r < 0)
        log_error("epoll: %s", strerror(-r));
    return r < 0 ? EXIT_LOOP : EXIT_OK;
}
