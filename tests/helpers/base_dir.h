/* tests/helpers/base_dir: a private directory for tests of configurations. In texts '@' stands for
 * it; both its name and what a test makes in it are gone after the test program. */
#ifndef CODESPACE_TESTS_BASE_DIR_H
#define CODESPACE_TESTS_BASE_DIR_H

#include "core/registry.h"

#include <sys/types.h>

/* A configuration with the one workspace "demo", and its shortest root. */
#define WS(rest) "{\"workspaces\":{\"demo\":{" rest "}}}"
#define ROOT "\"root\":\"@/a\""

/* Group setup: @/a/in, @/b, @/a_secret, @/data, @/x=y, @/.dot, @/..., a name in UTF-8, @/tmp/in,
 * the file @/file and @/link -> @/a. Group teardown removes all of it. */
int base_dir_up(void **state);
int base_dir_down(void **state);

/* The canonical path of the directory. */
const char *base_dir(void);

/* `text` with every '@' replaced. Caller frees. */
char *base_dir_fill(const char *text);

void base_dir_mkdirs(const char *path);
void base_dir_write(const char *path, const char *text, mode_t mode);

/* Load a configuration text under the name "c.json", every '@' replaced. */
int base_dir_load(struct registry *r, const char *text, struct err *e);

#endif
