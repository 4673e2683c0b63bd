/* run/places: what stands on the host where a view was built from, as one number.
 *
 * Theory. A warm sandbox shows what stood there when it was built, so before each command all those
 * places are looked at again: which thing stands there, not what is in it (but a file may be a
 * pointer, .git). Most of them are the secrets of /etc, some forty names of which few exist. What
 * stands in a directory can only change together with the directory's own times, so for these it
 * is the directories that are looked at, and the names again only when one of them has changed. A
 * directory that changed so lately that another change could leave its times as they are is not
 * relied on. What is mounted in the workspace, or in a mount of the operator's, is looked up in the
 * table of mounts: a view keeps those it began with, so another one would be written under, or the
 * one that was unmounted kept busy.
 *
 * Must not: read what the view hides, or keep anything for a directory of the workspace, which
 * others fill at any time and may keep on another machine.
 */
#ifndef CODESPACE_RUN_PLACES_H
#define CODESPACE_RUN_PLACES_H

#include "base/str.h"
#include "wire/view.h"

#include <stdbool.h>
#include <stdint.h>

/* A directory's times are relied on when they are older than this: kernels count them in steps of
 * up to 10 ms. */
#define PLACES_SETTLED_MS 1000u

struct places {
    bool known; /* the rest is that of a look which can be relied on */
    uint64_t secrets;
    uint64_t dirs;
    struct strv there; /* the directories */
    bool watching;     /* table_fd is that of the mounts, or -1 when there is none */
    int table_fd;
    struct strv mounts; /* pairs: which one, and where */
};

/* The number for `v`. Two looks give the same when the same things stand there; `p`, zeroed at
 * first, is what one look leaves for the next. */
uint64_t places_print(struct places *p, const struct view *v);

void places_fini(struct places *p);

#endif
