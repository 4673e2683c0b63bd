/* sys/notify: a system call filter whose refusals are told to us (seccomp user notification).
 *
 * Theory. A filter may leave the answer to whoever holds its listener: the caller waits in the
 * kernel until it is given one. We only ever answer with an errno, so nothing that the caller could
 * change meanwhile decides anything. A chain of filters has one listener at most (-EBUSY).
 *
 * Must not: let a call go on (SECCOMP_USER_NOTIF_FLAG_CONTINUE); what was looked at could be
 * exchanged in between.
 */
#ifndef CODESPACE_SYS_NOTIFY_H
#define CODESPACE_SYS_NOTIFY_H

#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* As tighten_load_filter(), and open a listener: its descriptor (close-on-exec) or -errno. */
int notify_load_filter(const void *bytes, size_t n);

/* One call that waits, after poll said that there is one. 1, 0 when the caller has gone, -errno. */
int notify_receive(int fd, uint64_t *ret_id, struct seccomp_data *ret);

/* It fails with `error` (an errno above 0). A caller that has gone is no failure. 0 or -errno. */
int notify_refuse(int fd, uint64_t id, int error);

#endif
