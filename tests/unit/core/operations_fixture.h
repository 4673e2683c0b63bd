/* What the tests of operations share. */
#ifndef CODESPACE_TESTS_OPERATIONS_FIXTURE_H
#define CODESPACE_TESTS_OPERATIONS_FIXTURE_H

#include "ledger_fixture.h"

#include "base/str.h"
#include "core/operations_store.h"

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static inline struct patch_change change(const char *path, enum patch_kind kind, const char *before,
                                         const char *after)
{
    struct patch_change c = {.path = (char *)(uintptr_t)path, .kind = kind};
    snprintf(c.before, sizeof(c.before), "%s", before);
    snprintf(c.after, sizeof(c.after), "%s", after);
    return c;
}

static inline struct op_request patch_request(const char *workspace, const char *key,
                                              const char *print)
{
    return (struct op_request){
        .kind = OP_PATCH, .workspace_id = workspace, .key = key, .fingerprint = print};
}

/* A fresh operation's id; the caller frees. */
static inline char *begin(struct fixture *f, const struct op_request *q)
{
    struct err e = {0};
    autorecord r = {0};
    if (opstore_begin(f->l, q, LEDGER_LAZY, &r, &e) != 0)
        fail_msg("%s", e.message);
    return mem_strdup(r.operation_id);
}

static inline void finish(struct fixture *f, const char *id, enum op_status status)
{
    struct err e = {0};
    struct op_outcome o = {.status = status};
    if (opstore_finish(f->l, id, &o, LEDGER_LAZY, &e) < 0)
        fail_msg("%s", e.message);
}

static inline void plan(struct fixture *f, const char *id, const char *path, const char *before,
                        const char *after)
{
    struct err e = {0};
    struct patch_change c = change(path, PATCH_UPDATE, before, after);
    if (opstore_plan(f->l, id, &c, 1, "undo", 4, LEDGER_LAZY, &e) < 0)
        fail_msg("%s", e.message);
}

/* An applied patch of one file; the caller frees the id. */
static inline char *applied(struct fixture *f, const char *path, const char *before,
                            const char *after)
{
    struct op_request q = patch_request("w", NULL, "f");
    char *id = begin(f, &q);
    plan(f, id, path, before, after);
    finish(f, id, OP_APPLIED);
    return id;
}

static inline enum op_status status_of(struct fixture *f, const char *id)
{
    struct err e = {0};
    autorecord r = {0};
    if (opstore_get(f->l, id, &r, &e) < 0)
        fail_msg("%s", e.message);
    return r.status;
}

#endif
