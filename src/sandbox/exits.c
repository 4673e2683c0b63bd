/* sandbox/exits: see exits.h. */
#include "sandbox/exits.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

const char *sandbox_exit_text(int code)
{
    switch (code) {
#define SANDBOX_EXIT_CASE(name, number, text)                                                      \
    case number:                                                                                   \
        return text;
        SANDBOX_EXITS(SANDBOX_EXIT_CASE)
#undef SANDBOX_EXIT_CASE
    default:
        return "";
    }
}

void sandbox_say(const char *format, ...)
{
    char line[2048] = SANDBOX_PREFIX;
    va_list ap;
    va_start(ap, format);
    vsnprintf(line + sizeof(SANDBOX_PREFIX) - 1, sizeof(line) - sizeof(SANDBOX_PREFIX), format, ap);
    va_end(ap);
    dprintf(STDERR_FILENO, "%s\n", line);
}
