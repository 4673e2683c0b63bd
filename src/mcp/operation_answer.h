/* mcp/operation_answer: an operation of the ledger as clients see it.
 *
 * One place for the words, so that a repeated key, operation_status, list_operations and the result
 * of an approved call say the same of the same operation. The result of apply_patch is written from
 * the ledger's record whether it happened now or a year ago.
 */
#ifndef CODESPACE_MCP_OPERATION_ANSWER_H
#define CODESPACE_MCP_OPERATION_ANSWER_H

#include "base/jsonw.h"
#include "core/operations_store.h"
#include "mcp/tool.h"

/* Members `files` and `changes`. */
void operation_write_changes(struct jsonw *w, const struct patch_change *changes, size_t n);

/* The members of an answer of apply_patch, from the record. */
void operation_write_patch(struct jsonw *w, const struct op_record *r, bool replayed);

/* The same as a JSON document, for approvals_recover(). `user` is not used. */
void operation_render(void *user, const struct op_record *record, struct buf *ret);

/* The members of an entry of list_operations; with `whole` those of operation_status. */
void operation_write_record(struct jsonw *w, const struct op_record *r, bool whole);

/* Output fields of apply_patch and revert_operation. */
#define OPERATION_PATCH_OUT                                                                        \
    {"status", OUTPUT_STR, true,                                                                   \
     "applied, checked, rejected, failed_rolled_back, failed_partial or unknown."},                \
        {"operation_id", OUTPUT_STR, true, NULL},                                                  \
        {"replayed", OUTPUT_BOOL, true, "What an earlier request with this operation_key did."},   \
        {"files", OUTPUT_STRS, true, "Paths that the patch touches."},                             \
        {"changes", OUTPUT_OBJS, true,                                                             \
         "path, kind (add, update, delete, move), before_version and after_version, fuzzy."},      \
        {"durable", OUTPUT_BOOL, false, "Applied, and on the disk now."},                          \
        {"diff", OUTPUT_STR, false, "With check_only: what it would do, as a unified diff."},      \
        {"diff_lossy", OUTPUT_BOOL, false, "The files are not UTF-8; the diff shows U+FFFD."},     \
        {"truncated", OUTPUT_BOOL, false, "With a diff: it is longer, or too long to be made."},   \
        {"failure", OUTPUT_STR, false, "Why writing failed."},                                     \
        {"ledger_error", OUTPUT_STR, false,                                                        \
         "The end could not be recorded; the files are as `status` says."},                        \
        {"error", OUTPUT_OBJ, false, "With a replayed rejected: the code and message of then."},   \
    {                                                                                              \
        "reverts", OUTPUT_STR, false, "The operation that this one undoes."                        \
    }

#endif
