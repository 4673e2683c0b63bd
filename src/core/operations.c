/* core/operations: see operations.h. */
#include "core/operations.h"

#include "base/jsonw.h"
#include "base/str.h"

#include <string.h>

void operations_init(struct operations *o)
{
    *o = (struct operations){0};
    list_init(&o->order);
}

struct operation *operation_new(void)
{
    struct operation *op = mem_new(struct operation);
    list_init(&op->node);
    op->id = str_new_id("op-");
    return op;
}

void operation_free(struct operation *op)
{
    if (op == NULL)
        return;
    patch_result_fini(&op->result);
    free(op->slot);
    free(op->id);
    free(op);
}

static void forget(struct operations *o, struct operation *op)
{
    list_remove(&op->node);
    map_remove(&o->by_slot, op->slot);
    o->n--;
    o->changes -= op->result.n_changes;
    operation_free(op);
}

void operations_fini(struct operations *o)
{
    while (!list_empty(&o->order))
        forget(o, container_of(o->order.next, struct operation, node));
    map_fini(&o->by_slot);
}

/* An id of a workspace has no slash, so no two pairs give the same slot. */
static char *slot_of(const char *workspace_id, const char *key)
{
    return mem_printf("%s/%s", workspace_id, key);
}

void operation_fingerprint(const char *workspace_id, const struct patch_request *request,
                           char ret[FILES_VERSION_LEN])
{
    autobuf text = BUF_INIT;
    autostrv expect = {0};
    struct jsonw w;
    for (size_t i = 0; i < request->n_expect; i++)
        strv_addf(&expect, "%s=%s", request->expect[i].version, request->expect[i].path);
    strv_sort(&expect);
    jsonw_init(&w, &text);
    jsonw_array(&w);
    jsonw_str(&w, workspace_id);
    jsonw_bool(&w, request->check_only);
    for (size_t i = 0; i < expect.len; i++)
        jsonw_str(&w, expect.items[i]);
    jsonw_array_end(&w);
    buf_put(&text, request->text, request->text_len);
    files_version(buf_bytes(&text), text.len, ret);
}

int operations_find(const struct operations *o, const char *workspace_id, const char *key,
                    const char *fingerprint, const struct operation **ret, struct err *e)
{
    if (key == NULL)
        return 0;
    autofree char *slot = slot_of(workspace_id, key);
    const struct operation *op = map_get(&o->by_slot, slot);
    if (op == NULL)
        return 0;
    if (strcmp(op->fingerprint, fingerprint) != 0)
        return err_set(e, ERR_OPERATION_KEY_CONFLICT,
                       "operation_key: \"%.64s\" was used for another request (operation %s); a "
                       "new request needs a new key",
                       key, op->id);
    *ret = op;
    return 1;
}

void operations_keep(struct operations *o, const char *workspace_id, const char *key,
                     struct operation *op)
{
    op->slot = slot_of(workspace_id, key);
    ensure(map_set(&o->by_slot, op->slot, op) == NULL);
    list_append(&o->order, &op->node);
    o->n++;
    o->changes += op->result.n_changes;
    while (o->n > 1 && (o->n > OPERATIONS_MAX || o->changes > OPERATIONS_CHANGES_MAX))
        forget(o, container_of(o->order.next, struct operation, node));
}
