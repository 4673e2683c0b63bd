/* core/udiff, core/exact: unified diffs of git and GNU diff against files (F1, F2, F4, F6, F19). */
#include "../../helpers/scratch.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/patch.h"
#include "core/udiff.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static int run(struct scratch *s, const char *text, int strip, struct patch_result *r,
               struct err *e)
{
    struct patch_request q = {
        .text = text, .text_len = strlen(text), .strip_plus_one = (unsigned)(strip + 1)};
    return patch_apply(&s->ws, &q, r, e);
}

static void expect_applied(struct scratch *s, const char *text, const char *changes)
{
    struct patch_result r = {0};
    struct err e = {0};
    if (run(s, text, PATCH_STRIP_AUTO, &r, &e) < 0)
        fail_msg("%s: %s\n%s", err_info(e.code)->name, e.message, text);
    assert_int_equal(r.status, PATCH_APPLIED);
    autobuf b = BUF_INIT;
    for (size_t i = 0; i < r.n_changes; i++)
        buf_printf(&b, "%s %s%s%s;", patch_kind_name(r.changes[i].kind), r.changes[i].path,
                   r.changes[i].fuzzy ? " fuzzy" : "", r.changes[i].mode_changed ? " mode" : "");
    if (strcmp(buf_cstr(&b), changes) != 0)
        fail_msg("changes: %s\n%s", buf_cstr(&b), text);
    assert_int_equal(scratch_leftovers(s), 0);
    patch_result_fini(&r);
}

static void expect_refused(struct scratch *s, const char *text, int strip, enum err_code code,
                           const char *message)
{
    struct patch_result r = {0};
    struct err e = {0};
    if (run(s, text, strip, &r, &e) != -1)
        fail_msg("applied: %s", text);
    if (e.code != code || strstr(e.message, message) == NULL)
        fail_msg("%s: %s\n%s", err_info(e.code)->name, e.message, text);
}

/* ---- hunks on one file ---- */

#define H "--- a/f\n+++ b/f\n"
#define NONL "\\ No newline at end of file\n"

static const struct {
    const char *before;
    const char *patch;
    const char *after;
    bool fuzzy;
} rows[] = {
    {"a\nb\nc\n", H "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n", "a\nx\nc\n", false},
    {"a\nb\nc\n", H "@@ -2 +2,2 @@ name\n-b\n+x\n+y\n", "a\nx\ny\nc\n", false},
    {"a\nb\nc\n", H "@@ -3,0 +4 @@\n+d\n", "a\nb\nc\nd\n", false},
    {"a\nb\nc\n", H "@@ -0,0 +1 @@\n+d\n", "d\na\nb\nc\n", false},
    {"a\nb\nc\n", H "@@ -2 +1,0 @@\n-b\n", "a\nc\n", false},
    {"a\n", H "@@ -1 +0,0 @@\n-a\n", "", false},
    {"", H "@@ -0,0 +1 @@\n+a\n", "a\n", false},
    {"a\nb\nc\nd\n", H "@@ -1 +1,2 @@\n-a\n+1\n+2\n@@ -3 +4 @@\n-c\n+3\n", "1\n2\nb\n3\nd\n",
     false},
    /* An empty line of context that an editor stripped. */
    {"a\n\nb\n", H "@@ -1,3 +1,3 @@\n-a\n+x\n\n b\n", "x\n\nb\n", false},
    /* The right one of two places, by number. */
    {"x\nx\nx\n", H "@@ -2 +2 @@\n-x\n+y\n", "x\ny\nx\n", false},
    /* Elsewhere than the header says: the only place. */
    {"0\n0\na\nb\n", H "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "0\n0\na\nc\n", true},
    {"a\nb\n", H "@@ -9,2 +7,2 @@\n a\n-b\n+c\n", "a\nc\n", true},
    {"a\nb\n", H "@@ -900,2 +900,2 @@\n a\n-b\n+c\n", "a\nc\n", true},
    /* The end of the file, said and taken exactly. */
    {"a\nb", H "@@ -1,2 +1,2 @@\n a\n-b\n" NONL "+b\n", "a\nb\n", false},
    {"a\nb\n", H "@@ -1,2 +1,2 @@\n a\n-b\n+b\n" NONL, "a\nb", false},
    {"a\nb", H "@@ -1,2 +1,2 @@\n-a\n+x\n b\n" NONL, "x\nb", false},
    {"a", H "@@ -1 +1,2 @@\n-a\n" NONL "+a\n+b\n" NONL, "a\nb", false},
    /* Not said: as with V4A the file's own end stays. */
    {"a\nb", H "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a\nc", true},
    /* Bytes: endings are changed when the diff says so. */
    {"a\r\nb\r\n", H "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", "a\r\nc\r\n", false},
    {"a\r\nb\r\n", H "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n", "a\nb\r\n", false},
    {"a\r\nb\n", H "@@ -1,2 +1,2 @@\n a\r\n-b\n+c\n", "a\r\nc\n", false},
    {"\xff\xfe\nb\n", H "@@ -1,2 +1,2 @@\n \xff\xfe\n-b\n+$&\\1\n", "\xff\xfe\n$&\\1\n", false},
    /* LF patch, CR LF file: the file's endings stay. */
    {"a\r\nb\r\nc\r\n", H "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n", "a\r\nx\r\nc\r\n", true},
    /* A patch that was written with CR LF throughout. */
    {"a\nb\n", "--- a/f\r\n+++ b/f\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n", "a\nc\n", false},
    /* Blanks. */
    {"a \nb\n", H "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a \nc\n", true},
    /* Lines that look like headers, within the counts. */
    {"-- a\nx\n", H "@@ -1,2 +1,2 @@\n--- a\n+++ b\n x\n", "++ b\nx\n", false},
    /* Mail around it. */
    {"a\n",
     "From 0123 Mon\nSubject: x\n---\n f | 2 +-\n\n" H "@@ -1 +1 @@\n-a\n+b\n-- \n2.39.5\n\n",
     "b\n", false},
    {"a\n", "diff -u a/f b/f\n" H "@@ -1 +1 @@\n-a\n+b\n", "b\n", false},
    {"a\n", "Index: f\n=====\n--- f\t(revision 1)\n+++ f\t(working copy)\n@@ -1 +1 @@\n-a\n+b\n",
     "b\n", false},
};

static void test_hunks(void **state)
{
    struct scratch *s = *state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        scratch_put(s, "f", rows[i].before);
        expect_applied(s, rows[i].patch, rows[i].fuzzy ? "update f fuzzy;" : "update f;");
        scratch_expect(s, "f", rows[i].after);
    }
}

static const struct {
    const char *patch;
    const char *message;
} misses[] = {
    {H "@@ -1,3 +1,3 @@\n a\n-b\n+x\n", "promises 3 old and 3 new lines, but 2 and 2 follow"},
    {H "@@ -1,1 +1,1 @@\n a\n-b\n+x\n", "it would read \"@@ -1,2 +1,2 @@\""},
    {H "@@ -1,2 +1,2 @@\n a\n b\n", "neither '-' nor '+'"},
    {H "@@ -1,2 +1,2 @@\n a\n-wrong\n+x\n", "line 2 has \"b\" where the patch has \"wrong\""},
    {H "@@ -1 +1 @@\n-x\n+y\n", "at line 3 and at line 4"},
    {H "@@ -3,0 +9 @@\n+y\n", "give some lines of context"},
    {H "@@ -x +1 @@\n-a\n+y\n", "is not the header of a hunk"},
    {H "@@ -1 +1 @@\n-a\n+y\n@@ wrong\n", "is not the header of a hunk"},
    {H "@@ -1 +1 @@\n-a\n+y\n\nstray\n", "belongs to no hunk"},
    {"@@ -1 +1 @@\n-a\n+y\n", "begins"},
    {H, "the section has no hunks"},
    {H "@@ -1 +1 @@\n" NONL "-a\n+b\n", "follows no line"},
    {H "@@ -1,2 +1 @@\n-a\n" NONL "-b\n+b\n", "lines follow one that has"},
    {H "@@ -1 +1 @@\n-a\n" NONL "+a\n", "says how the last line ends"},
    {H "@@ -1,2 +1 @@\n a\n" NONL "-b\n", "lines follow one that has"},
    {"diff --git a/f b/f\nindex 1..2\nGIT binary patch\nliteral 1\n", "binary patches"},
    {"Binary files a/f and b/f differ\n", "begins"},
    {"diff -r a b\nBinary files a/f and b/f differ\n", "binary patches"},
    {"diff -r a b\nOnly in a: x\n", "diff -N"},
    {"diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n",
     "not a regular file's"},
    {"diff --git a/m b/m\nnew file mode 160000\n", "not a regular file's"},
    {"--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", "do not belong together"},
    {"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "do not belong together"},
    {H "@@ -1 +1 @@\n-a\n+y\n--- f\n+++ f\n@@ -2 +2 @@\n-b\n+y\n", "`strip`"},
    {"--- a/f\n+++ \"b/f\n@@ -1 +1 @@\n-a\n+b\n", "not quoted as git quotes"},
    {"diff --git \"a/f\\\\x\" \"b/f\\\\x\"\nold mode 100644\nnew mode 100755\n", "backslash"},
};

static void test_refusals(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "f", "a\nb\nx\nx\n");
    for (size_t i = 0; i < ARRAY_LEN(misses); i++)
        expect_refused(s, misses[i].patch, PATCH_STRIP_AUTO, ERR_INVALID_PATCH, misses[i].message);
    scratch_expect(s, "f", "a\nb\nx\nx\n");
}

static void test_paths_are_checked(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "../out", "a\n");
    expect_refused(s, "--- a/../../out\n+++ b/../../out\n@@ -1 +1 @@\n-a\n+b\n", PATCH_STRIP_AUTO,
                   ERR_PATH_ESCAPE, "");
    expect_refused(s, "--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+b\n", PATCH_STRIP_AUTO,
                   ERR_PATH_PROTECTED, "");
    expect_refused(s, "--- /etc/x\n+++ /etc/x\n@@ -1 +1 @@\n-a\n+b\n", PATCH_STRIP_AUTO,
                   ERR_PATH_ESCAPE, "");
    scratch_expect(s, "../out", "a\n");
}

/* ---- names ---- */

static void test_names(void **state)
{
    struct scratch *s = *state;
    static const struct {
        const char *path;
        const char *head;
    } names[] = {
        {"f", "--- f\n+++ f\n"},
        {"a/f", "--- a/f\n+++ a/f\n"},
        {"d/f",
         "--- old/d/f\t2020-01-01 10:00:00.0 +0000\n+++ new/d/f\t2021-01-01 10:00:00.0 +0000\n"},
        {"with blank",
         "diff --git a/with blank b/with blank\n--- a/with blank\t\n+++ b/with blank\t\n"},
        {"caf\xc3\xa9 \"q\"\t",
         "--- \"a/caf\\303\\251 \\\"q\\\"\\t\"\n+++ \"b/caf\\303\\251 \\\"q\\\"\\t\"\n"},
        {"\xff", "diff --git \"a/\\377\" \"b/\\377\"\n--- \"a/\\377\"\n+++ \"b/\\377\"\n"},
        {"w", "diff --git i/w w/w\n--- i/w\n+++ w/w\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        autofree char *text = mem_printf("%s@@ -1 +1 @@\n-a\n+b\n", names[i].head);
        scratch_put(s, names[i].path, "a\n");
        autofree char *changes = mem_printf("update %s;", names[i].path);
        expect_applied(s, text, changes);
        scratch_expect(s, names[i].path, "b\n");
    }
}

static void test_strip_by_argument(void **state)
{
    struct scratch *s = *state;
    static const char text[] = "--- x/y/f\n+++ x/y/f\n@@ -1 +1 @@\n-a\n+b\n";
    static const char *const paths[] = {"x/y/f", "y/f", "f"};
    for (int strip = 0; strip < 3; strip++) {
        struct patch_result r = {0};
        scratch_put(s, paths[strip], "a\n");
        assert_int_equal(run(s, text, strip, &r, NULL), 0);
        patch_result_fini(&r);
        scratch_expect(s, paths[strip], "b\n");
    }
    expect_refused(s, text, 3, ERR_INVALID_PATCH, "no more than 3 components");
    expect_refused(s, text, 65, ERR_INVALID_ARGUMENT, "UDIFF_STRIP_MAX");
}

/* ---- files that come, go, move and change their mode ---- */

static mode_t mode_of(struct scratch *s, const char *path)
{
    struct stat st;
    assert_int_equal(fstatat(s->ws.root_fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 0777;
}

static void test_add_and_delete(void **state)
{
    struct scratch *s = *state;
    umask(022);
    expect_applied(s,
                   "diff --git a/n/x b/n/x\nnew file mode 100755\n--- /dev/null\n+++ b/n/x\n"
                   "@@ -0,0 +1,2 @@\n+a\n+b\n" NONL "diff --git a/empty b/empty\n"
                   "new file mode 100644\nindex 0..0\n",
                   "add n/x mode;add empty;");
    scratch_expect(s, "n/x", "a\nb");
    scratch_expect(s, "empty", "");
    assert_int_equal(mode_of(s, "n/x"), 0755);
    assert_int_equal(mode_of(s, "empty"), 0644);
    expect_refused(s, "--- /dev/null\n+++ b/empty\n@@ -0,0 +1 @@\n+a\n", PATCH_STRIP_AUTO,
                   ERR_ADD_FILE_EXISTS, "add empty");
    expect_refused(s, "--- a/n/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", PATCH_STRIP_AUTO,
                   ERR_INVALID_PATCH, "does not know of");
    expect_applied(s,
                   "diff --git a/n/x b/n/x\ndeleted file mode 100755\n--- a/n/x\n+++ /dev/null\n"
                   "@@ -1,2 +0,0 @@\n-a\n-b\n" NONL
                   "diff --git a/empty b/empty\ndeleted file mode 100644\n",
                   "delete n/x;delete empty;");
    assert_false(scratch_has(s, "n/x"));
    assert_false(scratch_has(s, "empty"));
}

/* GNU diff -N tells by a time. */
static void test_epoch(void **state)
{
    struct scratch *s = *state;
    expect_applied(s,
                   "--- old/x\t1970-01-01 01:00:00.000000000 +0100\n"
                   "+++ new/x\t2020-01-01 00:00:00.000000000 +0100\n@@ -0,0 +1 @@\n+a\n",
                   "add x;");
    expect_applied(s,
                   "--- old/x\t2020-01-01 00:00:00.000000000 +0000\n"
                   "+++ new/x\t1969-12-31 19:00:00.000000000 -0500\n@@ -1 +0,0 @@\n-a\n",
                   "delete x;");
}

static void test_modes(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "f", "a\n");
    assert_int_equal(fchmodat(s->ws.root_fd, "f", 0640, 0), 0);
    expect_applied(s, "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "update f mode;");
    assert_int_equal(mode_of(s, "f"), 0750);
    expect_applied(s,
                   "diff --git a/f b/f\nold mode 100755\nnew mode 100644\n--- a/f\n+++ b/f\n"
                   "@@ -1 +1 @@\n-a\n+b\n",
                   "update f mode;");
    assert_int_equal(mode_of(s, "f"), 0640);
    scratch_expect(s, "f", "b\n");
}

static void test_renames_and_copies_speak_of_the_files_before(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "x", "x\n");
    scratch_put(s, "y", "y\n");
    /* A swap, one side changed. */
    expect_applied(s,
                   "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n"
                   "diff --git a/y b/x\nsimilarity index 50%\nrename from y\nrename to x\n"
                   "--- a/y\n+++ b/x\n@@ -1 +1 @@\n-y\n+Y\n",
                   "move x;move y;");
    scratch_expect(s, "x", "Y\n");
    scratch_expect(s, "y", "x\n");
    /* A copy is of what the source was, although it changes too. */
    expect_applied(s,
                   "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-Y\n+new\n"
                   "diff --git a/x b/d/z\nsimilarity index 100%\ncopy from x\ncopy to d/z\n",
                   "update x;add d/z;");
    scratch_expect(s, "d/z", "Y\n");
    scratch_expect(s, "x", "new\n");
    /* A new file takes the name of one that moves. */
    expect_applied(s,
                   "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n"
                   "@@ -0,0 +1 @@\n+fresh\n"
                   "diff --git a/x b/moved\nrename from x\nrename to moved\n",
                   "update x;move moved;");
    scratch_expect(s, "x", "fresh\n");
    scratch_expect(s, "moved", "new\n");
    expect_refused(s, "diff --git a/x b/y\nrename from x\nrename to y\n", PATCH_STRIP_AUTO,
                   ERR_MOVE_DESTINATION_EXISTS, "x to y");
    expect_refused(s, "diff --git a/x b/y\nrename from x\n", PATCH_STRIP_AUTO, ERR_INVALID_PATCH,
                   "a line for \"from\"");
    expect_applied(s, "diff --git a/x b/X\nrename from x\nrename to X\n", "delete x;move X;");
}

static void test_format_by_argument(void **state)
{
    struct scratch *s = *state;
    static const char text[] = H "@@ -1 +1 @@\n-a\n+b\n";
    scratch_put(s, "f", "a\n");
    struct patch_request q = {.text = text, .text_len = strlen(text), .format = PATCH_FORMAT_V4A};
    struct patch_result r = {0};
    struct err e = {0};
    assert_int_equal(patch_apply(&s->ws, &q, &r, &e), -1);
    assert_non_null(strstr(e.message, "unified"));
    q.text = "*** Begin Patch\n*** End Patch\n";
    q.text_len = strlen(q.text);
    q.format = PATCH_FORMAT_UNIFIED;
    assert_int_equal(patch_apply(&s->ws, &q, &r, &e), -1);
    assert_non_null(strstr(e.message, "no unified diff"));
}

#define S(f) cmocka_unit_test_setup_teardown(f, scratch_up, scratch_down)

UNIT_MAIN(S(test_hunks), S(test_refusals), S(test_paths_are_checked), S(test_names),
          S(test_strip_by_argument), S(test_add_and_delete), S(test_epoch), S(test_modes),
          S(test_renames_and_copies_speak_of_the_files_before), S(test_format_by_argument))
