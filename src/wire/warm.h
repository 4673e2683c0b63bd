/* wire/warm: one command for a workspace's zygote, as one message.
 *
 * Theory. A zygote is the inner stage of a sandbox that stays (wire/helper, "zygote": true). What
 * it needs to know about a command is what differs from the plan that it was started with. The
 * message goes over its control socket (SOCK_SEQPACKET) together with WARM_FDS descriptors. From
 * there on the command's own control socket carries the lines of wire/helper as for a cold start,
 * with one line before them: an empty one, the receipt. Until the receipt nothing of the command
 * has run and its control socket may close, or tell `failed`, without any effect: it can be started
 * cold instead. After it, it must not be. After its last line process 1 closes its half of the
 * connection, whatever it does then: who waits for that alone is woken once by a short command.
 *
 * Layout, little-endian: magic, flags, lengths of cwd, argv and env; then these, each text with its
 * NUL, nothing between and nothing after. Must not: be trusted by the receiver.
 */
#ifndef CODESPACE_WIRE_WARM_H
#define CODESPACE_WIRE_WARM_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "wire/helper.h"

#include <stdbool.h>

/* A larger command is started cold: a message travels in one piece through a socket's buffer. */
#define WARM_MESSAGE_MAX (64u << 10)

/* The descriptors of a message, in this order. */
enum warm_fd { WARM_STDIN, WARM_STDOUT, WARM_STDERR, WARM_CONTROL, WARM_FDS };

struct warm_command {
    bool tty;
    bool keep;
    char *cwd;
    struct strv argv;
    struct strv env; /* laid over the plan's */
};

void warm_command_fini(struct warm_command *c);

/* What of `r` belongs to the command itself. */
void warm_command_write(const struct helper_request *r, struct buf *out);

/* Errors: PARSE_ERROR with what is wrong. */
int warm_command_read(const char *bytes, size_t n, struct warm_command *ret, struct err *e);

#endif
