/* sandbox/check: the subcommand `probe`: is there a sandbox here, and what is in it?
 *
 * Theory. It is tried for real: a plan for an empty workspace is prepared and run whose command is
 * our own report (sandbox/report), and that is compared with one made here. When it fails, what
 * bubblewrap or the inner stage said, and the facts of this host, select one cause of wire/probe.
 *
 * Must not: guess: a failure that fits no row is "other" with the words of who failed.
 */
#ifndef CODESPACE_SANDBOX_CHECK_H
#define CODESPACE_SANDBOX_CHECK_H

#include "wire/probe.h"

/* Never fails; takes at most CHECK_SECONDS. */
#define CHECK_SECONDS 5
void check_sandbox(struct probe_result *ret);

enum check_output { CHECK_QUIET, CHECK_JSON, CHECK_EXPLAIN };

/* The subcommand: 0 when the sandbox works, 1 when not. */
int check_main(enum check_output output);

/* The cause that `words` (bubblewrap's, or the inner stage's) stand for. */
enum probe_cause check_cause(const char *words);

#endif
