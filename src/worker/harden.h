/* worker/harden: the worker gives up what it does not need, first thing in main (R3).
 *
 * Should: not be dumpable (nobody of the same user reads its memory or attaches to it), write no
 * core file, drop what tells the loader to load something (LD_*), close every descriptor above the
 * standard ones, have all of those three.
 * Must not: be taken for a sandbox. It protects the worker, not the machine from a command; both
 * are separate facts and are reported as such.
 */
#ifndef CODESPACE_WORKER_HARDEN_H
#define CODESPACE_WORKER_HARDEN_H

/* 0, or -errno when one of the steps was refused. */
int harden_self(void);

#endif
