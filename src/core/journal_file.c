/* core/journal_file: see journal_file.h. */
#include "core/journal_file.h"

#include "base/mem.h"
#include "base/num.h"
#include "core/version.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "codespace-journal 1"
#define RECORD_AT 4096
/* Magic, number, length, digest, and a NUL behind each. */
#define HEAD_LEN 160
#define MARK_LEN 64

static int write_at(int fd, const char *bytes, size_t n, off_t at)
{
    while (n > 0) {
        ssize_t k = pwrite(fd, bytes, n, at);
        if (k < 0 && errno != EINTR)
            return -errno;
        bytes += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
        at += k > 0 ? k : 0;
    }
    return 0;
}

/* Bytes read, fewer at the end of the file, or -errno. */
static ssize_t read_at(int fd, char *to, size_t n, off_t at)
{
    size_t have = 0;
    while (have < n) {
        ssize_t k = pread(fd, to + have, n - have, at + (off_t)have);
        if (k < 0 && errno != EINTR)
            return -errno;
        if (k == 0)
            break;
        have += k > 0 ? (size_t)k : 0;
    }
    return (ssize_t)have;
}

/* ---- writing ---- */

static void put_text(struct buf *b, const char *s)
{
    buf_put(b, s, strlen(s) + 1);
}

/* Ten of them stand for each file, in a record that is written twice: not by printf. */
static void put_number(struct buf *b, uint64_t v)
{
    char digits[24];
    char *at = digits + sizeof(digits);
    *--at = '\0';
    do
        *--at = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    buf_put(b, at, (size_t)(digits + sizeof(digits) - at));
}

static void put_id(struct buf *b, const struct journal_id *id)
{
    put_number(b, id->dev);
    put_number(b, id->ino);
    put_number(b, id->size);
    put_number(b, (uint64_t)id->seconds);
    put_number(b, (uint64_t)id->nanoseconds);
}

static void put_item(struct buf *b, const struct journal_item *it)
{
    put_number(b, (uint64_t)it->kind);
    put_text(b, it->path);
    put_text(b, it->temp);
    put_text(b, it->aside);
    put_id(b, &it->was);
    put_id(b, &it->made);
}

int journal_file_write(struct journal *j, bool ready, const struct journal_item *items, size_t n)
{
    autobuf b = BUF_INIT;
    char head[HEAD_LEN] = "";
    char digest[FILES_VERSION_LEN];
    memset(buf_reserve(&b, HEAD_LEN), 0, HEAD_LEN);
    buf_commit(&b, HEAD_LEN);
    put_number(&b, ready);
    put_number(&b, j->root.st_dev);
    put_number(&b, j->root.st_ino);
    put_number(&b, n);
    for (size_t i = 0; i < n; i++)
        put_item(&b, &items[i]);
    buf_put(&b, buf_bytes(&j->dirs), j->dirs.len);
    if (b.len > JOURNAL_RECORD_MAX)
        return -EFBIG;
    char *bytes = b.data + b.start;
    version_of(bytes + HEAD_LEN, b.len - HEAD_LEN, digest);
    snprintf(head, sizeof(head), "%s %" PRIu64 " %zu %s", MAGIC, j->number, b.len - HEAD_LEN,
             digest);
    memcpy(bytes, head, HEAD_LEN);
    return write_at(j->fd, bytes, b.len, RECORD_AT);
}

int journal_file_mark(struct journal *j, const char *mark, bool sync)
{
    char block[MARK_LEN] = "";
    snprintf(block, sizeof(block), "%s %" PRIu64, mark, j->number);
    int rc = write_at(j->fd, block, sizeof(block), 0);
    return rc == 0 && sync && fdatasync(j->fd) < 0 ? -errno : rc;
}

/* ---- reading ---- */

struct fields {
    const char *at;
    const char *end;
    bool bad;
};

static const char *take_text(struct fields *f)
{
    const char *nul = memchr(f->at, '\0', (size_t)(f->end - f->at));
    const char *text = f->at;
    if (nul == NULL) {
        f->bad = true;
        return "";
    }
    f->at = nul + 1;
    return text;
}

static uint64_t take_number(struct fields *f)
{
    uint64_t v = 0;
    f->bad |= num_parse_u64(take_text(f), 0, UINT64_MAX, &v) < 0;
    return v;
}

static struct journal_id take_id(struct fields *f)
{
    struct journal_id id = {.dev = take_number(f)};
    id.ino = take_number(f);
    id.size = take_number(f);
    id.seconds = (int64_t)take_number(f);
    id.nanoseconds = (int64_t)take_number(f);
    return id;
}

static void take_name(struct fields *f, char out[JOURNAL_NAME_LEN])
{
    const char *name = take_text(f);
    f->bad |= strlen(name) >= JOURNAL_NAME_LEN || strchr(name, '/') != NULL || name[0] != '.';
    snprintf(out, JOURNAL_NAME_LEN, "%.31s", name);
}

static void take_items(struct fields *f, struct journal_record *r)
{
    for (size_t i = 0; i < r->n && !f->bad; i++) {
        struct journal_item *it = &r->items[i];
        it->kind = (int)take_number(f);
        it->path = take_text(f);
        take_name(f, it->temp);
        take_name(f, it->aside);
        it->was = take_id(f);
        it->made = take_id(f);
    }
}

static bool parse_payload(struct journal_record *r)
{
    struct fields f = {buf_bytes(&r->payload), buf_bytes(&r->payload) + r->payload.len, false};
    r->ready = take_number(&f) == JOURNAL_READY;
    r->root_dev = take_number(&f);
    r->root_ino = take_number(&f);
    r->n = take_number(&f);
    if (f.bad || r->n > r->payload.len)
        return false;
    r->items = mem_zalloc(r->n, sizeof(*r->items));
    take_items(&f, r);
    while (!f.bad && f.at < f.end)
        strv_add(&r->dirs, take_text(&f));
    return !f.bad;
}

/* The head's words, or false. */
static bool parse_head(char *head, uint64_t *ret_number, uint64_t *ret_len, const char **ret_digest)
{
    head[HEAD_LEN - 1] = '\0';
    char *save = NULL;
    const char *words[5] = {NULL};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        words[i] = strtok_r(i == 0 ? head : NULL, " ", &save);
    if (words[4] == NULL || strcmp(words[0], "codespace-journal") != 0 ||
        strcmp(words[1], "1") != 0)
        return false;
    *ret_digest = words[4];
    return num_parse_u64(words[2], 0, UINT64_MAX, ret_number) == 0 &&
           num_parse_u64(words[3], 0, JOURNAL_RECORD_MAX, ret_len) == 0;
}

static int read_record(struct journal *j, struct journal_record *r)
{
    char head[HEAD_LEN];
    const char *digest = NULL;
    char have[FILES_VERSION_LEN];
    uint64_t len = 0;
    ssize_t n = read_at(j->fd, head, sizeof(head), RECORD_AT);
    if (n < HEAD_LEN || !parse_head(head, &r->number, &len, &digest))
        return n < 0 ? (int)n : 0;
    n = read_at(j->fd, buf_reserve(&r->payload, len + 1), len, RECORD_AT + HEAD_LEN);
    if (n < (ssize_t)len)
        return n < 0 ? (int)n : 0;
    buf_commit(&r->payload, len);
    version_of(buf_bytes(&r->payload), len, have);
    return strcmp(have, digest) == 0 && parse_payload(r);
}

int journal_file_read(struct journal *j, struct journal_record *ret)
{
    char mark[MARK_LEN];
    char want[2][MARK_LEN];
    *ret = (struct journal_record){0};
    int rc = read_record(j, ret);
    ssize_t n = read_at(j->fd, mark, sizeof(mark), 0);
    if (rc <= 0 || n < MARK_LEN)
        return n < 0 ? (int)n : rc;
    snprintf(want[0], MARK_LEN, "idle %" PRIu64, ret->number);
    snprintf(want[1], MARK_LEN, "committed %" PRIu64, ret->number);
    ret->committed = memcmp(mark, want[1], strlen(want[1]) + 1) == 0;
    return memcmp(mark, want[0], strlen(want[0]) + 1) != 0;
}

void journal_record_fini(struct journal_record *r)
{
    buf_fini(&r->payload);
    free(r->items);
    strv_fini(&r->dirs);
}
