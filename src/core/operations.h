/* core/operations: what was done under which key, so that a retry does not do it twice.
 *
 * Theory. Every patch that gets as far as being looked at is an operation with an id of its own. A
 * client that gives it an operation_key may send the same request again and gets what happened the
 * first time; another request under that key is refused. Keys belong to a workspace. Kept in
 * memory, bounded, oldest first out; a ledger on disk takes this place later, behind the same
 * functions. The caller serialises operations of one workspace, so none is found half done.
 *
 * Must not: run anything, or keep the text of a patch.
 */
#ifndef CODESPACE_CORE_OPERATIONS_H
#define CODESPACE_CORE_OPERATIONS_H

#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "core/patch.h"

/* Keys remembered; an agent's session has some hundreds. */
#define OPERATIONS_MAX 1024u
/* Changes remembered over all operations, about 200 bytes each. */
#define OPERATIONS_CHANGES_MAX 65536u
/* Bytes of an operation_key. */
#define OPERATIONS_KEY_MAX 256u

struct operation {
    struct list node; /* by age */
    char *id;         /* "op-<uuid>" */
    char *slot;       /* workspace and key; NULL while it is not kept */
    char fingerprint[FILES_VERSION_LEN];
    struct patch_result result; /* status rejected when it was refused */
    struct err refusal;         /* why, with rejected */
};

struct operations {
    struct map by_slot;
    struct list order;
    size_t n;
    size_t changes;
};

void operations_init(struct operations *o);
void operations_fini(struct operations *o);

/* What makes two requests the same: the workspace, the patch, the expected versions (in any order)
 * and whether it only checks. */
void operation_fingerprint(const char *workspace_id, const struct patch_request *request,
                           char ret[FILES_VERSION_LEN]);

/* 1: *ret is the operation of that key (borrowed until the next operations_keep). 0: there is none.
 * -1: OPERATION_KEY_CONFLICT. `key` may be NULL: then there is none. */
int operations_find(const struct operations *o, const char *workspace_id, const char *key,
                    const char *fingerprint, const struct operation **ret, struct err *e);

/* A new operation with a fresh id. Freed by operation_free() unless it is kept. */
struct operation *operation_new(void);
void operation_free(struct operation *op);

/* Remember `op` under the key; takes it. Forgets the oldest when a limit is met. */
void operations_keep(struct operations *o, const char *workspace_id, const char *key,
                     struct operation *op);

#endif
