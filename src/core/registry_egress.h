/* core/registry_egress: the keys of a workspace that say what its network reaches.
 *
 * Theory. The policy itself is wire/egress: its table reads the file here and the proxy's copy
 * later, so what is accepted at load is what is obeyed. It means something with "network":
 * "enabled" only, and written without it it is a mistake that is told at load.
 *
 * Must not: grant anything by itself: without "egress" an enabled network reaches nothing.
 */
#ifndef CODESPACE_CORE_REGISTRY_EGRESS_H
#define CODESPACE_CORE_REGISTRY_EGRESS_H

#include "base/err.h"
#include "core/registry.h"

struct registry_egress {
    struct json_object *egress;
    struct json_object *publish;
};

/* Into `ws`, whose network and root are set. Errors: CONFIG_INVALID with the key; `where` begins
 * messages. */
int registry_egress_take(const struct registry_egress *in, const char *where, struct workspace *ws,
                         struct err *e);

/* No command and no file tool of `ws` may reach the credentials of `other` (perhaps the same
 * workspace): a file that lies in `ws` or in a writable mount of it is refused, and from now on all
 * are hidden from it. Nor may one write the program of a command that prints one, or a file that it
 * names. Both are filled, `ws` is open. Errors: CONFIG_INVALID. */
int registry_egress_keep(const struct workspace *other, struct workspace *ws, struct err *e);

/* The operator's new rules for a running server, by the same reader as at load; on failure nothing
 * changes. Credentials stay as they were loaded: their files were checked against every workspace
 * then. On the loop's thread only, like every reader of them. Errors: CONFIG_INVALID. */
int registry_egress_replace(struct workspace *ws, struct json_object *egress, struct err *e);

/* The policy and the ports as text for another process, and back. *ret_policy is "" when the
 * network is restricted. */
void registry_egress_write(const struct workspace *ws, char **ret_policy, struct strv *ret_publish);
int registry_egress_read(const char *policy, const struct strv *publish, struct workspace *ws,
                         struct err *e);

#endif
