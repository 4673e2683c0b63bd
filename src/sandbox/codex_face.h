/* sandbox/codex_face: our helper entered as `codex-linux-sandbox` (H5).
 *
 * Theory. The same command line and permission profile as that program's, run through the same
 * view, filter and process 1 as everything else of ours. Where ours is stricter it stays stricter:
 * secrets are hidden when the whole file system is readable, /tmp is private unless it is granted,
 * every other process of the host is out of sight. A profile that lets the whole disk be written
 * and does not route the network is not a matter for a view: then only the filter is laid on (H11).
 *
 * --use-legacy-landlock (H9) is the caller's explicit choice and deprecated: no view, but the
 * kernel's Landlock and the filter. It keeps a disk read-only as a whole, TCP away and, from
 * version 6 on, others' abstract sockets and processes; it can neither hide nor keep something
 * inside a writable place, and such profiles are refused with it. It cannot keep modes, owners and
 * times of files, nor sockets that have a path.
 *
 * Must not: fall back: what is asked for and not offered (host network beside a restricted file
 * system, the managed proxy, the caller's PID namespace) is refused by name.
 */
#ifndef CODESPACE_SANDBOX_CODEX_FACE_H
#define CODESPACE_SANDBOX_CODEX_FACE_H

#include <stdbool.h>

#define CODEX_FACE_NAME "codex-linux-sandbox"

/* The words of main(). Exit status; does not return when it becomes the command. */
int codex_face_main(char **words);

/* Whether the text of /proc/version is that of the first WSL, which has no namespaces. */
bool codex_face_is_wsl1(const char *version);

#endif
