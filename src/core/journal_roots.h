/* core/journal_roots: the journal of each workspace root (core/journal), in one private directory.
 *
 * Theory. A root's journal is found by its path, so that whoever starts next finds what a crash
 * left. One server may have a root's journal open; several servers on one root (a client starts one
 * each) take a slot each, and whoever starts settles every slot that nobody holds. So nobody has to
 * be asked, and no server keeps another one from patching.
 *
 * Settling comes at start, before anything is read: what a reader sees after a crash is what was
 * before a patch, or after it. The journal itself is opened with the first patch of its root.
 *
 * Functions block. journal_roots_get() may run on any thread; the journal that it gives is for one
 * patch at a time, as the caller's lane sees to. Must not: lie where a command can write.
 */
#ifndef CODESPACE_CORE_JOURNAL_ROOTS_H
#define CODESPACE_CORE_JOURNAL_ROOTS_H

#include "base/err.h"
#include "core/journal.h"
#include "core/registry.h"

/* Servers that journal patches of one root at the same time. */
#define JOURNAL_SLOTS 8u

struct journal_roots;

/* Open the directory, made 0700 with its missing parents. Errors: FILE_OPERATION_FAILED;
 * CONFIG_INVALID when others may write to it. The caller frees. */
int journal_roots_open(const char *path, struct journal_roots **ret, struct err *e);
/* Accepts NULL. */
void journal_roots_free(struct journal_roots *j);

/* Settle what a crash left of the workspace's root; each slot that had something is told by a
 * warning. What cannot be settled is left and told, too. The number settled. */
unsigned journal_roots_settle(struct journal_roots *j, const struct workspace *ws);

/* The journal of the workspace's root, ready for a transaction; NULL when all slots are taken by
 * other servers. Borrowed. Errors: FILE_OPERATION_FAILED. */
int journal_roots_get(struct journal_roots *j, const struct workspace *ws, struct journal **ret,
                      struct err *e);

#endif
