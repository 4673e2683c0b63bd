/* core/fingerprint: what makes two requests the same, for keys and holds.
 *
 * Theory. A key that is sent again is answered with what was done the first time, so two requests
 * may have one fingerprint only when they would have one effect: every field that changes the
 * effect goes in, each with its length, and nothing else does (the key itself, the work, how long
 * the caller wants to wait). What is left out and what is its default are the same.
 *
 * Must not: be kept with the text it stands for.
 */
#ifndef CODESPACE_CORE_FINGERPRINT_H
#define CODESPACE_CORE_FINGERPRINT_H

#include "core/ledger.h"
#include "core/patch.h"

#include <json-c/json_object.h>

/* Of a patch in one of its forms. The order of the expected versions does not matter. */
void fingerprint_patch(const char *workspace_id, const struct patch_request *q,
                       char ret[LEDGER_HASH_LEN]);

/* Of the undoing of an operation. */
void fingerprint_revert(const char *workspace_id, const char *operation_id, bool check_only,
                        bool lax, char ret[LEDGER_HASH_LEN]);

/* Of a tool's arguments, but for the members in `leave_out` (NULL-terminated). Members that are
 * null, false, "" or empty count as not there; the order of members does not matter. */
void fingerprint_arguments(const char *workspace_id, const char *tool, struct json_object *args,
                           const char *const *leave_out, char ret[LEDGER_HASH_LEN]);

#endif
