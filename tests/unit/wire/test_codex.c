/* wire/codex: the words of a permission profile, and everything that is none. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "wire/codex.h"

#define ENTRY(path, access) "{\"path\":" path ",\"access\":\"" access "\"}"
#define SPECIAL(kind) "{\"type\":\"special\",\"value\":{\"kind\":\"" kind "\"}}"
#define MANAGED(entries)                                                                           \
    "{\"type\":\"managed\",\"network\":\"restricted\",\"file_system\":{\"type\":\"restricted\","   \
    "\"entries\":[" entries "]}}"

static int read_text(const char *text, struct codex_profile *p, struct err *e)
{
    return codex_profile_read(text, strlen(text), p, e);
}

static void test_entries(void **state)
{
    (void)state;
    static const char text[] = MANAGED(
        ENTRY(SPECIAL("root"), "read") "," ENTRY(SPECIAL("project_roots"), "write") "," ENTRY(
            "{\"type\":\"path\",\"path\":\"/x\"}",
            "none") "," ENTRY("{\"type\":\"glob_pattern\",\"pattern\":\"*.pem\"}",
                              "deny") "," ENTRY(SPECIAL("to_come"), "read"));
    struct codex_profile p;
    struct err e = {0};
    if (read_text(text, &p, &e) < 0)
        fail_msg("%s", e.message);
    assert_false(p.unrestricted || p.network);
    assert_int_equal(p.n, 5);
    assert_true(p.entries[0].kind == CODEX_ROOT && p.entries[0].access == CODEX_READ);
    assert_true(p.entries[1].kind == CODEX_PROJECT && p.entries[1].access == CODEX_WRITE);
    assert_true(p.entries[2].kind == CODEX_PATH && p.entries[2].access == CODEX_DENY);
    assert_string_equal(p.entries[2].text, "/x");
    assert_true(p.entries[3].kind == CODEX_GLOB);
    assert_true(p.entries[4].kind == CODEX_UNKNOWN);
    codex_profile_fini(&p);
}

static void test_kinds(void **state)
{
    (void)state;
    struct codex_profile p;
    struct err e = {0};
    assert_int_equal(read_text("{\"type\":\"disabled\"}", &p, &e), 0);
    assert_true(p.unrestricted && p.network);
    assert_int_equal(read_text("{\"type\":\"external\",\"network\":\"restricted\"}", &p, &e), 0);
    assert_true(p.unrestricted && !p.network);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "\"read-only\"",
        "{\"type\":\"managed\"}",
        "{\"type\":\"managed\",\"file_system\":{}}",
        "{\"type\":\"other\"}",
        MANAGED("1"),
        MANAGED("{}"),
        MANAGED(ENTRY(SPECIAL("root"), "own")),
        MANAGED(ENTRY("{\"type\":\"path\"}", "read")),
        MANAGED(ENTRY("{\"type\":\"glob_pattern\",\"pattern\":\"*\"}", "read")),
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct codex_profile p = {0};
        struct err e = {0};
        assert_int_equal(read_text(texts[i], &p, &e), -1);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_null(p.entries);
    }
}

UNIT_MAIN(cmocka_unit_test(test_entries), cmocka_unit_test(test_kinds),
          cmocka_unit_test(test_refused))
