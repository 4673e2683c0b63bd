/* core/patch: a patch against files on disk: what is refused, several sections on one file, what a
 * file keeps besides its bytes, expectations, checking only (A16, A18, A27, F11, F12, F15, F19). */
#include "../../helpers/scratch.h"
#include "../../helpers/unit.h"
#include "base/mem.h"
#include "core/patch.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#define P(body) "*** Begin Patch\n" body "*** End Patch\n"

static int run(struct scratch *s, const char *text, bool check, struct patch_result *r,
               struct err *e)
{
    struct patch_request q = {.text = text, .text_len = strlen(text), .check_only = check};
    return patch_apply(&s->ws, &q, r, e);
}

/* The changes as one line. */
static void describe(const struct patch_result *r, struct buf *b)
{
    for (size_t i = 0; i < r->n_changes; i++) {
        const struct patch_change *c = &r->changes[i];
        buf_printf(b, "%s %s%s%s%s;", patch_kind_name(c->kind), c->path, c->before[0] ? " b" : "",
                   c->after[0] ? " a" : "", c->fuzzy ? " fuzzy" : "");
    }
}

static void expect_applied(struct scratch *s, const char *text, const char *changes)
{
    struct patch_result r = {0};
    struct err e = {0};
    if (run(s, text, false, &r, &e) < 0)
        fail_msg("%s: %s", err_info(e.code)->name, e.message);
    if (r.status != PATCH_APPLIED)
        fail_msg("%s: %s", patch_status_name(r.status), r.failure);
    autobuf b = BUF_INIT;
    describe(&r, &b);
    if (strcmp(buf_cstr(&b), changes) != 0)
        fail_msg("changes: %s", buf_cstr(&b));
    /* Each version that is told is the one on disk. */
    for (size_t i = 0; i < r.n_changes; i++) {
        char v[FILES_VERSION_LEN] = "";
        if (scratch_has(s, r.changes[i].path)) {
            autobuf content = scratch_get(s, r.changes[i].path);
            version_of(buf_bytes(&content), content.len, v);
        }
        assert_string_equal(r.changes[i].after, v);
    }
    assert_int_equal(scratch_leftovers(s), 0);
    patch_result_fini(&r);
}

static void expect_refused(struct scratch *s, const char *text, enum err_code code,
                           const char *message)
{
    struct patch_result r = {0};
    struct err e = {0};
    if (run(s, text, false, &r, &e) != -1)
        fail_msg("applied: %s", text);
    if (e.code != code || strstr(e.message, message) == NULL)
        fail_msg("%s: %s\n%s", err_info(e.code)->name, e.message, text);
    assert_null(r.changes);
    assert_int_equal(scratch_leftovers(s), 0);
}

/* ---- the four operations ---- */

static void test_operations(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "u", "a\nb\n");
    scratch_put(s, "d", "gone\n");
    scratch_put(s, "m", "a\nb\n");
    expect_applied(s,
                   P("*** Add File: new/dir/f\n+x\n"
                     "*** Update File: u\n-b\n+c\n"
                     "*** Delete File: d\n"
                     "*** Update File: m\n*** Move to: moved/m2\n-a\n+z\n"
                     "*** Add File: empty\n"),
                   "add new/dir/f a;update u b a;delete d b;delete m b;move moved/m2 a;"
                   "add empty a;");
    scratch_expect(s, "new/dir/f", "x\n");
    scratch_expect(s, "u", "a\nc\n");
    scratch_expect(s, "moved/m2", "z\nb\n");
    scratch_expect(s, "empty", "");
    assert_false(scratch_has(s, "d"));
    assert_false(scratch_has(s, "m"));
}

static void test_pure_move_and_case_only_rename(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "a.txt", "x\r\n\xff");
    expect_applied(s, P("*** Update File: a.txt\n*** Move to: A.txt\n"),
                   "delete a.txt b;move A.txt a;");
    scratch_expect(s, "A.txt", "x\r\n\xff");
    expect_applied(s, P("*** Update File: A.txt\n*** Move to: ./A.txt\n-\xff\n+y\n"),
                   "update A.txt b a;");
    scratch_expect(s, "A.txt", "x\r\ny");
}

static void test_fuzzy_is_told(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "f", "a \nb\n");
    expect_applied(s, P("*** Update File: f\n a\n-b\n+c\n"), "update f b a fuzzy;");
    scratch_expect(s, "f", "a \nc\n");
}

/* ---- several sections on one file: in order ---- */

static void test_sections_are_carried_out_in_order(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "f", "a\nb\n");
    expect_applied(s, P("*** Update File: f\n-a\n+1\n*** Update File: f\n 1\n-b\n+2\n"),
                   "update f b a;");
    scratch_expect(s, "f", "1\n2\n");
    expect_applied(s, P("*** Add File: g\n+x\n*** Update File: g\n-x\n+y\n"), "add g a;");
    scratch_expect(s, "g", "y\n");
    expect_applied(s, P("*** Delete File: f\n*** Add File: f\n+new\n"), "update f b a;");
    scratch_expect(s, "f", "new\n");
    expect_applied(s, P("*** Add File: t\n+x\n*** Delete File: t\n"), "");
    assert_false(scratch_has(s, "t"));
    /* Swap two names through a third. */
    expect_applied(s,
                   P("*** Update File: f\n*** Move to: t\n*** Update File: g\n*** Move to: f\n"
                     "*** Update File: t\n*** Move to: g\n"),
                   "move f b a;move g b a;");
    scratch_expect(s, "f", "y\n");
    scratch_expect(s, "g", "new\n");
    /* Move onto a file that the patch deletes first. */
    expect_applied(s, P("*** Delete File: f\n*** Update File: g\n*** Move to: f\n"),
                   "move f b a;delete g b;");
    scratch_expect(s, "f", "new\n");
}

static void test_sections_that_contradict(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "f", "a\n");
    expect_refused(s, P("*** Delete File: f\n*** Update File: f\n-a\n"), ERR_FILE_NOT_FOUND,
                   "the patch removed it further up");
    expect_refused(s, P("*** Delete File: f\n*** Delete File: f\n"), ERR_FILE_NOT_FOUND,
                   "delete f");
    expect_refused(s, P("*** Add File: g\n+x\n*** Add File: ./g\n+x\n"), ERR_ADD_FILE_EXISTS,
                   "add g");
    expect_refused(s, P("*** Add File: n\n+x\n*** Add File: n/x\n+x\n"), ERR_PATH_NOT_DIRECTORY,
                   "n is a file of this patch");
    expect_refused(s, P("*** Add File: n/x/y\n+x\n*** Add File: n\n+x\n"), ERR_PATH_NOT_DIRECTORY,
                   "n is a file of this patch");
    expect_refused(s, P("*** Delete File: f\n*** Add File: f/x\n+x\n"), ERR_PATH_NOT_DIRECTORY,
                   "f/x");
    expect_refused(s, P("*** Update File: f\n*** Move to: f/x\n"), ERR_PATH_NOT_DIRECTORY, "f/x");
    scratch_expect(s, "f", "a\n");
    assert_false(scratch_has(s, "n"));
}

/* ---- refusals; every one leaves everything as it was (F11) ---- */

static void put_world(struct scratch *s)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    assert_true(snprintf(a.sun_path, sizeof(a.sun_path), "%.80s/socket", s->ws.root) < 100);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    close(fd);
    assert_int_equal(mkfifoat(s->ws.root_fd, "fifo", 0644), 0);
    scratch_put(s, "first", "a\n");
    scratch_put(s, "f", "a\n");
    scratch_mkdir(s, "d");
    scratch_put(s, "d/x", "x\n");
    scratch_put(s, ".git/config", "x\n");
    scratch_put(s, "../out/secret", "secret\n");
    scratch_put(s, "../ws_secret", "secret\n");
    assert_int_equal(symlinkat("f", s->ws.root_fd, "link"), 0);
    assert_int_equal(symlinkat("../out", s->ws.root_fd, "olink"), 0);
    assert_int_equal(symlinkat("nowhere", s->ws.root_fd, "dangling"), 0);
}

static const struct {
    const char *section;
    enum err_code code;
} refusals[] = {
    {"*** Add File: f\n+x\n", ERR_ADD_FILE_EXISTS},
    {"*** Add File: d\n+x\n", ERR_SPECIAL_FILE_REJECTED},
    {"*** Add File: f/x\n+x\n", ERR_PATH_NOT_DIRECTORY},
    {"*** Add File: link\n+x\n", ERR_SYMLINK_REJECTED},
    {"*** Add File: dangling\n+x\n", ERR_SYMLINK_REJECTED},
    {"*** Add File: olink/newdir/f\n+x\n", ERR_SYMLINK_REJECTED},
    {"*** Add File: ../out/f\n+x\n", ERR_PATH_ESCAPE},
    {"*** Add File: d/../../ws_secret2\n+x\n", ERR_PATH_ESCAPE},
    {"*** Add File: /etc/x\n+x\n", ERR_PATH_ESCAPE},
    {"*** Add File: .git/hooks/x\n+x\n", ERR_PATH_PROTECTED},
    {"*** Add File: d/../.git/x\n+x\n", ERR_PATH_PROTECTED},
    {"*** Add File: .codex\n+x\n", ERR_PATH_PROTECTED},
    {"*** Add File: .\n+x\n", ERR_SPECIAL_FILE_REJECTED},
    {"*** Update File: missing\n-a\n", ERR_FILE_NOT_FOUND},
    {"*** Update File: f\n-wrong\n", ERR_INVALID_PATCH},
    {"*** Update File: d\n-a\n", ERR_SPECIAL_FILE_REJECTED},
    {"*** Update File: fifo\n-a\n", ERR_SPECIAL_FILE_REJECTED},
    {"*** Update File: socket\n-a\n", ERR_SPECIAL_FILE_REJECTED},
    {"*** Update File: link\n-a\n", ERR_SYMLINK_REJECTED},
    {"*** Update File: olink/secret\n-secret\n", ERR_SYMLINK_REJECTED},
    {"*** Update File: ../ws_secret\n-secret\n", ERR_PATH_ESCAPE},
    {"*** Update File: .git/config\n-x\n", ERR_PATH_PROTECTED},
    {"*** Update File: f\n*** Move to: .agents/f\n", ERR_PATH_PROTECTED},
    {"*** Update File: f\n*** Move to: d/x\n", ERR_MOVE_DESTINATION_EXISTS},
    {"*** Update File: f\n*** Move to: d\n", ERR_SPECIAL_FILE_REJECTED},
    {"*** Update File: f\n*** Move to: ../f\n", ERR_PATH_ESCAPE},
    {"*** Update File: f\n*** Move to: olink/f\n", ERR_SYMLINK_REJECTED},
    {"*** Delete File: missing\n", ERR_FILE_NOT_FOUND},
    {"*** Delete File: d\n", ERR_SPECIAL_FILE_REJECTED},
    {"*** Delete File: fifo\n", ERR_SPECIAL_FILE_REJECTED},
    {"*** Delete File: link\n", ERR_SYMLINK_REJECTED},
    {"*** Delete File: .git/config\n", ERR_PATH_PROTECTED},
    {"*** Delete File: d/x/y\n", ERR_PATH_NOT_DIRECTORY},
};

static void test_refusals(void **state)
{
    struct scratch *s = *state;
    put_world(s);
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        autofree char *text = mem_printf("*** Begin Patch\n*** Update File: first\n-a\n+b\n%s"
                                         "*** End Patch\n",
                                         refusals[i].section);
        expect_refused(s, text, refusals[i].code, "");
        scratch_expect(s, "first", "a\n");
        scratch_expect(s, "f", "a\n");
    }
    scratch_expect(s, "../out/secret", "secret\n");
    assert_false(scratch_has(s, "../out/f"));
    assert_false(scratch_has(s, "../out/newdir"));
    assert_false(scratch_has(s, ".codex"));
}

static void test_read_only_profile(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "f", "a\n");
    s->ws.profile = PROFILE_READ_ONLY;
    expect_refused(s, P("*** Delete File: f\n"), ERR_UNAUTHORIZED, "read-only");
    scratch_expect(s, "f", "a\n");
}

static void test_huge_file(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "huge", "a\n");
    int fd = openat(s->ws.root_fd, "huge", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)PATCH_FILE_MAX + 1), 0);
    close(fd);
    expect_refused(s, P("*** Update File: huge\n-a\n"), ERR_LIMIT_EXCEEDED,
                   "PATCH_FILE_MAX (67108864)");
    expect_applied(s, P("*** Delete File: huge\n"), "delete huge b;");
}

/* A file above the size that the first look keeps. */
static void test_large_file(void **state)
{
    struct scratch *s = *state;
    autobuf b = BUF_INIT;
    for (int i = 0; b.len < (3u << 20); i++)
        buf_printf(&b, "line %d\n", i);
    scratch_put_bytes(s, "large", buf_bytes(&b), b.len);
    expect_applied(s, P("*** Update File: large\n line 200000\n-line 200001\n+changed\n"),
                   "update large b a;");
    autobuf after = scratch_get(s, "large");
    assert_int_equal(after.len, b.len - strlen("line 200001") + strlen("changed"));
}

/* ---- what a file keeps ---- */

static mode_t mode_of(struct scratch *s, const char *path)
{
    struct stat st;
    assert_int_equal(fstatat(s->ws.root_fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

static void test_modes_are_kept(void **state)
{
    struct scratch *s = *state;
    static const mode_t modes[] = {0755, 0640, 0600, 0444, 02755, 0777};
    mode_t old = umask(077);
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        scratch_put(s, "f", "a\n");
        assert_int_equal(fchmodat(s->ws.root_fd, "f", modes[i], 0), 0);
        expect_applied(s, P("*** Update File: f\n-a\n+b\n"), "update f b a;");
        assert_int_equal(mode_of(s, "f"), modes[i]);
        expect_applied(s, P("*** Update File: f\n*** Move to: g\n"), "delete f b;move g a;");
        assert_int_equal(mode_of(s, "g"), modes[i]);
        expect_applied(s, P("*** Delete File: g\n"), "delete g b;");
    }
    umask(027);
    expect_applied(s, P("*** Add File: n/new\n+x\n"), "add n/new a;");
    assert_int_equal(mode_of(s, "n/new"), 0640);
    assert_int_equal(mode_of(s, "n"), 0750);
    umask(old);
}

static void test_attributes_are_kept(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "f", "a\n");
    autofree char *path = mem_printf("%s/f", s->ws.root);
    char big[1000];
    memset(big, 'v', sizeof(big));
    if (setxattr(path, "user.small", "value", 5, 0) < 0) {
        print_message("no user attributes on this file system\n");
        skip();
    }
    assert_int_equal(setxattr(path, "user.big", big, sizeof(big), 0), 0);
    expect_applied(s, P("*** Update File: f\n-a\n+b\n"), "update f b a;");
    char got[1000];
    assert_int_equal(getxattr(path, "user.small", got, sizeof(got)), 5);
    assert_int_equal(getxattr(path, "user.big", got, sizeof(got)), 1000);
    assert_memory_equal(got, big, sizeof(big));
}

/* A list as the kernel stores it: owner, user 1234, group, mask, others. */
static const struct {
    uint32_t version;
    struct {
        uint16_t tag;
        uint16_t permissions;
        uint32_t id;
    } entries[5];
} acl = {2,
         {{1, 6, UINT32_MAX},
          {2, 4, 1234},
          {4, 4, UINT32_MAX},
          {16, 4, UINT32_MAX},
          {32, 0, UINT32_MAX}}};

static void test_access_lists_are_kept(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "with", "a\n");
    scratch_put(s, "without", "a\n");
    autofree char *with = mem_printf("%s/with", s->ws.root);
    autofree char *without = mem_printf("%s/without", s->ws.root);
    char got[sizeof(acl)];
    if (setxattr(with, "system.posix_acl_access", &acl, sizeof(acl), 0) < 0) {
        print_message("no access lists on this file system\n");
        skip();
    }
    /* The directory would give every new file a list. */
    assert_int_equal(setxattr(s->ws.root, "system.posix_acl_default", &acl, sizeof(acl), 0), 0);
    mode_t mode = mode_of(s, "with");
    expect_applied(s, P("*** Update File: with\n-a\n+b\n*** Update File: without\n-a\n+b\n"),
                   "update with b a;update without b a;");
    assert_int_equal(getxattr(with, "system.posix_acl_access", got, sizeof(got)), sizeof(acl));
    assert_memory_equal(got, &acl, sizeof(acl));
    assert_int_equal(mode_of(s, "with"), mode);
    assert_int_equal(getxattr(without, "system.posix_acl_access", got, sizeof(got)), -1);
    assert_int_equal(mode_of(s, "without"), 0644);
}

static void test_hidden_path(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "secret/key", "a\n");
    scratch_put(s, "f", "a\n");
    strv_addf(&s->ws.hidden, "%s/secret", s->ws.root);
    expect_refused(s, P("*** Update File: secret/key\n-a\n+b\n"), ERR_PATH_PROTECTED, "hidden");
    expect_refused(s, P("*** Add File: secret/new\n+b\n"), ERR_PATH_PROTECTED, "hidden");
    expect_refused(s, P("*** Update File: secret/key\n*** Move to: shown\n"), ERR_PATH_PROTECTED,
                   "hidden");
    expect_refused(s, P("*** Update File: f\n*** Move to: secret/f\n"), ERR_PATH_PROTECTED,
                   "hidden");
    scratch_expect(s, "secret/key", "a\n");
    strv_fini(&s->ws.hidden);
}

/* A18: the inode outside, reached by a hard link, is not written. */
static void test_a_hard_link_is_broken_not_written_through(void **state)
{
    struct scratch *s = *state;
    scratch_put(s, "../out", "a\n");
    assert_int_equal(linkat(s->dir_fd, "out", s->ws.root_fd, "in", 0), 0);
    expect_applied(s, P("*** Update File: in\n-a\n+b\n"), "update in b a;");
    scratch_expect(s, "in", "b\n");
    scratch_expect(s, "../out", "a\n");
}

static void test_an_update_that_changes_nothing_does_not_write(void **state)
{
    struct scratch *s = *state;
    struct stat before;
    struct stat after;
    scratch_put(s, "f", "a\n");
    assert_int_equal(fstatat(s->ws.root_fd, "f", &before, 0), 0);
    expect_applied(s, P("*** Update File: f\n-a\n+a\n"), "update f b a;");
    assert_int_equal(fstatat(s->ws.root_fd, "f", &after, 0), 0);
    assert_int_equal(before.st_ino, after.st_ino);
}

/* ---- expectations ---- */

static int run_expecting(struct scratch *s, const char *path, const char *version, struct err *e)
{
    static const char text[] = P("*** Update File: f\n-a\n+b\n");
    struct patch_expect x = {path, version};
    struct patch_request q = {.text = text, .text_len = strlen(text), .expect = &x, .n_expect = 1};
    struct patch_result r = {0};
    int rc = patch_apply(&s->ws, &q, &r, e);
    patch_result_fini(&r);
    return rc;
}

static void test_expectations(void **state)
{
    struct scratch *s = *state;
    char v[FILES_VERSION_LEN];
    struct err e = {0};
    scratch_put(s, "f", "a\n");
    scratch_put(s, "other", "o\n");
    files_version("zz", 2, v);
    assert_int_equal(run_expecting(s, "f", v, &e), -1);
    assert_int_equal(e.code, ERR_VERSION_CONFLICT);
    assert_non_null(strstr(e.message, v));
    assert_int_equal(run_expecting(s, "f", "absent", &e), -1);
    assert_int_equal(e.code, ERR_VERSION_CONFLICT);
    /* Files that the patch does not touch count too. */
    assert_int_equal(run_expecting(s, "other", v, &e), -1);
    assert_int_equal(e.code, ERR_VERSION_CONFLICT);
    assert_int_equal(run_expecting(s, "missing", v, &e), -1);
    assert_non_null(strstr(e.message, "is at version absent"));
    assert_int_equal(run_expecting(s, "f", "SHA256:x", &e), -1);
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_int_equal(run_expecting(s, "../f", v, &e), -1);
    assert_int_equal(e.code, ERR_PATH_ESCAPE);
    scratch_expect(s, "f", "a\n");
    files_version("o\n", 2, v);
    assert_int_equal(run_expecting(s, "./other", v, &e), 0);
    scratch_expect(s, "f", "b\n");
    scratch_put(s, "f", "a\n");
    assert_int_equal(run_expecting(s, "missing/deep", "absent", &e), 0);
    scratch_expect(s, "f", "b\n");
    scratch_expect(s, "other", "o\n");
}

static void test_check_only_writes_nothing(void **state)
{
    struct scratch *s = *state;
    struct patch_result r = {0};
    struct err e = {0};
    scratch_put(s, "f", "a\n");
    assert_int_equal(run(s,
                         P("*** Update File: f\n-a\n+b\n*** Add File: d/n\n+x\n"
                           "*** Delete File: f\n"),
                         true, &r, &e),
                     0);
    assert_int_equal(r.status, PATCH_CHECKED);
    autobuf b = BUF_INIT;
    describe(&r, &b);
    assert_string_equal(buf_cstr(&b), "delete f b;add d/n;");
    scratch_expect(s, "f", "a\n");
    assert_false(scratch_has(s, "d"));
    patch_result_fini(&r);
    assert_int_equal(run(s, P("*** Update File: f\n-x\n"), true, &r, &e), -1);
    assert_int_equal(e.code, ERR_INVALID_PATCH);
}

static void test_strange_names(void **state)
{
    struct scratch *s = *state;
    expect_applied(s, P("*** Add File: \xc3\xa9/sp ace\n+x\n*** Add File: b\xff\n+y\n"),
                   "add \xc3\xa9/sp ace a;add b\xff a;");
    expect_applied(s, P("*** Update File: dir\\..\\b\xff\n-y\n+z\n"), "update b\xff b a;");
    scratch_expect(s, "b\xff", "z\n");
}

static void test_many_files_in_many_directories(void **state)
{
    struct scratch *s = *state;
    autobuf b = BUF_INIT;
    buf_puts(&b, "*** Begin Patch\n");
    for (int i = 0; i < 300; i++)
        buf_printf(&b, "*** Add File: d%d/f\n+%d\n", i, i);
    buf_puts(&b, "*** End Patch\n");
    struct patch_result r = {0};
    struct err e = {0};
    if (run(s, buf_cstr(&b), false, &r, &e) < 0)
        fail_msg("%s", e.message);
    assert_int_equal(r.status, PATCH_APPLIED);
    assert_int_equal(r.n_changes, 300);
    scratch_expect(s, "d299/f", "299\n");
    assert_int_equal(scratch_leftovers(s), 0);
    patch_result_fini(&r);
}

/* ---- the caller's steps ---- */

struct steps {
    struct scratch *s;
    const char *refuse; /* "planned", "staged" or NULL */
    unsigned planned, staged;
    size_t n_changes;
    bool had_inverse;
    char after[FILES_VERSION_LEN];
    const char *in_the_way; /* file to make once it is planned */
    enum patch_status status;
};

static int answer_step(const struct steps *x, const char *step, struct err *e)
{
    scratch_expect(x->s, "f", "a\n"); /* nothing changed yet */
    if (x->refuse != NULL && strcmp(x->refuse, step) == 0)
        return err_set(e, ERR_LEDGER_FAILED, "no %s", step);
    return 0;
}

static int planned(void *user, const struct patch_result *r, struct err *e)
{
    struct steps *x = user;
    x->planned++;
    x->n_changes = r->n_changes;
    x->had_inverse = r->inverse.len > 0;
    memcpy(x->after, r->changes[0].after, sizeof(x->after));
    assert_int_equal(scratch_leftovers(x->s), 0);
    if (x->in_the_way != NULL)
        scratch_put(x->s, x->in_the_way, "");
    return answer_step(x, "planned", e);
}

static int staged(void *user, struct err *e)
{
    struct steps *x = user;
    assert_int_equal(x->planned, 1);
    x->staged++;
    return answer_step(x, "staged", e);
}

static int run_steps(struct steps *x, const char *text, struct err *e)
{
    struct patch_request q = {.text = text,
                              .text_len = strlen(text),
                              .want_inverse = true,
                              .planned = planned,
                              .staged = staged,
                              .user = x};
    struct patch_result r = {0};
    int rc = patch_apply(&x->s->ws, &q, &r, e);
    x->status = r.status;
    patch_result_fini(&r);
    return rc;
}

static void test_the_caller_is_asked_before_files_change(void **state)
{
    struct scratch *s = *state;
    static const char text[] = P("*** Update File: f\n-a\n+b\n*** Add File: d/n\n+x\n");
    static const char *const refusals_of[] = {"planned", "staged", NULL};
    char v[FILES_VERSION_LEN];
    scratch_put(s, "f", "a\n");
    files_version("b\n", 2, v);
    for (size_t i = 0; i < ARRAY_LEN(refusals_of); i++) {
        struct steps x = {.s = s, .refuse = refusals_of[i]};
        struct err e = {0};
        int rc = run_steps(&x, text, &e);
        assert_int_equal(x.planned, 1);
        assert_int_equal(x.staged, i > 0);
        assert_int_equal(x.n_changes, 2);
        assert_true(x.had_inverse);
        assert_string_equal(x.after, v);
        assert_int_equal(scratch_leftovers(s), 0);
        if (x.refuse == NULL) {
            assert_int_equal(rc, 0);
            scratch_expect(s, "f", "b\n");
            continue;
        }
        assert_int_equal(rc, -1);
        assert_int_equal(e.code, ERR_LEDGER_FAILED);
        scratch_expect(s, "f", "a\n");
        assert_false(scratch_has(s, "d"));
    }
}

/* A file in the way of a new directory: staging fails, and who waits for `staged` gets it. */
static void test_the_caller_is_told_when_staging_fails(void **state)
{
    struct scratch *s = *state;
    static const char text[] = P("*** Update File: f\n-a\n+b\n*** Add File: d/n\n+x\n");
    struct steps x = {.s = s, .in_the_way = "d"};
    struct err e = {0};
    scratch_put(s, "f", "a\n");
    assert_int_equal(run_steps(&x, text, &e), 0);
    assert_int_equal(x.status, PATCH_FAILED_ROLLED_BACK);
    assert_int_equal(x.planned, 1);
    assert_int_equal(x.staged, 1);
    scratch_expect(s, "f", "a\n");
}

/* So many sections that the files are looked at ahead: what is told is the first fault in the
 * patch, as with few, and nothing is changed. */
static void put_hundred(struct scratch *s, struct buf *text, const char *first, const char *last)
{
    buf_puts(text, "*** Begin Patch\n");
    buf_puts(text, first);
    for (int i = 0; i < 100; i++) {
        char path[16];
        snprintf(path, sizeof(path), "m%d/f%d", i / 20, i);
        scratch_put(s, path, "a\n");
        buf_printf(text, "*** Update File: %s\n-a\n+b\n", path);
    }
    buf_puts(text, last);
    buf_puts(text, "*** End Patch\n");
}

static void test_many_are_looked_at_ahead(void **state)
{
    struct scratch *s = *state;
    static const struct {
        const char *first;
        const char *last;
        enum err_code refused;
        const char *says;
    } rows[] = {
        {"*** Update File: big\n-x\n+y\n", "*** Update File: missing\n-a\n+b\n", ERR_FILE_NOT_FOUND,
         "missing"},
        {"*** Update File: ../x\n-a\n+b\n", "*** Update File: missing\n-a\n+b\n", ERR_PATH_ESCAPE,
         "../x"},
        {"*** Update File: link\n-a\n+b\n", "", ERR_SYMLINK_REJECTED, "link"},
        {"*** Update File: m0/f0\n-c\n+b\n", "*** Update File: missing\n-a\n+b\n",
         ERR_INVALID_PATCH, "m0/f0"},
        /* Twice in one patch, and above what is read ahead. */
        {"*** Update File: big\n-x\n+y\n", "*** Update File: m0/f0\n-b\n+c\n", ERR_NONE, NULL},
    };
    autofree char *big = mem_zalloc(200001, 1);
    memset(big, '\n', 200000);
    big[0] = 'x';
    assert_int_equal(symlinkat("m0/f0", s->ws.root_fd, "link"), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autobuf text = BUF_INIT;
        struct patch_result r = {0};
        struct err e = {0};
        scratch_put(s, "big", big);
        put_hundred(s, &text, rows[i].first, rows[i].last);
        int rc = run(s, buf_cstr(&text), false, &r, &e);
        if (rows[i].refused != ERR_NONE) {
            assert_int_equal(rc, -1);
            assert_int_equal(e.code, rows[i].refused);
            assert_non_null(strstr(e.message, rows[i].says));
            scratch_expect(s, "m0/f0", "a\n");
            scratch_expect(s, "m4/f99", "a\n");
            continue;
        }
        if (rc < 0)
            fail_msg("%s", e.message);
        assert_int_equal(r.n_changes, 101);
        scratch_expect(s, "m0/f0", "c\n");
        scratch_expect(s, "m4/f99", "b\n");
        patch_result_fini(&r);
    }
    assert_int_equal(scratch_leftovers(s), 0);
}

/* The inverse of many files is made by several threads: in order, and it undoes all. */
static void test_the_inverse_of_many(void **state)
{
    struct scratch *s = *state;
    autobuf text = BUF_INIT;
    struct patch_result r = {0};
    struct patch_result back = {0};
    struct err e = {0};
    put_hundred(s, &text, "*** Add File: new\n+n\n", "");
    struct patch_request q = {
        .text = buf_cstr(&text), .text_len = text.len, .want_inverse = true, .want_diff = true};
    if (patch_apply(&s->ws, &q, &r, &e) < 0)
        fail_msg("%s", e.message);
    assert_false(r.inverse_omitted || r.diff_omitted);
    assert_true(strstr(buf_cstr(&r.inverse), "m0/f0") < strstr(buf_cstr(&r.inverse), "m4/f99"));
    struct patch_request undo = {.text = buf_cstr(&r.inverse),
                                 .text_len = r.inverse.len,
                                 .is_inverse = true,
                                 .format = PATCH_FORMAT_UNIFIED};
    if (patch_apply(&s->ws, &undo, &back, &e) < 0)
        fail_msg("%s", e.message);
    scratch_expect(s, "m0/f0", "a\n");
    scratch_expect(s, "m4/f99", "a\n");
    assert_false(scratch_has(s, "new"));
    patch_result_fini(&back);
    /* And the diff does it once more. */
    struct patch_request again = {
        .text = buf_cstr(&r.diff), .text_len = r.diff.len, .format = PATCH_FORMAT_UNIFIED};
    if (patch_apply(&s->ws, &again, &back, &e) < 0)
        fail_msg("%s", e.message);
    scratch_expect(s, "m2/f50", "b\n");
    assert_true(scratch_has(s, "new"));
    patch_result_fini(&back);
    patch_result_fini(&r);
}

#define S(f) cmocka_unit_test_setup_teardown(f, scratch_up, scratch_down)

UNIT_MAIN(S(test_operations), S(test_pure_move_and_case_only_rename), S(test_fuzzy_is_told),
          S(test_sections_are_carried_out_in_order), S(test_sections_that_contradict),
          S(test_refusals), S(test_read_only_profile), S(test_huge_file), S(test_large_file),
          S(test_modes_are_kept), S(test_attributes_are_kept), S(test_access_lists_are_kept),
          S(test_hidden_path), S(test_a_hard_link_is_broken_not_written_through),
          S(test_an_update_that_changes_nothing_does_not_write), S(test_expectations),
          S(test_check_only_writes_nothing), S(test_strange_names),
          S(test_many_files_in_many_directories), S(test_the_caller_is_asked_before_files_change),
          S(test_the_caller_is_told_when_staging_fails), S(test_many_are_looked_at_ahead),
          S(test_the_inverse_of_many))
