/* sys/rmtree: removing whatever a name stands for, however hostile the tree below it is.
 *
 * Theory. Depth is not bounded by the kernel, so neither recursion nor a descriptor for each level
 * will do. A directory is emptied by moving the entries of its subdirectories up into it under
 * fresh names, until nothing but files and empty directories is left: two descriptors, any depth.
 *
 * Must not: follow a symbolic link, cross into another name of the parent.
 */
#ifndef CODESPACE_SYS_RMTREE_H
#define CODESPACE_SYS_RMTREE_H

/* Remove `name` in the directory dir_fd, and all below it; permissions of directories are added
 * where they are in the way. A tree of depth d takes about d passes; after `passes` of them -EBUSY
 * is returned, so that somebody who keeps filling the tree cannot hold us. 0 (also when there was
 * nothing), or -errno. */
int rmtree(int dir_fd, const char *name, unsigned passes);

#endif
