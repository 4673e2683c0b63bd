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

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Send `signal` to all of session `sid`, whose leader is our unreaped child. Returns how many live
 * processes other than the leader there were. */
unsigned session_signal(pid_t sid, int signal);

/* Of those that were found, so many are named. */
#define SESSION_NAMED_MAX 16

struct session_member {
    pid_t pid;
    char name[16]; /* what the process calls itself */
};

/* The same with KILL, and the first of them in `ret` (pid 0 after the last). */
unsigned session_end(pid_t sid, struct session_member ret[SESSION_NAMED_MAX]);

/* Reap the child behind pidfd, the leader of a session, when it has ended; what is left of its
 * group is killed first, while the unreaped leader still holds the number. (bubblewrap that is
 * killed while it sets up leaves a child behind that waits for ever.) With `walk`, and when it was
 * killed itself, all of the session is: that reads all of /proc. As spawn_reap. */
struct spawn_end;
int session_reap(int pidfd, bool walk, struct spawn_end *ret);

/* Kill all of many sessions, each led by an unreaped child of ours: one walk for all of them. The
 * ids are sorted in place. */
void session_kill_all(pid_t *sids, size_t n);

#endif
