/* core/patch: apply a patch to a workspace, all of it or nothing.
 *
 * Theory. Parse (core/v4a, core/udiff; exact edits come parsed), plan every hunk in memory against
 * the bytes on disk, check what the caller expects, then write: each new content to a temporary
 * file beside its target, fsync, rename; on a failure everything done so far is put back. Only the
 * bytes asked for change: line endings, a missing final newline, mode bits and bytes that are not
 * UTF-8 stay as they are. Writers of one root are serialised by the caller (per device and inode),
 * never here.
 *
 * Several sections for one file are carried out in order (core/plan); places, tolerance and line
 * endings are core/hunk's; all or nothing is core/txn's.
 *
 * Must not: write through a symbolic link or through a hard link to a foreign inode; leave a
 * temporary file behind (but see core/txn for what cannot be put back); report a status that the
 * disk does not show.
 */
#ifndef CODESPACE_CORE_PATCH_H
#define CODESPACE_CORE_PATCH_H

#include "base/buf.h"
#include "base/err.h"
#include "core/files.h"
#include "core/journal.h"
#include "core/registry.h"

#include <stdbool.h>

/* Limits of one patch; each is told by name when it is met. */
#define PATCH_TEXT_MAX (8u << 20)    /* bytes of patch text */
#define PATCH_FILES_MAX 4096u        /* files touched */
#define PATCH_HUNKS_MAX 65536u       /* hunks of all files */
#define PATCH_FILE_MAX (64u << 20)   /* bytes of one file before or after */
#define PATCH_TOTAL_MAX (256u << 20) /* bytes of all files held while planning */
#define PATCH_EDITS_MAX 65536u       /* exact edits of one request */
/* Bytes of a diff that is made: what is told can be applied. */
#define PATCH_DIFF_MAX PATCH_TEXT_MAX
/* Bytes of an inverse that is made, and taken again as one. */
#define PATCH_INVERSE_MAX (64u << 20)

enum patch_kind { PATCH_ADD, PATCH_UPDATE, PATCH_DELETE, PATCH_MOVE };

enum patch_status {
    PATCH_APPLIED,
    PATCH_CHECKED,
    PATCH_REJECTED,
    PATCH_FAILED_ROLLED_BACK,
    PATCH_FAILED_PARTIAL,
    PATCH_UNKNOWN,
};

/* How the text is read. AUTO: by its first line, V4A unless it begins as a unified diff. */
enum patch_format { PATCH_FORMAT_AUTO, PATCH_FORMAT_V4A, PATCH_FORMAT_UNIFIED };

/* Leading components to take off the names of a unified diff: told by the patch, see core/udiff. */
#define PATCH_STRIP_AUTO (-1)

/* An exact edit: `count` places (0 = 1) of the bytes `old` become `replacement`; see core/edits. */
struct patch_edit {
    const char *path;
    const char *old;
    size_t old_len;
    const char *replacement;
    size_t replacement_len;
    uint64_t count;
};

struct patch_change {
    char *path;
    enum patch_kind kind; /* a move is two changes: delete of the source, move at the target */
    char before[FILES_VERSION_LEN]; /* "" = absent */
    /* "" = absent, or not known before it is applied. After a failure: what the disk holds, so the
     * same as `before` for what was put back. */
    char after[FILES_VERSION_LEN];
    /* Some context matched only after folding white space or look-alikes, or stood at other line
     * numbers than a unified diff says. */
    bool fuzzy;
    bool mode_changed; /* the executable bits were set or cleared */
    bool moved_away;   /* a deletion that is one half of a move */
};

struct patch_expect {
    const char *path;
    const char *version; /* "sha256:..." or "absent" */
};

struct patch_result;

struct patch_request {
    const char *text;
    size_t text_len;
    const struct patch_expect *expect;
    size_t n_expect;
    bool check_only;
    /* Zeroes below are the behaviour of a request that knows nothing of them. */
    enum patch_format format;
    unsigned strip_plus_one;        /* 0 = PATCH_STRIP_AUTO, else the components and one */
    bool is_inverse;                /* the text is one that we made: up to PATCH_INVERSE_MAX */
    const struct patch_edit *edits; /* instead of a text */
    size_t n_edits;
    /* Where the transaction is written down (core/journal), or NULL; and whether it may be left to
     * the system when the bytes reach the disk: faster, and lost when the power fails soon. */
    struct journal *journal;
    bool lax;
    bool want_diff;    /* fill `diff` */
    bool want_inverse; /* fill `inverse` */
    /* Called once when the plan stands and nothing is written yet (not with check_only): `result`
     * has the changes with their versions after, and the inverse, and stays as it is until
     * `staged` was called. That comes once after a `planned` of 0: when everything is on the disk
     * under temporary names and before the first file changes, or when that failed and nothing
     * will. Negative from either: nothing changes and patch_apply() returns -1 with that error.
     * NULL = not called. */
    int (*planned)(void *user, const struct patch_result *result, struct err *e);
    int (*staged)(void *user, struct err *e);
    /* txn_env.may_linger; NULL = it may. */
    bool (*may_linger)(void *user);
    void *user;
};

struct patch_result {
    enum patch_status status;
    struct patch_change *changes;
    size_t n_changes;
    size_t cap;
    char failure[ERR_MESSAGE_MAX]; /* why, for the failed statuses */
    /* What the patch does, as a unified diff in git's form; and what undoes it, in the same form:
     * apply that as PATCH_FORMAT_UNIFIED with is_inverse, and `expect` of the versions after. ""
     * when not asked for, when nothing changes, or when it would be larger than PATCH_DIFF_MAX or
     * PATCH_INVERSE_MAX; then the _omitted member says so. Bytes, not text: they hold what the
     * files hold. */
    struct buf diff;
    struct buf inverse;
    bool durable; /* applied, and on the disk when it was told */
    /* txn_env.linger of the transaction, closed with the result unless somebody takes it; NULL when
     * nothing lingers. */
    int *linger;
    size_t n_linger;
    bool diff_omitted;
    bool inverse_omitted;
};

void patch_result_fini(struct patch_result *r);
/* Close and free what patch_result.linger is. Accepts NULL. */
void patch_linger_end(int *linger, size_t n);
const char *patch_status_name(enum patch_status s);
const char *patch_kind_name(enum patch_kind k);

/* Apply or check. 0: *ret is filled, its status is true of the disk (a failure while writing is a
 * result: failed_rolled_back or failed_partial). -1: refused before any byte was written, with
 * INVALID_PATCH, PATH_ESCAPE, PATH_PROTECTED, SYMLINK_REJECTED, SPECIAL_FILE_REJECTED,
 * FILE_NOT_FOUND, ADD_FILE_EXISTS, MOVE_DESTINATION_EXISTS, VERSION_CONFLICT, LIMIT_EXCEEDED,
 * UNAUTHORIZED, FILE_OPERATION_FAILED. */
int patch_apply(const struct workspace *ws, const struct patch_request *request,
                struct patch_result *ret, struct err *e);

#endif
