/* sys/beside: our programs find each other in the directory that they are installed in.
 * Must not: look into PATH; a program of that name there is somebody else's.
 */
#ifndef CODESPACE_SYS_BESIDE_H
#define CODESPACE_SYS_BESIDE_H

/* The path of the executable `name` beside this program (caller frees), or NULL. */
char *beside_find(const char *name);

#endif
