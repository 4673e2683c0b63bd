/* sys/trusted: is a program one that only root and this user can change?
 *
 * Theory. A program that runs on the operator's side with the server's rights must not be one that
 * somebody else can exchange: the file that the path leads to (links are followed, because the
 * systems' own programs are links) and every directory on the way to it are looked at. Whether it
 * lies in a workspace is the caller's question, who knows them; it gets the real path for that.
 *
 * Must not: look at what the program does.
 */
#ifndef CODESPACE_SYS_TRUSTED_H
#define CODESPACE_SYS_TRUSTED_H

/* 0 with the real path in *ret_real (caller frees); -errno when it cannot be looked at (-ENOENT,
 * ...), -EPERM when it is refused, and then *ret_why is a clause that says why ("is ..."). */
int trusted_program(const char *path, char **ret_real, const char **ret_why);

#endif
