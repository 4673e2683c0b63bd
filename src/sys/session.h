/* sys/session: signalling all of a session.
 *
 * Theory. A command that runs without a PID namespace is the leader of its own session. Its
 * children stay in the session whatever group a shell puts them in, until one calls setsid. The
 * leader's group gets the signal at once; the others are found in /proc, and each is opened as a
 * pidfd and checked again before it is signalled, so a number that was used again is not hit.
 *
 * Must not: be called after the leader was reaped (its number could name another session), or be
 * taken for a wall: a process that left the session is not found.
 */
#ifndef CODESPACE_SYS_SESSION_H
#define CODESPACE_SYS_SESSION_H

#include <sys/types.h>

/* Send `signal` to all of session `sid`, whose leader is our unreaped child. Returns how many live
 * processes other than the leader there were. */
unsigned session_signal(pid_t sid, int signal);

#endif
