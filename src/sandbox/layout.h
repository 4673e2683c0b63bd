/* sandbox/layout: the file system of a sandbox as a list of mounts, put into the one right order.
 *
 * Theory. Everything that the view is made of is added here as an item: one path, one kind, and a
 * rank that decides between two items of one path (the higher one is kept). The list is then
 * written in tree order, parents before children, so a deeper item is always laid over a shallower
 * one and no order of adding can undo a wall (A30). What hides is written only where something of
 * the host would show; mount points are made in our own tmpfs only, never on the host (A7).
 *
 * What only covers or fixes a path that is there already is left to process 1 (sandbox/masks) where
 * the kernel allows that, because it costs bubblewrap a reading of the whole mount table each.
 *
 * This is the interface behind which a builder other than bubblewrap may stand one day: only
 * layout_write() knows bubblewrap's words.
 *
 * Must not: look at the file system; who adds an item has looked.
 */
#ifndef CODESPACE_SANDBOX_LAYOUT_H
#define CODESPACE_SANDBOX_LAYOUT_H

#include "base/err.h"
#include "base/map.h"
#include "wire/plan.h"

#include <stdbool.h>
#include <stddef.h>

enum layout_kind {
    LAYOUT_TMPFS,     /* private and writable, `source` = size in bytes or NULL */
    LAYOUT_DIR,       /* a directory in our tmpfs */
    LAYOUT_LINK,      /* a symbolic link to `source` */
    LAYOUT_HOST,      /* host path `source`, read-only; a place that only root can change */
    LAYOUT_BIND,      /* the same path of the host, read-only, opened by descriptor at run */
    LAYOUT_BIND_RW,   /* the same, writable */
    LAYOUT_DEVICE,    /* a device of the host, or a directory of them */
    LAYOUT_HIDE_DIR,  /* an empty read-only directory in its place */
    LAYOUT_HIDE_FILE, /* an empty read-only file in its place */
};

/* Of two items with one path the one with the higher rank stands. */
enum layout_rank {
    LAYOUT_RANK_PRIVATE,
    LAYOUT_RANK_SECRET, /* default tables */
    LAYOUT_RANK_PLATFORM,
    LAYOUT_RANK_FENCE, /* a directory that must not be renamed */
    LAYOUT_RANK_MOUNT,
    LAYOUT_RANK_WORKSPACE,
    LAYOUT_RANK_HIDDEN, /* the operator's list */
    LAYOUT_RANK_PROTECTED,
};

struct layout_item {
    char *path;
    char *source;
    enum layout_kind kind;
    enum layout_rank rank;
    bool holds; /* layout_write(): something that bubblewrap mounts lies below */
    bool first; /* layout_write(): without it there would be nothing at its path */
};

/* What of /proc is the machine's and may be written by the host's root without any capability,
 * beside what bubblewrap lays over. NULL-terminated; a kernel has some of them. */
extern const char *const layout_machine[];

struct layout {
    bool machine[8];     /* these of layout_machine are there, and the command is the host's root */
    bool whole;          /* the base is the whole host, read-only; else an empty tmpfs */
    bool inherited_proc; /* the /proc that is there, read-only, instead of a fresh one */
    size_t masks;        /* process 1 lays what it can when it is that much; 0 = never */
    struct layout_item *items;
    size_t n;
    size_t cap;
    struct map places; /* path: the number from 1 of the item that stands there now */
};

void layout_fini(struct layout *l);

void layout_add(struct layout *l, enum layout_kind kind, enum layout_rank rank, const char *path,
                const char *source);

/* The innermost writable bind that holds `path`, or NULL when none does or something read-only
 * lies between. Only items added so far count. */
const struct layout_item *layout_writable(const struct layout *l, const char *path);

/* Give every directory that exists between the writable bind around `path` and `path` a mount of
 * its own, so that it cannot be renamed (A1, A2). */
void layout_fence(struct layout *l, const char *path);

/* Append the mounts to p->args and p->masks, and what they need opened to p->sources. Errors:
 * LIMIT_EXCEEDED. */
int layout_write(struct layout *l, struct plan *p, struct err *e);

/* A read-only file with this text in the place of one that is there. */
void layout_text(struct plan *p, const char *text, const char *path);

/* The machine's name inside. */
#define LAYOUT_HOSTNAME "codespace"

/* Append words to the arguments of bubblewrap, up to a NULL. */
void layout_args(struct plan *p, ...) __attribute__((sentinel));

#endif
