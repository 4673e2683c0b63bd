/* core/ledger_file: the ledger's file before SQLite sees it: whose it is, what it is, and who has
 * it.
 *
 * Theory. SQLite opens what a path names. So the path is checked first: parents are made or must be
 * ours, the file and SQLite's side files must be plain files of ours. A directory that only we (or
 * root) may change makes the answer stay true until SQLite opens the name. Existing files are
 * looked at through O_PATH descriptors: closing an ordinary descriptor would drop the POSIX locks
 * that SQLite holds on the same file in this process.
 *
 * Must not: follow a symbolic link in the last component; delete anything (unlinking a lock file
 * lets two processes lock two different files of one name).
 */
#ifndef CODESPACE_CORE_LEDGER_FILE_H
#define CODESPACE_CORE_LEDGER_FILE_H

#include "base/err.h"

#include <stdbool.h>

/* Resolve `path`: with `create`, missing parents are made 0700. *ret is the real directory and the
 * last component; the caller frees. Errors: LEDGER_FAILED. */
int ledger_file_resolve(const char *path, bool create, char **ret, struct err *e);

/* Take FILE-gateway for this process. A descriptor that holds the lock until it is closed, or -1.
 * `file` comes from ledger_file_resolve. */
int ledger_file_lock(const char *file, struct err *e);

/* Check the file and its side files; with `create`, a missing file is made 0600, and an existing
 * one is brought to 0600. 0 or -1. */
int ledger_file_check(const char *file, bool create, struct err *e);

/* Is there a log with something in it? Whoever closes the ledger folds it and takes it away. */
bool ledger_file_was_open(const char *file);

#endif
