/* sys/filemeta: what a file is besides its bytes: telling whether it is still the same, and giving
 * a new file the owner, mode, extended attributes and access control list of an old one (F12).
 *
 * Theory. Replacing a file by a new one and a rename must not lose these. Owner and group are kept
 * where the kernel allows it; where it does not, the set-id bits are dropped, since they would now
 * speak for somebody else. Attributes that cannot be written (a security module's, another file
 * system's) are left to what the kernel gave the new file.
 *
 * Must not: touch the old file.
 */
#ifndef CODESPACE_SYS_FILEMETA_H
#define CODESPACE_SYS_FILEMETA_H

#include <stdbool.h>
#include <sys/stat.h>

/* Names of one file's attributes, and one value; the kernel's own limits. */
#define FILEMETA_LIST_MAX 65536
#define FILEMETA_VALUE_MAX 65536

/* Is it still the same file with, as far as its size and times tell, the same bytes? */
bool filemeta_same(const struct stat *a, const struct stat *b);

/* Has the file no extended attributes and no access control list? Unsure = false. */
bool filemeta_is_plain(int fd);

/* Copy from `from_fd` (any descriptor that can be read; -1 for a file that is plain), whose fstat
 * is *from, to `to_fd`, whose fstat is *to. 0 or -errno. */
int filemeta_copy(int from_fd, const struct stat *from, int to_fd, const struct stat *to);

#endif
