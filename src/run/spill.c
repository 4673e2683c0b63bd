/* run/spill: see spill.h. */
#include "run/spill.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A disk on every ordinary system, where /tmp is often memory. */
#define SPILL_DIR_DEFAULT "/var/tmp"
#define SPILL_TOTAL_BYTES (1u << 30)

uint64_t spill_asked_bytes(void)
{
    uint64_t mib = 0;
    const char *text = getenv("CODESPACE_SPILL_MIB");
    if (text == NULL || num_parse_u64(text, 1, SPILL_TOTAL_BYTES >> 20, &mib) < 0)
        return 0;
    return mib << 20;
}

void spill_budget_init(struct spill_budget *b, uint64_t bytes, const char *dir)
{
    *b = (struct spill_budget){
        .dir = mem_strdup(dir),
        .bytes = bytes / (2 * SPILL_BLOCK) * (2 * SPILL_BLOCK),
        .total_max = SPILL_TOTAL_BYTES,
    };
}

void spill_budget_fini(struct spill_budget *b)
{
    free(steal(b->dir));
}

/* Where O_TMPFILE is not known: a name that lives for two system calls. */
static int open_named(const char *dir)
{
    autofree char *path = mem_printf("%s/codespace-output-XXXXXX", dir);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    unlink(path);
    return fd;
}

static int open_in(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (fd >= 0)
        return fd;
    return errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL ? open_named(dir) : -errno;
}

static int open_file(const struct spill_budget *b)
{
    const char *tmp = getenv("TMPDIR");
    if (b->dir != NULL)
        return open_in(b->dir);
    int fd = open_in(SPILL_DIR_DEFAULT);
    return fd >= 0 ? fd : open_in(tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
}

static size_t places(const struct spill *s)
{
    return (size_t)(2 * s->half / SPILL_BLOCK);
}

static int open_spill(struct spill *s)
{
    int fd = open_file(s->budget);
    if (fd < 0)
        return fd;
    s->fd = fd;
    s->half = s->budget->bytes / 2;
    s->blocks = mem_zalloc(places(s), sizeof(*s->blocks));
    return 0;
}

static uint64_t bytes_used(const struct spill *s)
{
    return s->end < 2 * s->half ? s->end : 2 * s->half;
}

void spill_fini(struct spill *s)
{
    if (s->half == 0)
        return;
    s->budget->total_used -= bytes_used(s);
    close(s->fd);
    free(s->blocks);
    *s = (struct spill){.budget = s->budget};
}

/* The place in the file of the block at `offset`. */
static size_t place_of(const struct spill *s, uint64_t offset)
{
    uint64_t in_tail = offset < s->half ? 0 : (offset - s->half) % s->half;
    return (size_t)((offset < s->half ? offset : s->half + in_tail) / SPILL_BLOCK);
}

/* Tags lie behind all the bytes. */
static off_t tags_at(const struct spill *s, size_t place)
{
    return (off_t)(2 * s->half + place * (SPILL_BLOCK / 8));
}

static int write_all(int fd, const void *data, size_t n, off_t at)
{
    const char *from = data;
    while (n > 0) {
        ssize_t done = pwrite(fd, from, n, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -ENOSPC;
        from += done;
        n -= (size_t)done;
        at += done;
    }
    return 0;
}

static int read_all(int fd, void *data, size_t n, off_t at)
{
    char *to = data;
    while (n > 0) {
        ssize_t done = pread(fd, to, n, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        to += done;
        n -= (size_t)done;
        at += done;
    }
    return 0;
}

static enum spill_tags kind_of(const uint64_t *tags)
{
    if (tags == NULL)
        return SPILL_ALL_STDOUT;
    if (tags[0] != 0 && ~tags[0] != 0)
        return SPILL_MIXED;
    for (size_t i = 1; i < SPILL_TAG_WORDS; i++) {
        if (tags[i] != tags[0])
            return SPILL_MIXED;
    }
    return tags[0] == 0 ? SPILL_ALL_STDOUT : SPILL_ALL_STDERR;
}

static int check_room(const struct spill *s)
{
    bool grows = s->end < 2 * s->half;
    return grows && s->budget->total_used + SPILL_BLOCK > s->budget->total_max ? -EDQUOT : 0;
}

static int store(struct spill *s, const char *bytes, const uint64_t *tags,
                 const struct spill_block *about)
{
    int rc = s->half == 0 ? open_spill(s) : 0;
    if (rc == 0)
        rc = check_room(s);
    if (rc < 0)
        return rc;
    size_t place = place_of(s, s->end);
    enum spill_tags kind = kind_of(tags);
    rc = write_all(s->fd, bytes, SPILL_BLOCK, (off_t)(place * SPILL_BLOCK));
    if (rc == 0 && kind == SPILL_MIXED)
        rc = write_all(s->fd, tags, SPILL_BLOCK / 8, tags_at(s, place));
    if (rc < 0)
        return rc;
    s->blocks[place] = *about;
    s->blocks[place].tags = (uint8_t)kind;
    uint64_t before = bytes_used(s);
    s->end += SPILL_BLOCK;
    s->budget->total_used += bytes_used(s) - before;
    return 0;
}

int spill_put(struct spill *s, const char *bytes, const uint64_t *tags,
              const struct spill_block *about)
{
    if (s->failed != 0)
        return -s->failed;
    if (s->budget == NULL || s->budget->bytes == 0)
        return -ENOTSUP;
    int rc = store(s, bytes, tags, about);
    if (rc < 0)
        s->failed = -rc;
    return rc;
}

/* Where the tail begins. A write that failed half-way has spoilt the oldest block of the tail. */
static uint64_t tail_from(const struct spill *s)
{
    uint64_t kept = s->half - (s->failed != 0 ? SPILL_BLOCK : 0);
    uint64_t from = s->end > s->half + kept ? s->end - kept : s->half;
    return from < s->end ? from : s->end;
}

bool spill_has(const struct spill *s, uint64_t offset, uint64_t *ret_end)
{
    uint64_t head_end = s->end < s->half ? s->end : s->half;
    uint64_t tail = s->half == 0 ? 0 : tail_from(s);
    bool joined = tail == head_end;
    *ret_end = UINT64_MAX;
    if (offset < head_end || (offset >= tail && offset < s->end)) {
        *ret_end = offset < head_end && !joined ? head_end : s->end;
        return true;
    }
    if (offset < tail && tail < s->end)
        *ret_end = tail;
    return false;
}

const struct spill_block *spill_block_at(const struct spill *s, uint64_t offset)
{
    return &s->blocks[place_of(s, offset)];
}

int spill_read(const struct spill *s, uint64_t offset, void *out, size_t n)
{
    size_t in_block = (size_t)(offset % SPILL_BLOCK);
    ensure(in_block + n <= SPILL_BLOCK);
    return read_all(s->fd, out, n, (off_t)(place_of(s, offset) * SPILL_BLOCK + in_block));
}

int spill_read_tags(const struct spill *s, uint64_t offset, uint64_t out[SPILL_TAG_WORDS])
{
    size_t place = place_of(s, offset);
    if (s->blocks[place].tags == SPILL_MIXED)
        return read_all(s->fd, out, SPILL_BLOCK / 8, tags_at(s, place));
    memset(out, s->blocks[place].tags == SPILL_ALL_STDERR ? 0xff : 0, SPILL_BLOCK / 8);
    return 0;
}
