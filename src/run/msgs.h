/* run/msgs: between the structs of a runner and those of its protocol (wire/runmsg).
 *
 * The gateway's side writes requests and reads answers, the worker's side the other way round; both
 * halves stand here, so that a member that is added to one is missed in the other at once. "from"
 * functions borrow from the message, which must outlive what they fill.
 *
 * Must not: decide anything. What a message may hold is checked in wire/runmsg; what a command may
 * do is checked by the runner.
 */
#ifndef CODESPACE_RUN_MSGS_H
#define CODESPACE_RUN_MSGS_H

#include "run/runner.h"
#include "wire/runmsg.h"

void msgs_exec(const struct run_exec *x, struct runmsg_exec *ret);
/* The read that goes along; a part of the message of its own, because not every peer knows it. */
void msgs_first(const struct run_read *first, uint64_t hold_ms, struct runmsg_exec *ret);
/* `ret->ws` and `ret->first` are left to the caller. */
void msgs_exec_from(struct runmsg_exec *m, struct run_exec *ret);

/* A workspace of its own out of the message, its root opened. Errors: PROCESS_SPAWN_FAILED when the
 * root cannot be opened or is another directory than the sender's, CONFIG_INVALID. */
struct workspace *msgs_workspace_new(const struct runmsg_workspace *m, struct err *e);

/* The workspace's egress rules, as they are now. */
void msgs_rules(const struct workspace *ws, struct runmsg_rules *ret);
void msgs_ruled(const struct run_rules *outcome, struct runmsg_ruled *ret);
void msgs_ruled_from(struct runmsg_ruled *m, struct run_rules *ret);

void msgs_read(const struct run_read *x, struct runmsg_read *ret);
void msgs_read_from(const struct runmsg_read *m, struct run_read *ret);

void msgs_status(const struct run_status *s, struct runmsg_status *ret);
void msgs_status_from(struct runmsg_status *m, struct run_status *ret);

void msgs_page(const struct run_page *p, struct runmsg_page *ret);
void msgs_page_from(struct runmsg_page *m, struct run_page *ret);

void msgs_listing(const struct run_listing *l, struct runmsg_listing *ret);
/* Fresh items (caller frees) that borrow from the message. */
struct run_status *msgs_listing_from(struct runmsg_listing *m, struct run_listing *ret);

#endif
