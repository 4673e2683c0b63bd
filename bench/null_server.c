/* bench/null_server: the floor of every stdio row: an MCP server that does nothing.
 *
 * It finds the id of a line by searching for it, and answers a canned result: initialize gets an
 * initialize result, everything else a text of the size given as the only argument (in bytes,
 * default 0), or the result that the file of that absolute path holds, so that a client which is
 * slow itself reads the same from both. Whatever a real server does on top of this is its own cost.
 *
 * Must not: parse. It is wrong for every client but bench/load.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES (1u << 20)

static const char initialize_result[] =
    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},"
    "\"serverInfo\":{\"name\":\"null\",\"version\":\"1\"}}";

static void write_all(const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t put = write(STDOUT_FILENO, bytes, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            exit(1);
        bytes += put;
        n -= (size_t)put;
    }
}

/* The text result, built once: {"content":[{"type":"text","text":"aaaa"}]} */
static char *canned_result(size_t size)
{
    static const char before[] = "{\"content\":[{\"type\":\"text\",\"text\":\"";
    static const char after[] = "\"}]}";
    char *result = calloc(1, sizeof(before) + size + sizeof(after));
    if (!result)
        exit(1);
    strcpy(result, before);
    memset(result + strlen(before), 'a', size);
    strcpy(result + strlen(before) + size, after);
    return result;
}

/* JSON in one line. */
static char *result_of(const char *path)
{
    char *result = calloc(1, LINE_MAX_BYTES);
    FILE *f = fopen(path, "re");
    if (!f || !result || fread(result, 1, LINE_MAX_BYTES - 1, f) == 0)
        exit(1);
    fclose(f);
    return result;
}

static void answer(const char *line, const char *result, size_t result_len)
{
    static char head[128];
    const char *id = strstr(line, "\"id\":");
    if (!id)
        return; /* a notification */
    if (strstr(line, "\"initialize\"")) {
        result = initialize_result;
        result_len = sizeof(initialize_result) - 1;
    }
    int n = snprintf(head, sizeof(head),
                     "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":", strtoll(id + 5, NULL, 10));
    char *out = malloc((size_t)n + result_len + 2);
    if (!out)
        exit(1);
    memcpy(out, head, (size_t)n);
    memcpy(out + n, result, result_len);
    memcpy(out + n + result_len, "}\n", 2);
    write_all(out, (size_t)n + result_len + 2);
    free(out);
}

int main(int argc, char **argv)
{
    static char buf[LINE_MAX_BYTES];
    size_t have = 0;
    const char *what = argc > 1 ? argv[1] : "0";
    const char *result = *what == '/' ? result_of(what) : canned_result(strtoul(what, NULL, 10));
    size_t result_len = strlen(result);
    for (;;) {
        ssize_t got = read(STDIN_FILENO, buf + have, sizeof(buf) - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0;
        have += (size_t)got;
        char *line = buf, *end;
        while ((end = memchr(line, '\n', have - (size_t)(line - buf)))) {
            *end = 0;
            answer(line, result, result_len);
            line = end + 1;
        }
        have -= (size_t)(line - buf);
        memmove(buf, line, have);
    }
}
