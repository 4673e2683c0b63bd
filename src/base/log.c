/* base/log: see log.h. A line is written with one write(2), so lines of threads do not mix. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const names[] = {"error", "warn", "info", "debug"};
static const char *program_name = "codespace";
static enum log_level max_level = LOG_INFO;

void log_setup(const char *program, enum log_level max)
{
    program_name = program;
    max_level = max;
}

int log_level_of(const char *name)
{
    for (int i = 0; i <= LOG_DEBUG; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return -1;
}

/* Copy with control characters made visible; returns the length, at most cap. */
static size_t clean(char *out, size_t cap, const char *text)
{
    size_t n = 0;
    for (; *text != '\0' && n + 5 < cap; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= 0x20 && c != 0x7f)
            out[n++] = (char)c;
        else
            n += (size_t)snprintf(out + n, cap - n, "\\x%02x", c);
    }
    return n;
}

void log_line(enum log_level level, const char *format, ...)
{
    if (level > max_level)
        return;
    char text[2048];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);

    char line[4096];
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(line + n, sizeof(line) - n, ".%03ldZ %s %s: ", now.tv_nsec / 1000000,
                          names[level], program_name);
    n += clean(line + n, sizeof(line) - n - 1, text);
    line[n++] = '\n';
    (void)!write(STDERR_FILENO, line, n);
}
