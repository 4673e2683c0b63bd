/* core/operations: the same request is known again, another one is a conflict, old ones go. */
#include "../../helpers/unit.h"
#include "core/operations.h"

#include <stdio.h>

static struct patch_request request(const char *text)
{
    return (struct patch_request){.text = text, .text_len = strlen(text)};
}

static struct operation *done(const char *fingerprint)
{
    struct operation *op = operation_new();
    snprintf(op->fingerprint, sizeof(op->fingerprint), "%s", fingerprint);
    op->result.status = PATCH_APPLIED;
    return op;
}

static void test_fingerprint(void **state)
{
    (void)state;
    static const struct patch_expect one[] = {{"a", "absent"}, {"b", "sha256:1"}};
    static const struct patch_expect other_order[] = {{"b", "sha256:1"}, {"a", "absent"}};
    static const struct patch_expect swapped[] = {{"b", "absent"}, {"a", "sha256:1"}};
    char base[FILES_VERSION_LEN];
    char same[FILES_VERSION_LEN];
    char rows[5][FILES_VERSION_LEN];
    struct patch_request r = request("text");
    r.expect = one;
    r.n_expect = 2;
    operation_fingerprint("ws", &r, base);
    r.expect = other_order;
    operation_fingerprint("ws", &r, same);
    assert_string_equal(base, same);
    r.expect = swapped;
    operation_fingerprint("ws", &r, rows[0]);
    r.expect = one;
    r.n_expect = 1;
    operation_fingerprint("ws", &r, rows[1]);
    r.n_expect = 2;
    r.check_only = true;
    operation_fingerprint("ws", &r, rows[2]);
    r.check_only = false;
    operation_fingerprint("other", &r, rows[3]);
    r.text = "texts";
    r.text_len = 5;
    operation_fingerprint("ws", &r, rows[4]);
    for (int i = 0; i < 5; i++)
        assert_string_not_equal(base, rows[i]);
}

static void test_find(void **state)
{
    (void)state;
    struct operations o;
    const struct operation *found = NULL;
    struct err e;
    operations_init(&o);
    assert_int_equal(operations_find(&o, "ws", "k", "f1", &found, &e), 0);
    struct operation *op = done("f1");
    assert_memory_equal(op->id, "op-", 3);
    operations_keep(&o, "ws", "k", op);
    assert_int_equal(operations_find(&o, "ws", "k", "f1", &found, &e), 1);
    assert_ptr_equal(found, op);
    assert_int_equal(operations_find(&o, "ws", "k", "f2", &found, &e), -1);
    assert_int_equal(e.code, ERR_OPERATION_KEY_CONFLICT);
    assert_non_null(strstr(e.message, op->id));
    assert_int_equal(operations_find(&o, "ws2", "k", "f1", &found, &e), 0);
    assert_int_equal(operations_find(&o, "ws", NULL, "f1", &found, &e), 0);
    operations_fini(&o);
}

/* The oldest goes when there are too many, by number or by what they hold. */
static void test_limits(void **state)
{
    (void)state;
    struct operations o;
    const struct operation *found = NULL;
    struct err e;
    operations_init(&o);
    for (unsigned i = 0; i < OPERATIONS_MAX + 1; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", i);
        operations_keep(&o, "ws", key, done("f"));
    }
    assert_int_equal(o.n, OPERATIONS_MAX);
    assert_int_equal(operations_find(&o, "ws", "k0", "f", &found, &e), 0);
    assert_int_equal(operations_find(&o, "ws", "k1", "f", &found, &e), 1);
    struct operation *large = done("f");
    large->result.changes = mem_zalloc(OPERATIONS_CHANGES_MAX, sizeof(struct patch_change));
    large->result.n_changes = large->result.cap = OPERATIONS_CHANGES_MAX;
    operations_keep(&o, "ws", "large", large);
    assert_int_equal(operations_find(&o, "ws", "large", "f", &found, &e), 1);
    struct operation *small = done("f");
    small->result.changes = mem_zalloc(1, sizeof(struct patch_change));
    small->result.n_changes = small->result.cap = 1;
    operations_keep(&o, "ws", "small", small);
    assert_int_equal(operations_find(&o, "ws", "large", "f", &found, &e), 0);
    assert_int_equal(operations_find(&o, "ws", "small", "f", &found, &e), 1);
    assert_int_equal(o.changes, 1);
    operations_fini(&o);
}

UNIT_MAIN(cmocka_unit_test(test_fingerprint), cmocka_unit_test(test_find),
          cmocka_unit_test(test_limits))
