/* sandbox/inner: process 1 of a sandbox (H2, H6-H8).
 *
 * Theory. bubblewrap has built the view and executes us, by descriptor, as the first process of
 * the new PID namespace. In this order: descriptors are put in place and everything else closed;
 * any capability left is a refusal (H7); privileges are given up and the filter loaded (H1); the
 * command is started; then one loop waits for the command, for signals, for the runner and for
 * the guard. Whatever ends the loop, everything else in the namespace is killed and reaped before
 * the verdict is sent, so nothing survives a command (E1-E6).
 *
 * The runner's end closing ends the sandbox; bubblewrap dying tells us by a signal as a second
 * line. Signals of the sandboxed processes themselves do nothing here.
 *
 * "From namespaces stand to exec" is one path, inner_serve(), which a zygote can use as well.
 *
 * Must not: read anything of the workspace, run code of the command, or exit with a live child.
 */
#ifndef CODESPACE_SANDBOX_INNER_H
#define CODESPACE_SANDBOX_INNER_H

/* The internal subcommand. `files` is the soft limit of open files to give back to the command (0 =
 * as it is). Exit status. */
int inner_main(int plan_fd, unsigned long files);

#endif
