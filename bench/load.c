/* bench/load: a raw MCP client over pipes that measures a server, with nothing in between.
 *
 *   load [--calls N] [--warm N] [--depth D] [--one-cpu] [--samples FILE] [--params JSON]
 *        [--expect TEXT] [--break-us N] -- SERVER ARGS...    (--params up to 64 times)
 *   load --cold N [--samples FILE] -- SERVER ARGS...
 *
 * The first form starts the server, initializes it, makes `warm` calls that are not counted, then N
 * calls of tools/call with these params: one at a time (each a sample), or D in flight (only the
 * rate is told, since answers may come in any order). Several --params take turns. The second form
 * measures spawn to the answer of initialize, N times. Prints one JSON line; memory of the server
 * in KiB from /proc/PID/status. The first warm call's answer is looked at: an error ends the run,
 * because a server that refuses quickly must not look quick; --expect is a word that the answers to
 * the warm calls must hold. --break-us is the time between an answer and the next call, outside of
 * the samples, when there is one call at a time. With --one-cpu client and server share one CPU, so
 * a call costs two switches and not two wake-ups of an idle CPU (on a virtual machine those are
 * most of the time and hide what the server does).
 *
 * Must not: allocate or format anything between the two clock readings of a sample but the id.
 */
#include "sample.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS 120000
#define BUFFER (1u << 18)
#define KEPT 4096 /* of an answer, to look at */
#define PARAMS_MAX 64

extern char **environ;

struct options {
    uint64_t calls, warm, depth, cold, break_us;
    bool one_cpu;
    const char *samples;
    const char *params[PARAMS_MAX]; /* the calls take turns */
    size_t n_params;
    const char *expect;
};

struct server {
    pid_t pid;
    int in, out;
    char *buf;   /* BUFFER bytes: what was read and not yet used */
    size_t have; /* bytes in it */
    size_t used;
    char kept[KEPT + 1]; /* start of the last answer */
    size_t kept_len;
    char *line; /* "{...,"id":" params line, built once */
    size_t line_cap;
    uint64_t next_id;
};

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

static void fill(struct server *s)
{
    struct pollfd p = {.fd = s->out, .events = POLLIN};
    ssize_t got = read(s->out, s->buf, BUFFER);
    while (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (poll(&p, 1, ANSWER_MS) == 0)
            die("no answer in %d ms", ANSWER_MS);
        got = read(s->out, s->buf, BUFFER);
    }
    if (got <= 0)
        die("the server closed its output");
    s->have = (size_t)got;
    s->used = 0;
}

/* Read to the end of one line; its first KEPT bytes are kept. */
static void read_line(struct server *s)
{
    s->kept_len = 0;
    for (;;) {
        if (s->used == s->have)
            fill(s);
        char *start = s->buf + s->used;
        char *end = memchr(start, '\n', s->have - s->used);
        size_t n = (end ? (size_t)(end - s->buf) : s->have) - s->used;
        size_t keep = n < KEPT - s->kept_len ? n : KEPT - s->kept_len;
        memcpy(s->kept + s->kept_len, start, keep);
        s->kept_len += keep;
        s->used += n + (end != NULL);
        if (end)
            break;
    }
    s->kept[s->kept_len] = 0;
}

/* Read lines until one is an answer (peers send notifications too). */
static void read_answer(struct server *s)
{
    do
        read_line(s);
    while (strstr(s->kept, "\"method\":") && !strstr(s->kept, "\"result\":"));
}

static void spawn_server(struct server *s, char **argv)
{
    int to[2], from[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
        die("pipe: %m");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    int r = posix_spawnp(&s->pid, argv[0], &actions, NULL, argv, environ);
    if (r != 0)
        die("%s: %s", argv[0], strerror(r));
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    fcntl(from[0], F_SETFL, O_NONBLOCK);
    s->in = to[1];
    s->out = from[0];
    s->have = s->used = 0;
}

static void initialize(struct server *s)
{
    static const char ask[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"load\",\"version\":\"1\"}}}"
        "\n";
    static const char done[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    write_all(s->in, ask, sizeof(ask) - 1);
    read_answer(s);
    if (!strstr(s->kept, "\"protocolVersion\""))
        die("initialize was answered: %s", s->kept);
    write_all(s->in, done, sizeof(done) - 1);
}

static void end_server(struct server *s)
{
    int status;
    close(s->in);
    if (waitpid(s->pid, &status, 0) != s->pid)
        die("waitpid: %m");
    close(s->out);
}

static long memory_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

/* Time on a CPU of all threads of the server so far, which a busy machine does not change much. */
static uint64_t cpu_ns(pid_t pid)
{
    char path[300];
    uint64_t total = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *e = tasks ? readdir(tasks) : NULL; e; e = readdir(tasks)) {
        uintmax_t ns = 0;
        snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)pid, e->d_name);
        FILE *f = fopen(path, "re");
        if (f && fscanf(f, "%ju", &ns) == 1)
            total += ns;
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return total;
}

static void send_call(struct server *s, const struct options *o)
{
    int n = snprintf(s->line, s->line_cap,
                     "{\"jsonrpc\":\"2.0\",\"id\":%ju,\"method\":\"tools/call\",\"params\":%s}\n",
                     (uintmax_t)s->next_id + 1, o->params[s->next_id % o->n_params]);
    s->next_id++;
    write_all(s->in, s->line, (size_t)n);
}

static void refuse_errors(const struct server *s, const struct options *o)
{
    if (o->expect && !strstr(s->kept, o->expect))
        die("the answer does not say %s: %s", o->expect, s->kept);
    if (strstr(s->kept, "\"isError\":true") || strstr(s->kept, "\"error\":"))
        die("the call fails: %s", s->kept);
}

static void calls_one_by_one(struct server *s, const struct options *o, struct samples *samples)
{
    for (uint64_t i = 0; i < o->warm + o->calls; i++) {
        uint64_t start = now_ns();
        send_call(s, o);
        read_answer(s);
        uint64_t took = now_ns() - start;
        if (i >= o->warm)
            samples_add(samples, took);
        else
            refuse_errors(s, o);
        if (o->break_us > 0)
            usleep((useconds_t)o->break_us);
    }
}

static void calls_in_flight(struct server *s, const struct options *o)
{
    uint64_t sent = 0;
    while (sent < o->depth && sent < o->calls) {
        send_call(s, o);
        sent++;
    }
    for (uint64_t answered = 0; answered < o->calls; answered++) {
        read_answer(s);
        if (sent < o->calls) {
            send_call(s, o);
            sent++;
        }
    }
}

static void measure_calls(struct server *s, const struct options *o, char **argv)
{
    struct samples samples = {NULL, 0, 0};
    struct options warm = *o;
    spawn_server(s, argv);
    initialize(s);
    warm.calls = 0;
    calls_one_by_one(s, &warm, &samples);
    long before = memory_kib(s->pid);
    uint64_t cpu = cpu_ns(s->pid);
    uint64_t start = now_ns();
    if (o->depth > 1)
        calls_in_flight(s, o);
    else {
        warm = *o;
        warm.warm = 0;
        calls_one_by_one(s, &warm, &samples);
    }
    uint64_t took = now_ns() - start;
    cpu = cpu_ns(s->pid) - cpu;
    refuse_errors(s, o);
    printf("{\"calls\":%ju,\"depth\":%ju,\"total_ns\":%ju,\"cpu_ns\":%ju,\"rss_before_kib\":%ld,"
           "\"rss_after_kib\":%ld",
           (uintmax_t)o->calls, (uintmax_t)o->depth, (uintmax_t)took, (uintmax_t)cpu, before,
           memory_kib(s->pid));
    if (samples.n > 0) {
        samples_save(&samples, o->samples);
        printf(",");
        samples_print(&samples);
    }
    printf("}\n");
    free(samples.ns);
    end_server(s);
}

static void measure_cold(struct server *s, const struct options *o, char **argv)
{
    struct samples samples = {NULL, 0, 0};
    for (uint64_t i = 0; i < o->cold; i++) {
        uint64_t start = now_ns();
        spawn_server(s, argv);
        initialize(s);
        samples_add(&samples, now_ns() - start);
        end_server(s);
    }
    samples_save(&samples, o->samples);
    printf("{");
    samples_print(&samples);
    printf("}\n");
    free(samples.ns);
}

static void parse(int argc, char **argv, struct options *o)
{
    static const struct option table[] = {
        {"calls", required_argument, NULL, 'n'},    {"warm", required_argument, NULL, 'w'},
        {"depth", required_argument, NULL, 'd'},    {"cold", required_argument, NULL, 'c'},
        {"samples", required_argument, NULL, 's'},  {"params", required_argument, NULL, 'p'},
        {"expect", required_argument, NULL, 'e'},   {"one-cpu", no_argument, NULL, '1'},
        {"break-us", required_argument, NULL, 'b'}, {NULL, 0, NULL, 0},
    };
    int c;
    while ((c = getopt_long(argc, argv, "+", table, NULL)) >= 0) {
        if (c == '1')
            o->one_cpu = true;
        else if (c == 's')
            o->samples = optarg;
        else if (c == 'e')
            o->expect = optarg;
        else if (c == 'p' && o->n_params == PARAMS_MAX)
            die("more than %d --params", PARAMS_MAX);
        else if (c == 'p')
            o->params[o->n_params++] = optarg;
        else if (c == '?')
            exit(2);
        else
            *(c == 'n'   ? &o->calls
              : c == 'w' ? &o->warm
              : c == 'd' ? &o->depth
              : c == 'b' ? &o->break_us
                         : &o->cold) = number_or_die(optarg);
    }
    if (optind == argc)
        die("no server given");
    if (o->n_params == 0)
        o->params[o->n_params++] = "{}";
}

/* The server inherits it. */
static void share_one_cpu(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)sched_getcpu(), &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0)
        die("sched_setaffinity: %m");
}

int main(int argc, char **argv)
{
    struct options o = {.calls = 1000, .warm = 20, .depth = 1};
    static char buffer[BUFFER];
    struct server s = {.buf = buffer};
    parse(argc, argv, &o);
    for (size_t i = 0; i < o.n_params; i++)
        s.line_cap =
            strlen(o.params[i]) + 128 > s.line_cap ? strlen(o.params[i]) + 128 : s.line_cap;
    s.line = malloc(s.line_cap);
    if (!s.line)
        die("out of memory");
    if (o.one_cpu)
        share_one_cpu();
    if (o.cold > 0)
        measure_cold(&s, &o, argv + optind);
    else
        measure_calls(&s, &o, argv + optind);
    free(s.line);
    return 0;
}
