/* sandbox/report: what the place we are in really is, for the probe (R18, H14).
 *
 * Theory. The probe does not trust that what was asked for is there: a report made inside, in the
 * command's place, is compared with one made outside. Numbers only, so nothing has to be parsed
 * but one line. Must not: be used for anything but the probe.
 */
#ifndef CODESPACE_SANDBOX_REPORT_H
#define CODESPACE_SANDBOX_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum report_namespace {
    REPORT_USER,
    REPORT_MNT,
    REPORT_PID,
    REPORT_NET,
    REPORT_IPC,
    REPORT_UTS,
    REPORT_CGROUP,
    REPORT_NAMESPACES
};

struct report {
    uint64_t namespaces[REPORT_NAMESPACES]; /* inode numbers; 0 = not known */
    uint64_t no_new_privs;                  /* 1 */
    uint64_t seccomp;                       /* 2 = a filter */
    uint64_t capabilities;                  /* 0 = none */
    uint64_t parent;                        /* process id of the parent; 1 inside */
    uint64_t fresh_proc;                    /* 1: /proc shows this process under its own number */
};

/* Look at this process and where it is. */
void report_take(struct report *ret);

/* Take one and write it as a line of numbers. 0, or 1 when it could not be written. */
int report_write(int fd);

/* 0 or -EINVAL. */
int report_parse(const char *line, struct report *ret);

#endif
