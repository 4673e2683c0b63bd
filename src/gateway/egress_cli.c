/* gateway/egress_cli: see egress_cli.h. */
#include "gateway/egress_cli.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "gateway/options.h"
#include "sys/fd.h"
#include "sys/unixsock.h"
#include "wire/egress.h"
#include "wire/http1.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* A change waits for what runs (RULES_ANSWER_MS), a worker included. */
#define ANSWER_SECONDS 90
/* Of an answer. */
#define ANSWER_MAX (EGRESS_POLICY_MAX + (1u << 20))
#define READ_BYTES 16384u

struct cli {
    const char *verb, *workspace_id;
    const char *rules; /* a file; "-" = standard input */
    const char *unix_socket, *host;
    uint64_t port;
    struct options options; /* for the token */
    struct buf request, answer;
};

static const char usage[] =
    "Usage: codespace-mcp egress show WORKSPACE WHERE\n"
    "       codespace-mcp egress set WORKSPACE RULES.json|- WHERE\n"
    "WHERE: --port N [--host 127.0.0.1] or --unix-socket PATH of a server that runs, and\n"
    "       --operator-token-file FILE (or the variable CODESPACE_OPERATOR_TOKEN).\n"
    "RULES is the whole \"egress\" of the configuration; it counts at once, for commands that run\n"
    "too, and is not written to the configuration file. Without HTTP: change the file, then\n"
    "kill -USR1 the server.\n";

/* ---- the arguments ---- */

static int take_value(struct cli *c, const char *name, const char *value, struct err *e)
{
    if (str_eq(name, "--unix-socket"))
        c->unix_socket = value;
    else if (str_eq(name, "--host"))
        c->host = value;
    else if (str_eq(name, "--operator-token-file"))
        c->options.http.operator_token_file = value;
    else if (!str_eq(name, "--port"))
        return err_set(e, ERR_INVALID_ARGUMENT, "unknown option \"%.128s\"\n%s", name, usage);
    else if (num_parse_u64(value, 1, UINT16_MAX, &c->port) < 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "--port: \"%.64s\" is not a port", value);
    return 0;
}

static int take_word(struct cli *c, const char *word, struct err *e)
{
    const char **to = c->verb == NULL           ? &c->verb
                      : c->workspace_id == NULL ? &c->workspace_id
                                                : &c->rules;
    if (*to != NULL)
        return err_set(e, ERR_INVALID_ARGUMENT, "\"%.128s\" is one too many\n%s", word, usage);
    *to = word;
    return 0;
}

static int read_arguments(struct cli *c, int argc, char *const *argv, struct err *e)
{
    for (int i = 1; i < argc; i++) {
        bool option = argv[i][0] == '-' && argv[i][1] != '\0';
        if (option && argv[i + 1] == NULL)
            return err_set(e, ERR_INVALID_ARGUMENT, "%s needs a value", argv[i]);
        int rc = option ? take_value(c, argv[i], argv[i + 1], e) : take_word(c, argv[i], e);
        if (rc < 0)
            return -1;
        i += option;
    }
    bool set = str_eq(c->verb, "set");
    if ((!set && !str_eq(c->verb, "show")) || c->workspace_id == NULL || set != (c->rules != NULL))
        return err_set(e, ERR_INVALID_ARGUMENT, "%s", usage);
    if (!registry_id_valid(c->workspace_id))
        return err_set(e, ERR_INVALID_ARGUMENT, "\"%.128s\" is no id of a workspace",
                       c->workspace_id);
    if ((c->port == 0) == (c->unix_socket == NULL))
        return err_set(e, ERR_INVALID_ARGUMENT, "either --port or --unix-socket is needed\n%s",
                       usage);
    return 0;
}

static int take_token(struct cli *c, struct err *e)
{
    const char *variable = getenv("CODESPACE_OPERATOR_TOKEN");
    if (options_token(&c->options, e) < 0)
        return -1;
    if (c->options.http.operator_token == NULL)
        c->options.http.operator_token = mem_strdup(variable);
    const char *token = c->options.http.operator_token;
    if (token == NULL || token[0] == '\0')
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the operator's token is needed: --operator-token-file FILE, or "
                       "CODESPACE_OPERATOR_TOKEN");
    if (strpbrk(token, "\r\n") != NULL)
        return err_set(e, ERR_INVALID_ARGUMENT, "the operator's token is one line");
    return 0;
}

/* ---- the exchange ---- */

static int read_all(int fd, struct buf *to, size_t max)
{
    ssize_t n;
    do {
        n = fd_read(fd, buf_reserve(to, READ_BYTES), READ_BYTES);
        if (n > 0)
            buf_commit(to, (size_t)n);
    } while (n > 0 && to->len <= max);
    return n < 0 ? (int)n : to->len > max ? -EFBIG : 0;
}

static int read_rules(struct cli *c, struct buf *to, struct err *e)
{
    if (c->rules == NULL)
        return 0;
    bool standard = str_eq(c->rules, "-");
    autofd int fd = open(standard ? "/dev/stdin" : c->rules, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? -errno : read_all(fd, to, EGRESS_POLICY_MAX);
    return rc < 0 ? err_sys(e, ERR_INVALID_ARGUMENT, rc, "%.256s", c->rules) : 0;
}

static int write_request(struct cli *c, struct err *e)
{
    autobuf body = BUF_INIT;
    if (read_rules(c, &body, e) < 0)
        return -1;
    buf_printf(&c->request, "%s /operator/workspaces/%s/egress HTTP/1.1\r\nHost: ",
               c->rules != NULL ? "PUT" : "GET", c->workspace_id);
    if (c->unix_socket != NULL)
        buf_puts(&c->request, "localhost");
    else
        buf_printf(&c->request, "%s:%u", c->host, (unsigned)c->port);
    buf_printf(&c->request,
               "\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
               "Connection: close\r\nContent-Length: %zu\r\n\r\n",
               c->options.http.operator_token, body.len);
    buf_put(&c->request, buf_bytes(&body), body.len);
    return 0;
}

static int connect_tcp(const struct cli *c)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)c->port)};
    if (inet_pton(AF_INET, str_eq(c->host, "localhost") ? "127.0.0.1" : c->host, &at.sin_addr) != 1)
        return -EADDRNOTAVAIL;
    autofd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
        return -errno;
    return steal_fd(&fd);
}

static int exchange(struct cli *c, struct err *e)
{
    const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    autofd int fd = c->unix_socket != NULL ? unixsock_connect(c->unix_socket) : connect_tcp(c);
    int rc = fd < 0 ? fd : 0;
    if (rc == 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0)
        rc = -errno;
    for (size_t at = 0; rc == 0 && at < c->request.len;) {
        ssize_t n = fd_send(fd, buf_bytes(&c->request) + at, c->request.len - at);
        rc = n < 0 ? (int)n : 0;
        at += n < 0 ? 0 : (size_t)n;
    }
    if (rc == 0)
        rc = read_all(fd, &c->answer, ANSWER_MAX);
    return rc < 0 ? err_sys(e, ERR_RUNNER_UNAVAILABLE, rc, "the server at %.256s",
                            c->unix_socket != NULL ? c->unix_socket : c->host)
                  : 0;
}

/* The body to standard output when it is an answer, else as the failure. */
static int tell(struct cli *c, struct err *e)
{
    struct http1_head head;
    http1_head_init(&head, HTTP1_RESPONSE);
    if (http1_head_parse(&head, buf_bytes(&c->answer), c->answer.len, e) <= 0)
        return err_set(e, ERR_RUNNER_UNAVAILABLE, "what answers there is not codespace-mcp --http");
    const char *body = buf_bytes(&c->answer) + head.size;
    size_t n = c->answer.len - head.size;
    if (head.status >= 300)
        return err_set(e, ERR_INVALID_ARGUMENT, "HTTP %u: %.*s", head.status,
                       (int)(n < 3000 ? n : 3000), body);
    fwrite(body, 1, n, stdout);
    putchar('\n');
    return fflush(stdout) == 0 ? 0
                               : err_sys(e, ERR_FILE_OPERATION_FAILED, errno, "standard output");
}

int egress_cli(int argc, char *const *argv)
{
    struct err e;
    struct cli c = {.host = "127.0.0.1"};
    if (argc > 1 && str_eq(argv[1], "--help")) {
        fputs(usage, stdout);
        return fflush(stdout) == 0 ? 0 : err_info(ERR_FILE_OPERATION_FAILED)->exit_status;
    }
    int rc = read_arguments(&c, argc, argv, &e);
    if (rc == 0)
        rc = take_token(&c, &e);
    if (rc == 0)
        rc = write_request(&c, &e);
    if (rc == 0)
        rc = exchange(&c, &e);
    if (rc == 0)
        rc = tell(&c, &e);
    if (c.request.len > 0)
        explicit_bzero(c.request.data, c.request.start + c.request.len);
    buf_fini(&c.request);
    buf_fini(&c.answer);
    options_fini(&c.options);
    if (rc < 0)
        fprintf(stderr, "codespace-mcp: %s\n", e.message);
    return rc < 0 ? err_info(e.code)->exit_status : 0;
}
