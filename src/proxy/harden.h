/* proxy/harden: what the proxy gives up before it reads the first untrusted byte.
 *
 * It should be left with: its sockets, memory, the clock, random bytes, standard error. It must not
 * be able to: open or create a file, start a program, look into or signal another process, gain
 * anything by a setuid program, be looked into (ptrace, core dumps), or keep a descriptor that
 * nobody meant for it.
 *
 * Descriptors first, before the program opens its own; then, when everything is read that has to be
 * read: limits, capabilities, no_new_privs, dumpable, and last the filter, which forbids the
 * others.
 */
#ifndef CODESPACE_PROXY_HARDEN_H
#define CODESPACE_PROXY_HARDEN_H

#include <stdbool.h>
#include <stddef.h>

/* Close every descriptor but 0, 1, 2 and those in `keep` (sorted here). 0 or -errno. */
int harden_descriptors(int *keep, size_t n);

/* Everything else but the filter. *ret_descriptors: how many there may be. 0 or -errno, and
 * *ret_step names the step that failed. */
int harden_process(unsigned *ret_descriptors, const char **ret_step);

/* The system call filter. 0 or -errno. A sanitizer's run-time needs what the filter forbids, so
 * instrumented builds have none: harden_has_filter() says which build this is. */
int harden_filter(void);
bool harden_has_filter(void);

#endif
