/* sandbox/musl: what the helper uses of Linux and musl 1.2.3 does not declare.
 *
 * Theory. Every exec of a program that stands on glibc asks the processor about itself some fifty
 * times before main(), and in a virtual machine each question costs 10 us; a cold start executes
 * us three times. musl asks nothing. So where musl is installed the helper is built on it
 * (meson.build here; docs/decisions/0010-musl.md). This header is then included before each source
 * file; on glibc neither it nor musl.c is compiled.
 *
 * Must not: declare anything that musl declares itself.
 */
#ifndef CODESPACE_SANDBOX_MUSL_H
#define CODESPACE_SANDBOX_MUSL_H

#include <linux/stat.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>

/* What is faster on some processors is not asked for: one use of this brings in a constructor of
 * libgcc that asks a dozen questions before main(), too, and our texts are short. */
#define __builtin_cpu_supports(feature) 0

/* The same number on every architecture. */
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

/* The words that everybody else here uses for an errno. */
char *musl_strerror(int errnum);
#define strerror musl_strerror

/* GNU's: returns the text, which need not be in `text`. */
char *musl_strerror_r(int errnum, char *text, size_t size);
#define strerror_r musl_strerror_r

int close_range(unsigned first, unsigned last, int flags);
int statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret);
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);

#endif
