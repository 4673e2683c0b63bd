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
 * "From namespaces stand to the verdict" is one path, inner_settle() and inner_run(), for a cold
 * start and for the children of a zygote (sandbox/zygote) alike.
 *
 * Must not: read a file of the workspace (names are looked at: guard, walk), run code of the
 * command, or exit with a live child.
 */
#ifndef CODESPACE_SANDBOX_INNER_H
#define CODESPACE_SANDBOX_INNER_H

#include "sandbox/child.h"
#include "sandbox/control.h"
#include "sandbox/group.h"
#include "sandbox/guard.h"
#include "sandbox/listings.h"
#include "sandbox/refusals.h"
#include "wire/plan.h"

#include <stdbool.h>
#include <sys/types.h>

/* Where the control socket lives once the descriptors are in order. */
#define INNER_CONTROL_FD 3
/* Where the events of the limits are that tell (sandbox/group), in the order of enum group_event.
 */
#define INNER_EVENTS_FD 4
/* Where the egress proxy, or the zygote for it, tells what it refuses, if there is a network. */
#define INNER_NETWORK_FD (INNER_EVENTS_FD + GROUP_EVENTS)
/* The plan, until the command runs: its file has no name any more, so the last to close it pays for
 * taking it off the disk, and then somebody waits for that. */
#define INNER_PLAN_FD (INNER_NETWORK_FD + 1)
/* Sent by the kernel when bubblewrap dies, and by a zygote that ends. Not KILL: the guard still has
 * to sweep. */
#define INNER_DEATH_SIGNAL SIGPWR

struct inner {
    struct control control; /* its fd is INNER_CONTROL_FD */
    struct plan plan;
    struct guard guard;
    struct refusals refusals;
    bool tells[GROUP_EVENTS]; /* its INNER_EVENTS_FD is open */
    bool network;             /* INNER_NETWORK_FD is open */
    int64_t lost6;            /* sandbox/netlost, when the command began */
    bool warm;                /* the plan is older than the command (wire/warm) */
    bool quiet;               /* the start is not told */
    int self_fd;              /* of this process, for the receipt; -1 = not there yet */
    int taken_fd; /* of a zygote's child, until the zygote knows that it has a command; or -1 */
    unsigned char slot;        /* what it is told there */
    struct listings *listings; /* of the workspace, the zygote's; or NULL */
    int signal_fd;
    int clock_fd; /* wakes us when the command is to be told of; -1 = nobody waits ahead */
    struct child_start child;
    int (*arrive)(void *user); /* of inner_run_ahead() */
    void *arrive_user;
    bool begun;        /* the command has executed: the control socket is its own */
    uint64_t early_us; /* of processor time that its process took before it was the command's */
    pid_t command;
    bool untold;                   /* it runs, and the runner does not know yet */
    bool ended;                    /* the command itself was reaped */
    bool keeping;                  /* its end was told; what it left is waited for */
    bool alone;                    /* nothing but us is left */
    int status;                    /* of waitpid */
    uint64_t started_us, ended_us; /* as of struct helper_verdict's at_us */
    bool closed;                   /* the runner or bubblewrap is gone */
};

/* Process 1 in its place: checked, without privileges, filtered. 0, or an exit status that was told
 * on the control socket. */
int inner_settle(struct inner *in);

/* Go through the memory that inner_run() will need, with nothing at stake, and open what it will
 * send (sandbox/zygote). */
void inner_rehearse(struct inner *in);

/* The command from its start to its verdict. Exit status. */
int inner_run(struct inner *in, unsigned long files);

/* The same with the command's process made ahead. `arrive` runs in it: it waits for the command,
 * fills in->plan, calls inner_begin() and returns 0, or an exit status + 1. Exit status. */
int inner_run_ahead(struct inner *in, unsigned long files, int (*arrive)(void *user), void *user);
/* The last looks before the command, and the receipt. 0, or an exit status that was told. */
int inner_begin(struct inner *in);

/* Tell the zygote, if there is one and it was not told. */
void inner_tell_taken(struct inner *in);

/* The internal subcommand. `files` is the soft limit of open files to give back to the command (0 =
 * as it is). `quiet`: nobody waits for the start, so it is not told. Exit status. */
int inner_main(int plan_fd, unsigned long files, bool quiet);

#endif
