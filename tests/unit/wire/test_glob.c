/* wire/glob: the language as a table, what is malformed, pruning, and bounded time. */
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "wire/glob.h"

#include <stdio.h>
#include <time.h>

static bool match(const char *pattern, const char *path)
{
    struct glob g = {0};
    struct err e = {0};
    if (glob_compile(pattern, &g, &e) < 0)
        fail_msg("\"%s\": %s", pattern, e.message);
    bool yes = glob_match(&g, path);
    glob_fini(&g);
    return yes;
}

static const struct {
    const char *pattern;
    const char *yes[6];
    const char *no[6];
} matches[] = {
    {"", {"a", "a/b/c", ".hidden/x"}, {""}},
    {"*", {"a", "a/b", ".x"}, {""}},
    {"**", {"a", "a/b/c"}, {""}},
    {"**/*", {"a", "a/b"}, {""}},
    {"**/**", {"a", "a/b"}, {""}},
    {"./", {"a", "a/b"}, {""}},
    {"*.c", {"a.c", "d/e/a.c", ".c", "a.b.c"}, {"a.cc", "a.c/x", "c"}},
    {"a.c", {"a.c", "x/a.c"}, {"xa.c", "a.c/b"}},
    {"src/a.c", {"src/a.c"}, {"x/src/a.c", "src/x/a.c", "a.c"}},
    {"./src//a.c", {"src/a.c"}, {"a.c"}},
    {"src/*.c", {"src/a.c", "src/.c"}, {"src/x/a.c", "src.c", "xsrc/a.c"}},
    {"src/**/*.c", {"src/a.c", "src/x/a.c", "src/x/y/a.c"}, {"a.c", "srcx/a.c", "src/a.h"}},
    {"**/test/*.py", {"test/a.py", "x/test/a.py", "x/test/test/a.py"}, {"test/x/a.py", "a.py"}},
    {"**/a/**/b", {"a/b", "x/a/b", "a/x/y/b", "a/a/b/b"}, {"a", "b", "b/a", "ab"}},
    {"src/**", {"src/a", "src/a/b"}, {"src", "x/src/a"}},
    {"src/", {"src/a", "src/a/b"}, {"src", "x/src/a"}},
    {"**/src/", {"src/a", "x/src/a/b"}, {"src"}},
    {"a**b", {"ab", "axxb", "d/axb"}, {"a/b", "ba"}},
    {"?", {"a", "x/b", "\xc3\xa9", "\xff"}, {"ab", "\xc3\xa9x"}},
    {"a?c",
     {"abc", "a\xe2\x82\xac"
             "c"},
     {"ac", "a/c", "abbc"}},
    {"[a-c]x", {"ax", "cx", "d/bx"}, {"dx", "x", "-x"}},
    {"[!a-c]x", {"dx", "-x", "\xc3\xa9x"}, {"ax", "x"}},
    {"[^a]x", {"bx", "^x"}, {"ax"}},
    {"[]]", {"]"}, {"[", "x"}},
    {"[!]]", {"[", "x"}, {"]"}},
    {"[a-]", {"a", "-"}, {"b"}},
    {"[\\]a]", {"]", "a"}, {"\\"}},
    {"[a\\-c]", {"a", "-", "c"}, {"b"}},
    {"[\xc3\xa0-\xc3\xbf]", {"\xc3\xa9"}, {"e", "\xc3"}},
    {"[*?{]", {"*", "?", "{"}, {"a"}},
    {"*.{c,h}", {"a.c", "x/a.h"}, {"a.cc", "a.", "a.{c,h}"}},
    {"{src,lib}/**/*.{c,h}", {"src/a.c", "lib/x/y.h"}, {"bin/a.c", "src/a.o"}},
    {"a{,b}", {"a", "ab"}, {"b", "a{,b}"}},
    {"{a,b{c,d}}e", {"ae", "bce", "bde"}, {"be", "ace"}},
    {"{a/b,c}.x", {"a/b.x", "c.x", "d/c.x"}, {"d/a/b.x", "b.x"}},
    {"{a}", {"a"}, {"{a}"}},
    {"{[,],b}", {",", "b"}, {"[", "]"}},
    {"a,b", {"a,b"}, {"a", "b"}},
    {"\\*", {"*"}, {"a", "\\a", "**"}},
    {"\\{a\\}", {"{a}"}, {"a"}},
    {"\\[a]", {"[a]"}, {"a"}},
    {"a\\\\b", {"a\\b"}, {"ab"}},
    {"\\*\\*", {"**"}, {"a"}},
    {"*a*b*c*", {"abc", "xaxbxcx", "aabbcc"}, {"acb", "ab"}},
    {"*a", {"aa", "aaa", "ba"}, {"ab"}},
    {"new\nline", {"new\nline"}, {"newline"}},
    {".git/config", {".git/config"}, {"x/.git/config"}},
};

static void test_matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(matches); i++) {
        for (size_t k = 0; k < 6 && matches[i].yes[k] != NULL; k++) {
            if (!match(matches[i].pattern, matches[i].yes[k]))
                fail_msg("\"%s\" does not match \"%s\"", matches[i].pattern, matches[i].yes[k]);
        }
        for (size_t k = 0; k < 6 && matches[i].no[k] != NULL; k++) {
            if (match(matches[i].pattern, matches[i].no[k]))
                fail_msg("\"%s\" matches \"%s\"", matches[i].pattern, matches[i].no[k]);
        }
    }
}

static void test_malformed(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        const char *message;
    } rows[] = {
        {"a[b", "glob: '[' without ']'; write \\[ for the character itself (at byte 1 of the "
                "pattern)"},
        {"[]", "'[' without ']'"},
        {"[!]", "'[' without ']'"},
        {"[a\\", "'[' without ']'"},
        {"a/[x/y]", "(at byte 4 of the pattern)"},
        {"[[:alpha:]]", "named classes are not known"},
        {"[z-a]", "ends before it begins (at byte 1"},
        {"a{b", "'{' without '}'; write \\{ for the character itself (at byte 1"},
        {"{a,{b}", "'{' without '}'"},
        {"a}b", "'}' without '{'; write \\} for the character itself (at byte 1"},
        {"a\\", "'\\' at the end"},
        {"a\\/b", "'\\' before '/'"},
        {"/src/*.c", "leave out the first '/' (at byte 0"},
        {"../x", "'..' matches nothing"},
        {"a/..", "'..' matches nothing in a workspace (at byte 2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct glob g = {0};
        struct err e = {0};
        if (glob_compile(rows[i].pattern, &g, &e) == 0)
            fail_msg("\"%s\" was accepted", rows[i].pattern);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        if (strstr(e.message, rows[i].message) == NULL)
            fail_msg("\"%s\": %s", rows[i].pattern, e.message);
    }
}

static void test_limits(void **state)
{
    (void)state;
    struct glob g = {0};
    struct err e = {0};
    char text[GLOB_LEN_MAX + 2] = "";
    memset(text, 'a', GLOB_LEN_MAX + 1);
    assert_int_equal(glob_compile(text, &g, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_non_null(strstr(e.message, "GLOB_LEN_MAX (4096)"));
    assert_int_equal(glob_compile("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", &g, &e), 0);
    assert_int_equal(g.n, 256);
    glob_fini(&g);
    assert_int_equal(glob_compile("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", &g, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT_EXCEEDED);
    assert_non_null(strstr(e.message, "GLOB_ALTERNATIVES_MAX (256)"));
    memset(text, 'a', 4000);
    memset(text + 4000, ',', 60);
    text[3999] = '{';
    strcpy(text + 4060, "}");
    assert_int_equal(glob_compile(text, &g, &e), -1);
    assert_non_null(strstr(e.message, "GLOB_EXPANDED_MAX (65536)"));
}

static void test_may_enter(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        const char *dir;
        bool yes;
    } rows[] = {
        {"", "a", true},
        {"*.c", "a/b", true},
        {"src/**/*.c", "", true},
        {"src/**/*.c", "src", true},
        {"src/**/*.c", "src/x/y", true},
        {"src/**/*.c", "lib", false},
        {"src/*.c", "src", true},
        {"src/*.c", "src/x", false},
        {"src/*/x.c", "src/x", true},
        {"src/*/x.c", "src/x/y", false},
        {"{a,b}/c", "b", true},
        {"{a,b}/c", "c", false},
        {"a*/x/y", "abc", true},
        {"a*/x/y", "abc/z", false},
        {"a*/x/y", "b", false},
        {"a", "a", true},
        {"a/b", "a/b", false},
        {"a/b", "", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct glob g = {0};
        assert_int_equal(glob_compile(rows[i].pattern, &g, NULL), 0);
        if (glob_may_enter(&g, rows[i].dir) != rows[i].yes)
            fail_msg("\"%s\" below \"%s\"", rows[i].pattern, rows[i].dir);
        glob_fini(&g);
    }
}

static void test_names(void **state)
{
    (void)state;
    struct glob g = {0};
    assert_int_equal(glob_compile("{x,.git}/hooks/*", &g, NULL), 0);
    assert_true(glob_names(&g, ".git"));
    assert_false(glob_names(&g, ".hg"));
    glob_fini(&g);
    assert_int_equal(glob_compile("**", &g, NULL), 0);
    assert_false(glob_names(&g, ".git"));
    glob_fini(&g);
}

/* Patterns that make a backtracking matcher take exponential time. */
static void test_bounded_time(void **state)
{
    (void)state;
    char pattern[2 * 100 + 2] = "";
    char name[4001] = "";
    for (int i = 0; i < 100; i++)
        strcat(pattern, "a*");
    strcat(pattern, "b");
    memset(name, 'a', 250);
    clock_t begin = clock();
    assert_false(match(pattern, name));
    char deep[300] = "";
    for (int i = 0; i < 80; i++)
        strcat(deep, "**/");
    strcat(deep, "b");
    for (size_t i = 0; i < 2000; i++)
        memcpy(name + 2 * i, i == 1999 ? "a" : "a/", i == 1999 ? 1 : 2);
    name[3999] = '\0';
    assert_false(match(deep, name));
    /* Exponential would be longer than anybody waits. */
    assert_true(clock() - begin < 60 * CLOCKS_PER_SEC);
}

UNIT_MAIN(cmocka_unit_test(test_matches), cmocka_unit_test(test_malformed),
          cmocka_unit_test(test_limits), cmocka_unit_test(test_may_enter),
          cmocka_unit_test(test_names), cmocka_unit_test(test_bounded_time))
