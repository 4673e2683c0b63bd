/* core/exec_limits: limits of what one command may be given. What is over one is refused before
 * anything starts; workspace_info shows them.
 */
#ifndef CODESPACE_CORE_EXEC_LIMITS_H
#define CODESPACE_CORE_EXEC_LIMITS_H

/* The kernel takes no single argument or variable of 128 KiB or more (MAX_ARG_STRLEN). */
#define EXEC_STRING_MAX 131071u
/* And about 2 MiB for all of them and their pointers together with the usual stack limit; the
 * sandbox adds some of its own. */
#define EXEC_TOTAL_MAX 1572864u
#define EXEC_ARGV_MAX 16384u
#define EXEC_ENV_MAX 1024u
/* Rows and columns of a terminal; more is a mistake. */
#define EXEC_TERMINAL_MAX 1000u

#endif
