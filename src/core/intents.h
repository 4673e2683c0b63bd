/* core/intents: instructions that people queue for a work: the inbox.
 *
 * Theory. draft -> queued -> claimed -> done | blocked, and cancelled from draft or queued. A draft
 * is never visible to a model. Claiming takes the lowest position that the work hands out now, in
 * one transaction, and freezes the text: who edits afterwards is told. Delivery says when:
 * next_checkpoint (any time), after_current_work (once the work is closing), next_work (never to
 * this one). A change carries the revision that its author saw; another's change in between is a
 * conflict, not an overwrite. An instruction gives no rights.
 *
 * A stop notice tells a model that its processes were stopped. It is claimed from birth, so nobody
 * can edit it away, and the next claim hands it out once, before anything else.
 *
 * All functions block on the ledger and may run on any thread. Errors of all: LEDGER_FAILED.
 */
#ifndef CODESPACE_CORE_INTENTS_H
#define CODESPACE_CORE_INTENTS_H

#include "base/err.h"
#include "core/ledger.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes of one instruction. */
#define INTENTS_BODY_MAX 65536u
/* Drafts and queued instructions of a workspace. */
#define INTENTS_OPEN_MAX 1000u
/* Rows of a list: default and largest. All bodies of a page are below 32 MiB. */
#define INTENTS_PAGE_DEFAULT 100u
#define INTENTS_PAGE_MAX 500u

enum intent_kind { INTENT_FOLLOW_UP, INTENT_NOTE, INTENT_STOP_NOTICE };
enum intent_delivery { INTENT_NEXT_CHECKPOINT, INTENT_AFTER_CURRENT_WORK, INTENT_NEXT_WORK };
enum intent_state {
    INTENT_DRAFT,
    INTENT_QUEUED,
    INTENT_CLAIMED,
    INTENT_DONE,
    INTENT_BLOCKED,
    INTENT_CANCELLED,
};

const char *intent_kind_name(enum intent_kind k);
const char *intent_delivery_name(enum intent_delivery d);
const char *intent_state_name(enum intent_state s);
/* The value of a word from outside, or -1. */
int intent_kind_of(const char *word);
int intent_delivery_of(const char *word);

struct intent {
    char *intent_id;
    char *work_id; /* NULL = waits for the next work */
    char *workspace_id;
    int64_t position;
    uint64_t revision;
    enum intent_kind kind;
    enum intent_delivery delivery;
    enum intent_state state;
    char *body;
    uint64_t created_ms, updated_ms, claimed_ms, completed_ms; /* 0 = not yet */
};

#define autointent __attribute__((cleanup(intent_fini))) struct intent
void intent_fini(struct intent *i);
void intents_free(struct intent *items, size_t n);

/* A draft, revision 1. On a closed work it becomes an unattached next_work draft. Errors:
 * WORK_NOT_FOUND, LIMIT_EXCEEDED and INVALID_ARGUMENT (body), RESOURCE_QUEUE_FULL. A stop notice
 * is made by intents_stop only: INVALID_ARGUMENT. */
int intents_add(struct ledger *l, const char *work_id, enum intent_kind kind,
                enum intent_delivery delivery, const char *body, struct intent *ret, struct err *e);

/* Errors: INTENT_NOT_FOUND. */
int intents_get(struct ledger *l, const char *intent_id, struct intent *ret, struct err *e);

/* The work's instructions and the workspace's unattached ones: claimed, queued, draft, the rest;
 * then by position. A page of `limit` rows (0 = INTENTS_PAGE_DEFAULT) from the offset-th on. The
 * caller frees with intents_free. Errors: WORK_NOT_FOUND, OUTPUT_LIMIT. */
int intents_list(struct ledger *l, const char *work_id, uint32_t offset, uint32_t limit,
                 struct intent **ret, size_t *ret_n, struct err *e);

/* Change a draft or queued instruction; delivery -1 = as it is. Errors of the three:
 * INTENT_NOT_FOUND, INTENT_ALREADY_CLAIMED, INTENT_NOT_EDITABLE (its state, or a stop notice);
 * INTENT_REVISION_CONFLICT; as intents_add for the body. */
int intents_edit(struct ledger *l, const char *intent_id, uint64_t revision, const char *body,
                 int delivery, struct intent *ret, struct err *e);
/* draft -> queued. */
int intents_queue(struct ledger *l, const char *intent_id, uint64_t revision, struct intent *ret,
                  struct err *e);
int intents_cancel(struct ledger *l, const char *intent_id, struct intent *ret, struct err *e);

/* ids must be exactly the queued instructions of the work, each once. Errors: WORK_NOT_FOUND,
 * WORK_CLOSED, INTENT_REVISION_CONFLICT (they are not). */
int intents_reorder(struct ledger *l, const char *work_id, const char *const *ids, size_t n,
                    struct err *e);

/* Leave a stop notice; reason NULL = a sentence of ours. On a closed work it is queued, unattached.
 * Errors: WORK_NOT_FOUND, LIMIT_EXCEEDED. */
int intents_stop(struct ledger *l, const char *work_id, const char *reason, struct intent *ret,
                 struct err *e);

/* Hand out the next instruction. 1: *ret is it. 0: nothing to hand out now. Errors:
 * WORK_NOT_FOUND, WORK_CLOSED. */
int intents_claim_next(struct ledger *l, const char *work_id, struct intent *ret, struct err *e);

/* claimed -> done, or blocked. Errors: INTENT_NOT_FOUND (also another work's), INTENT_NOT_EDITABLE
 * (not claimed). */
int intents_complete(struct ledger *l, const char *work_id, const char *intent_id, bool blocked,
                     struct intent *ret, struct err *e);

#endif
