/* sys/tighten: giving up privileges for good: no_new_privs and a system call filter.
 * Must not: build filters; this only loads one that was built and checked elsewhere.
 */
#ifndef CODESPACE_SYS_TIGHTEN_H
#define CODESPACE_SYS_TIGHTEN_H

#include <stddef.h>

/* exec never grants anything again, to this process and its descendants. 0 or -errno. */
int tighten_no_new_privs(void);

/* Load `bytes` (struct sock_filter[], a multiple of 8) for this process and its descendants. Needs
 * no_new_privs. 0 or -errno. */
int tighten_load_filter(const void *bytes, size_t n);

#endif
