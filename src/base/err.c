/* base/err: see err.h. Nothing here allocates, so an error can be told when memory is short. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct err_info table[ERR_CODE_MAX] = {[ERR_NONE] = {"NONE", 0, 200, 0, "no error"},
#define ERR_ROW(name, rpc, http, ex, text) [ERR_##name] = {#name, rpc, http, ex, text},
                                                    ERR_TABLE(ERR_ROW)
#undef ERR_ROW
};

const struct err_info *err_info(enum err_code code)
{
    if ((unsigned)code >= ERR_CODE_MAX)
        return &table[ERR_INTERNAL];
    return &table[code];
}

enum err_code err_code_of(const char *name)
{
    for (int i = 1; i < ERR_CODE_MAX; i++) {
        if (strcmp(table[i].name, name) == 0)
            return (enum err_code)i;
    }
    return ERR_NONE;
}

/* A cut message must say so, or a reader takes half a path for a whole one. */
static void mark_cut(struct err *e, int wanted)
{
    if (wanted >= (int)sizeof(e->message))
        memcpy(e->message + sizeof(e->message) - 4, "...", 4);
}

__attribute__((format(printf, 4, 0))) static void fill(struct err *e, enum err_code code, int sys,
                                                       const char *format, va_list ap)
{
    e->code = code;
    e->sys = sys;
    mark_cut(e, vsnprintf(e->message, sizeof(e->message), format, ap));
}

int err_set(struct err *e, enum err_code code, const char *format, ...)
{
    if (e == NULL)
        return -1;
    va_list ap;
    va_start(ap, format);
    fill(e, code, 0, format, ap);
    va_end(ap);
    return -1;
}

int err_sys(struct err *e, enum err_code code, int errnum, const char *format, ...)
{
    if (e == NULL)
        return -1;
    int sys = errnum < 0 ? -errnum : errnum;
    va_list ap;
    va_start(ap, format);
    fill(e, code, sys, format, ap);
    va_end(ap);
    size_t used = strlen(e->message);
    char text[128];
    const char *why = strerror_r(sys, text, sizeof(text));
    int n = snprintf(e->message + used, sizeof(e->message) - used, ": %s", why);
    mark_cut(e, (int)used + n);
    return -1;
}

int err_wrap(struct err *e, const char *format, ...)
{
    if (e == NULL)
        return -1;
    char old[ERR_MESSAGE_MAX];
    memcpy(old, e->message, sizeof(old));
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(e->message, sizeof(e->message), format, ap);
    va_end(ap);
    if (n >= 0 && n < (int)sizeof(e->message))
        n += snprintf(e->message + n, sizeof(e->message) - (size_t)n, ": %s", old);
    mark_cut(e, n);
    return -1;
}
