/* sandbox/musl: see musl.h. */
#include "sandbox/musl.h"

#include <errno.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#undef strerror
char *musl_strerror(int errnum)
{
    switch (errnum) {
    case ELOOP:
        return (char *)"Too many levels of symbolic links";
    case EMFILE:
        return (char *)"Too many open files";
    case ENOMEM:
        return (char *)"Cannot allocate memory";
    case ENAMETOOLONG:
        return (char *)"File name too long";
    case EDQUOT:
        return (char *)"Disk quota exceeded";
    default:
        return strerror(errnum);
    }
}

char *musl_strerror_r(int errnum, char *text, size_t size)
{
    snprintf(text, size, "%s", musl_strerror(errnum));
    return text;
}

int close_range(unsigned first, unsigned last, int flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret)
{
    return (int)syscall(SYS_statx, dir, path, flags, mask, ret);
}

/* musl has no such action. Everything of ours above the standard descriptors may close on exec:
 * what a program shall get is put in its place by an action, which clears that again. */
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from)
{
    (void)actions;
    unsigned first = from > STDERR_FILENO ? (unsigned)from : STDERR_FILENO + 1;
    return close_range(first, ~0u, CLOSE_RANGE_CLOEXEC) < 0 ? errno : 0;
}

/* ---- what the system's libjson-c.a calls, because it was compiled with _FORTIFY_SOURCE for glibc.
 * The sizes that the callers know are not looked at, which is what musl does for everybody. ---- */

int __fprintf_chk(FILE *f, int flag, const char *format, ...);
int __vfprintf_chk(FILE *f, int flag, const char *format, va_list ap);
int __snprintf_chk(char *s, size_t n, int flag, size_t size, const char *format, ...);
int __vsnprintf_chk(char *s, size_t n, int flag, size_t size, const char *format, va_list ap);
int __vasprintf_chk(char **ret, int flag, const char *format, va_list ap);
char *__strcat_chk(char *to, const char *from, size_t size);
void __vsyslog_chk(int priority, int flag, const char *format, va_list ap);

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

int __vfprintf_chk(FILE *f, int flag, const char *format, va_list ap)
{
    (void)flag;
    return vfprintf(f, format, ap);
}

int __fprintf_chk(FILE *f, int flag, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = __vfprintf_chk(f, flag, format, ap);
    va_end(ap);
    return n;
}

int __vsnprintf_chk(char *s, size_t n, int flag, size_t size, const char *format, va_list ap)
{
    (void)flag;
    return vsnprintf(s, n < size ? n : size, format, ap);
}

int __snprintf_chk(char *s, size_t n, int flag, size_t size, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int written = __vsnprintf_chk(s, n, flag, size, format, ap);
    va_end(ap);
    return written;
}

int __vasprintf_chk(char **ret, int flag, const char *format, va_list ap)
{
    (void)flag;
    return vasprintf(ret, format, ap);
}

char *__strcat_chk(char *to, const char *from, size_t size)
{
    size_t used = strlen(to);
    if (used + strlen(from) >= size)
        _exit(1);
    return strcpy(to + used, from);
}

void __vsyslog_chk(int priority, int flag, const char *format, va_list ap)
{
    (void)flag;
    vsyslog(priority, format, ap);
}
