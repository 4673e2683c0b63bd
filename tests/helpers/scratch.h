/* tests/helpers/scratch: a workspace in a directory of its own below /tmp, for tests of core.
 *
 * The directory holds `ws` (the root) and whatever a test puts beside it to prove that it stays
 * untouched. scratch_down() removes all of it.
 */
#ifndef CODESPACE_TESTS_SCRATCH_H
#define CODESPACE_TESTS_SCRATCH_H

#include "base/buf.h"
#include "core/registry.h"

#include <stdbool.h>
#include <stddef.h>

struct scratch {
    char dir[64];        /* the directory around it */
    int dir_fd;          /* O_PATH */
    struct workspace ws; /* root = dir/ws, workspace-write */
};

/* For cmocka: *state becomes a struct scratch. Below /tmp, or below another directory. */
int scratch_up(void **state);
int scratch_up_below(void **state, const char *parent);
int scratch_down(void **state);

/* Paths are relative to the root; "../x" is beside it. Missing directories are made. */
void scratch_put(struct scratch *s, const char *path, const char *text);
void scratch_put_bytes(struct scratch *s, const char *path, const void *bytes, size_t n);
void scratch_mkdir(struct scratch *s, const char *path);

/* The content (caller frees with buf_fini); fails the test when there is none. */
struct buf scratch_get(struct scratch *s, const char *path);
bool scratch_has(struct scratch *s, const char *path);

/* Fails the test unless the file holds exactly this. */
void scratch_expect(struct scratch *s, const char *path, const char *text);

/* Names below the root that begin with ".codespace-": what we must never leave behind. */
size_t scratch_leftovers(struct scratch *s);

#endif
