/* core/root: the directories an operator names: workspace roots and mounts.
 *
 * Theory. What the operator names is checked once, as text and then on disk, and what is opened is
 * what was checked: the descriptor and the canonical name are compared. A writable directory must
 * not be one through which a command could change the machine, another user's files or this
 * server's own plans; the table in root.c says which.
 *
 * Must not: be asked about a path that a client sent. That is sys/path.
 */
#ifndef CODESPACE_CORE_ROOT_H
#define CODESPACE_CORE_ROOT_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct root {
    char *path; /* canonical; caller frees */
    int fd;     /* O_PATH|O_DIRECTORY; caller closes */
    dev_t dev;
    ino_t ino;
};

/* Whether `path` is `dir` or lies in it, by whole components ("/ws_x" is not in "/ws"). Both
 * normal. Lexical. */
bool root_within(const char *path, const char *dir);

/* Absolute, and without empty, "." and ".." components. Errors: CONFIG_INVALID. */
int root_check_normal(const char *path, struct err *e);

/* Normal, and no component that exists is a symbolic link, so that what is named is what is mounted
 * or hidden. Errors: CONFIG_INVALID with the real name. */
int root_check_canonical(const char *path, struct err *e);

/* May commands be let into this canonical directory, and may they write there? Errors:
 * CONFIG_INVALID with the rule. */
int root_check_place(const char *path, bool writable, struct err *e);

/* Open a directory (symbolic links allowed: the operator wrote them) and check its place. */
int root_open(const char *path, bool writable, struct root *ret, struct err *e);

#endif
