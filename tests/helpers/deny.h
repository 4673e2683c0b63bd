/* tests/helpers/deny: make one system call fail for the rest of this process, as an old kernel or a
 * container's filter would. There is no way back: call it in a child or first thing in main.
 */
#ifndef CODESPACE_TESTS_DENY_H
#define CODESPACE_TESTS_DENY_H

/* From now on `number` fails with errnum. 0, or -errno when no filter can be installed. */
int deny_syscall(long number, int errnum);

#endif
