/* run/gate: whose turn it is on a root directory.
 *
 * Theory. Commands of one root run side by side, unless one asks to be alone (exclusive). Then it
 * waits until the others have ended, and who comes later waits behind it: first come, first served,
 * so nobody starves. A root is a directory by device and inode, not a workspace by id: two names of
 * one directory are one root. Who waits is limited in number here and in time by the owner.
 *
 * Must not: know about processes; call out while its lists are half changed.
 */
#ifndef CODESPACE_RUN_GATE_H
#define CODESPACE_RUN_GATE_H

#include "base/err.h"
#include "base/list.h"

#include <stdbool.h>
#include <sys/types.h>

struct pass;
typedef void (*gate_fn)(void *user, struct pass *p);

struct gate {
    struct list roots;
    gate_fn opens; /* a pass that waited is in now */
    void *user;
    bool closed; /* nobody is let in any more */
};

/* A place on a root, inside the struct of its owner. */
struct pass {
    struct list link; /* in its root's queue while it waits */
    struct gate *gate;
    struct gate_root *root; /* NULL = neither waiting nor in */
    bool exclusive;
    bool in;
};

void gate_init(struct gate *g, gate_fn opens, void *user);
/* Let nobody in from now on; passes may still leave. */
void gate_close(struct gate *g);
/* All passes must have left. */
void gate_fini(struct gate *g);

/* Would one more have to wait behind RUN_QUEUE_MAX others? Errors: RESOURCE_QUEUE_FULL. */
int gate_check_room(const struct gate *g, dev_t dev, ino_t ino, bool exclusive, struct err *e);

void pass_init(struct pass *p);
/* True when it is in; false when it waits for `opens`. */
bool gate_enter(struct gate *g, struct pass *p, dev_t dev, ino_t ino, bool exclusive);
/* Out, or out of the queue; lets the next ones in. Fine when it never entered. */
void pass_leave(struct pass *p);

#endif
