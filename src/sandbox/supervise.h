/* sandbox/supervise: `run` for a person or a script: no control socket is given, so we keep one.
 *
 * Theory. bubblewrap runs as a child in its own process group; we read its events, pass signals
 * on, and end as the command ended: the same code, or the same signal. When the wrapper failed we
 * say so with our prefix and a code of sandbox/exits, so the two are never mixed up (H13). Our own
 * death closes the socket, which ends the sandbox; when process 1 is killed we sweep in its place
 * (sandbox/secondline).
 *
 * Must not: touch the command's input and output; it has our descriptors 0, 1 and 2.
 */
#ifndef CODESPACE_SANDBOX_SUPERVISE_H
#define CODESPACE_SANDBOX_SUPERVISE_H

/* Run the plan to its end. Exit status; does not return when the command died of a signal. */
int supervise_main(const char *path);

#endif
