/* run/plandir: where the helper's plans lie between `prepare` and `run`.
 *
 * Theory. A plan has a command's words and environment, and lives for some milliseconds. In a
 * directory of ours in memory it is never written to a disk, and two files and two directories less
 * are waited for while somebody else's fsync holds the journal of the file system: 1.3 ms of a cold
 * start. Whoever is killed leaves the directory to the next server, which takes it away (sys/leaf).
 * Where there is no memory file system, or a workspace shows it, the helper goes by TMPDIR.
 *
 * Must not: be under a place that commands see.
 */
#ifndef CODESPACE_RUN_PLANDIR_H
#define CODESPACE_RUN_PLANDIR_H

/* The memory file system that POSIX shared memory has on every Linux. */
#define PLANDIR_MEMORY "/dev/shm"

struct plandir {
    char *path; /* NULL = TMPDIR is to be used */
    int hold;
};

/* Make one under `parent`, unless it is NULL or not in memory. */
void plandir_open(struct plandir *d, const char *parent);
/* Remove it with everything in it. */
void plandir_close(struct plandir *d);

#endif
