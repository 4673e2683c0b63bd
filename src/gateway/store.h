/* gateway/store: what of the gateway outlives a call: the ledger, and what a crash left behind.
 *
 * Theory. Opened before the first request is read, in an order that makes every later answer true:
 * the ledger; the journals of patches, whose leftovers are settled on the disk; commands that the
 * last gateway did not see the end of become lost; patches that it did not see the end of are
 * judged by the disk; holds of a person's approval are settled by what the operations say. Without
 * a file the ledger lives in memory and says so, and the journals lie in the user's state
 * directory, since what a crash left must be undone whoever starts next.
 *
 * Must not: open a ledger that a command of a workspace could read or write.
 */
#ifndef CODESPACE_GATEWAY_STORE_H
#define CODESPACE_GATEWAY_STORE_H

#include "base/buf.h"
#include "base/err.h"
#include "core/journal_roots.h"
#include "core/ledger.h"
#include "core/registry.h"

struct store {
    struct ledger *ledger;          /* never NULL once opened */
    struct journal_roots *journals; /* NULL = patches have no journal */
};

/* Open and recover. `path` NULL or "" = in memory. `commands_outlive`: a durable worker may still
 * have the commands of the last gateway; none is judged here. The workspaces of `r` that read the
 * whole file system do not see the ledger's files from here on. Errors: CONFIG_INVALID (it lies in
 * a workspace or a mount), LEDGER_FAILED. */
int store_open(struct store *s, const char *path, bool commands_outlive, struct registry *r,
               struct err *e);
/* The same for another file that says who may do what (`what` is its option), before the runner is
 * made: refused where a workspace shows it, and hidden from whoever would see it else. A `path` of
 * NULL or "" is none. Errors: CONFIG_INVALID. */
int store_keep_from_commands(struct registry *r, const char *what, const char *path, struct err *e);

/* Accepts one that was never opened. */
void store_close(struct store *s);

/* For --doctor: one line about the ledger that `path` names; makes and changes nothing. False when
 * a gateway could not use it. */
bool store_report(const char *path, struct buf *out);

#endif
