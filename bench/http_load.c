/* bench/http_load: a raw MCP client over HTTP keep-alive that measures a server that runs already.
 *
 *   http_load [--calls N] [--warm N] [--depth D] [--samples FILE] [--params JSON] [--expect TEXT]
 *             [--modern NAME] [--pid PID [--one-cpu]] PORT
 *   http_load --idle N --pid PID PORT
 *
 * The first form opens a session at 127.0.0.1:PORT/mcp and makes N calls of tools/call with these
 * params: one at a time (each a sample), or D pipelined (only the rate is told). The second opens N
 * sessions, each with its open stream, and tells the server's memory before and after. Prints one
 * JSON line. --expect is a word that the warm answers must hold, so that a server that refuses
 * quickly does not look quick. --modern makes the calls of the revision without sessions (the
 * params carry _meta then, and NAME is the tool). With --one-cpu the server of that PID is put on
 * this program's CPU, as bench/load does it. With --pid the server's memory is told after the warm
 * calls and after all.
 *
 * Must not: allocate between the two clock readings of a sample.
 */
#include "sample.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER (8u << 20)
#define MODERN "2026-07-28"

struct options {
    uint64_t calls, warm, depth, idle, pid;
    bool one_cpu;
    const char *samples, *params, *expect, *modern;
    uint16_t port;
};

struct client {
    int fd;
    char *buf; /* BUFFER bytes and a NUL */
    size_t have, used;
    const char *body; /* of the last answer */
    size_t body_len;
    char session[128];
    char *request;
    size_t request_len;
};

static int connect_to(uint16_t port)
{
    int on = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        die("connect: %m");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static void write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, bytes, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            die("the server does not read: %m");
        bytes += put;
        n -= (size_t)put;
    }
}

static void fill(struct client *c)
{
    if (c->used == c->have)
        c->used = c->have = 0;
    if (c->have == BUFFER) {
        memmove(c->buf, c->buf + c->used, c->have - c->used);
        c->have -= c->used;
        c->used = 0;
    }
    ssize_t got = read(c->fd, c->buf + c->have, BUFFER - c->have);
    if (got <= 0)
        die("the server closed the connection");
    c->have += (size_t)got;
    c->buf[c->have] = '\0';
}

/* The rest of an answer in chunks, which another server may send: the body is given raw. */
static void read_chunks(struct client *c, size_t at)
{
    char *end;
    while (!(end = strstr(c->buf + c->used + at, "\r\n0\r\n\r\n")))
        fill(c);
    c->body = c->buf + c->used + at;
    c->body_len = (size_t)(end - c->body);
    c->used = (size_t)(end - c->buf) + 7;
}

/* One answer, whole. */
static void read_answer(struct client *c)
{
    char *end;
    while (c->used == c->have || !(end = strstr(c->buf + c->used, "\r\n\r\n")))
        fill(c);
    char *head = c->buf + c->used;
    *end = '\0'; /* a search beyond it would be most of the time of a long answer */
    char *length = strcasestr(head, "content-length:");
    char *id = strcasestr(head, "mcp-session-id:");
    if (id != NULL)
        sscanf(id + 15, " %127[!-~]", c->session);
    size_t at = (size_t)(end - head) + 4;
    if (length == NULL) {
        read_chunks(c, at);
        return;
    }
    c->body_len = strtoul(length + 15, NULL, 10);
    while (c->have - c->used < at + c->body_len)
        fill(c);
    c->body = c->buf + c->used + at;
    c->used += at + c->body_len;
}

static void make_request(struct client *c, const char *body, const char *more)
{
    free(c->request);
    int n = asprintf(&c->request,
                     "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     "Accept: application/json, text/event-stream\r\n%sContent-Length: %zu\r\n\r\n"
                     "%s",
                     more, strlen(body), body);
    if (n < 0)
        die("out of memory");
    c->request_len = (size_t)n;
}

static void open_session(struct client *c, uint16_t port)
{
    c->fd = connect_to(port);
    c->have = c->used = 0;
    make_request(c,
                 "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                 "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
                 "\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}",
                 "");
    write_all(c->fd, c->request, c->request_len);
    read_answer(c);
    if (c->session[0] == '\0')
        die("no session: %.200s", c->body);
}

static long memory_kib(uint64_t pid)
{
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof(path), "/proc/%ju/status", (uintmax_t)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

static void measure_calls(const struct options *o, struct client *c)
{
    struct samples samples = {NULL, 0, 0};
    char more[300];
    char *body;
    if (o->modern != NULL) {
        c->fd = connect_to(o->port);
        snprintf(more, sizeof(more),
                 "MCP-Protocol-Version: " MODERN "\r\nMcp-Method: tools/call\r\n"
                 "Mcp-Name: %.64s\r\n",
                 o->modern);
    } else {
        open_session(c, o->port);
        snprintf(more, sizeof(more), "Mcp-Session-Id: %s\r\n", c->session);
    }
    if (asprintf(&body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":%s}",
                 o->params) < 0)
        die("out of memory");
    make_request(c, body, more);
    for (uint64_t i = 0; i < o->warm; i++) {
        write_all(c->fd, c->request, c->request_len);
        read_answer(c);
        if (o->expect && !memmem(c->body, c->body_len, o->expect, strlen(o->expect)))
            die("the answer does not say %s: %.300s", o->expect, c->body);
    }
    long before = o->pid > 0 ? memory_kib(o->pid) : 0;
    uint64_t start = now_ns();
    for (uint64_t sent = 0, done = 0; done < o->calls; done++) {
        uint64_t one = now_ns();
        for (; sent < o->calls && sent < done + o->depth; sent++)
            write_all(c->fd, c->request, c->request_len);
        read_answer(c);
        if (o->depth == 1)
            samples_add(&samples, now_ns() - one);
    }
    uint64_t took = now_ns() - start;
    printf("{\"calls\":%ju,\"depth\":%ju,\"total_ns\":%ju", (uintmax_t)o->calls,
           (uintmax_t)o->depth, (uintmax_t)took);
    if (o->pid > 0)
        printf(",\"rss_before_kib\":%ld,\"rss_after_kib\":%ld", before, memory_kib(o->pid));
    if (samples.n > 0) {
        samples_save(&samples, o->samples);
        printf(",");
        samples_print(&samples);
    }
    printf("}\n");
    free(samples.ns);
    free(body);
}

static void open_stream(struct client *c)
{
    char request[400];
    int n = snprintf(request, sizeof(request),
                     "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                     "Mcp-Session-Id: %s\r\n\r\n",
                     c->session);
    write_all(c->fd, request, (size_t)n);
    fill(c);
    if (!strstr(c->buf + c->used, "text/event-stream"))
        die("no stream: %.200s", c->buf + c->used);
}

static void measure_idle(const struct options *o, struct client *c)
{
    open_session(c, o->port); /* what is made once is there before */
    long before = memory_kib(o->pid);
    for (uint64_t i = 0; i < o->idle; i++) {
        open_session(c, o->port);
        open_stream(c);
    }
    long after = memory_kib(o->pid);
    printf("{\"sessions\":%ju,\"rss_before_kib\":%ld,\"rss_after_kib\":%ld,\"kib_each\":%.2f}\n",
           (uintmax_t)o->idle, before, after, (double)(after - before) / (double)o->idle);
}

static void parse(int argc, char **argv, struct options *o)
{
    static const struct option table[] = {
        {"calls", required_argument, NULL, 'n'},
        {"warm", required_argument, NULL, 'w'},
        {"depth", required_argument, NULL, 'd'},
        {"idle", required_argument, NULL, 'i'},
        {"pid", required_argument, NULL, 'q'},
        {"samples", required_argument, NULL, 's'},
        {"params", required_argument, NULL, 'p'},
        {"expect", required_argument, NULL, 'e'},
        {"modern", required_argument, NULL, 'm'},
        {"one-cpu", no_argument, NULL, '1'},
        {NULL, 0, NULL, 0},
    };
    int c;
    while ((c = getopt_long(argc, argv, "+", table, NULL)) >= 0) {
        if (c == 's')
            o->samples = optarg;
        else if (c == 'e')
            o->expect = optarg;
        else if (c == 'm')
            o->modern = optarg;
        else if (c == '1')
            o->one_cpu = true;
        else if (c == 'p')
            o->params = optarg;
        else if (c == '?')
            exit(2);
        else
            *(c == 'n'   ? &o->calls
              : c == 'w' ? &o->warm
              : c == 'd' ? &o->depth
              : c == 'i' ? &o->idle
                         : &o->pid) = number_or_die(optarg);
    }
    if (optind == argc)
        die("no port given");
    o->port = (uint16_t)number_or_die(argv[optind]);
}

/* All of its threads, and this program. */
static void share_one_cpu(uint64_t pid)
{
    char path[64];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)sched_getcpu(), &set);
    snprintf(path, sizeof(path), "/proc/%ju/task", (uintmax_t)pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL || sched_setaffinity(0, sizeof(set), &set) < 0)
        die("cannot put process %ju on one CPU: %m", (uintmax_t)pid);
    for (const struct dirent *d; (d = readdir(tasks)) != NULL;) {
        pid_t tid = (pid_t)strtol(d->d_name, NULL, 10);
        if (tid > 0 && sched_setaffinity(tid, sizeof(set), &set) < 0)
            die("cannot put thread %d on one CPU: %m", (int)tid);
    }
    closedir(tasks);
}

int main(int argc, char **argv)
{
    struct options o = {.calls = 1000, .warm = 20, .depth = 1, .params = "{}"};
    static char buffer[BUFFER + 1];
    struct client c = {.buf = buffer};
    parse(argc, argv, &o);
    if (o.one_cpu)
        share_one_cpu(o.pid);
    if (o.idle > 0)
        measure_idle(&o, &c);
    else
        measure_calls(&o, &c);
    free(c.request);
    return 0;
}
