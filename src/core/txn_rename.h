/* core/txn_rename: a rename that never replaces.
 *
 * Where the file system has no such call, a link and an unlink do the same; where it has no links
 * either, or for a directory, looking first is the only way, and somebody quicker could be
 * replaced.
 *
 * Must not: be used by others than core/txn.
 */
#ifndef CODESPACE_CORE_TXN_RENAME_H
#define CODESPACE_CORE_TXN_RENAME_H

/* Both names are in the directory. 0 or -errno; -EEXIST when `to` is taken. */
int txn_rename_new(int dir, const char *from, const char *to);

#endif
