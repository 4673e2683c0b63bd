/* sandbox/prepare: from a request to a plan. The one place where things are decided and refused;
 * `run` only carries out. Must not: start anything.
 */
#ifndef CODESPACE_SANDBOX_PREPARE_H
#define CODESPACE_SANDBOX_PREPARE_H

#include "base/err.h"
#include "wire/helper.h"
#include "wire/plan.h"

/* Name of the plan file and beginning of its directory's name. */
#define PREPARE_DIR_PREFIX "codespace-sandbox-"
#define PREPARE_FILE "plan"

/* Write the plan for `r` into a private file; *ret_path is its path (caller frees), ret_guards
 * (NULL = not wanted) what is guarded in it. Errors: INVALID_COMMAND, SANDBOX_UNAVAILABLE,
 * LIMIT_EXCEEDED, PROCESS_SPAWN_FAILED. */
int prepare_plan(const struct helper_request *r, char **ret_path, struct strv *ret_guards,
                 struct err *e);

/* The same into *p, which is zeroed; nothing is stored. Errors as above; plan_fini() in any case.
 */
int prepare_fill(const struct helper_request *r, struct plan *p, struct err *e);

/* Read a request from `fd` to its end. Errors: INVALID_COMMAND. */
int prepare_read_request(int fd, struct helper_request *ret, struct err *e);

/* A plan whose command is our own report of what is seen inside, in a memory file (caller closes
 * *ret_fd): whoever is killed in the middle of a trial leaves nothing on disk. Errors as above. */
int prepare_report(const struct helper_request *r, int *ret_fd, struct err *e);

/* The subcommand: request on stdin, answer on stdout. Exit status. */
int prepare_main(void);

#endif
