/* run/spill: see spill.h. */
#include "run/spill.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "run/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A disk on every ordinary system, where /tmp is often memory. */
#define SPILL_DIR_DEFAULT "/var/tmp"

uint64_t spill_asked_bytes(void)
{
    uint64_t mib = 0;
    const char *text = getenv("CODESPACE_SPILL_MIB");
    if (text == NULL || num_parse_u64(text, 1, RUN_SPILL_TOTAL_BYTES >> 20, &mib) < 0)
        return 0;
    return mib << 20;
}

void spill_budget_init(struct spill_budget *b, uint64_t bytes, const char *dir)
{
    *b = (struct spill_budget){
        .dir = mem_strdup(dir),
        .bytes = bytes / (2 * SPILL_BLOCK) * (2 * SPILL_BLOCK),
        .total_max = RUN_SPILL_TOTAL_BYTES,
        .follow_max = RUN_SPILL_FOLLOW_BYTES,
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

static int open_spill(struct spill *s)
{
    int fd = open_file(s->budget);
    if (fd < 0)
        return fd;
    s->fd = fd;
    s->half = s->budget->bytes / 2;
    s->tail_first = s->half / SPILL_BLOCK;
    s->head = mem_zalloc((size_t)(s->half / SPILL_BLOCK), sizeof(*s->head));
    return 0;
}

/* ---- what there is ---- */

static uint64_t head_blocks(const struct spill *s)
{
    return s->half / SPILL_BLOCK;
}

static uint64_t end_block(const struct spill *s)
{
    return s->end / SPILL_BLOCK;
}

static uint64_t tail_len(const struct spill *s)
{
    return end_block(s) > s->tail_first ? end_block(s) - s->tail_first : 0;
}

static uint64_t bytes_used(const struct spill *s)
{
    return ((s->end < s->half ? end_block(s) : head_blocks(s)) + tail_len(s)) * SPILL_BLOCK;
}

/* The record of block `number`, which is stored or about to be. */
static struct spill_block *record_of(const struct spill *s, uint64_t number)
{
    return number < head_blocks(s) ? &s->head[number] : &s->tail[number & (s->cap_tail - 1)];
}

/* The budget is told what is used now. */
static void charge(struct spill *s)
{
    uint64_t used = bytes_used(s);
    uint64_t usual = used < 2 * s->half ? used : 2 * s->half;
    s->budget->total_used += usual - s->charged;
    s->budget->follow_used += used - usual - s->charged_follow;
    s->charged = usual;
    s->charged_follow = used - usual;
}

void spill_fini(struct spill *s)
{
    if (s->half == 0)
        return;
    s->budget->total_used -= s->charged;
    s->budget->follow_used -= s->charged_follow;
    close(s->fd);
    free(s->head);
    free(s->tail);
    free(s->spare);
    *s = (struct spill){.budget = s->budget};
}

/* ---- places ---- */

static off_t place_at(uint32_t place)
{
    return (off_t)place * SPILL_PLACE;
}

static uint32_t take_place(struct spill *s)
{
    if (s->n_spare == 0)
        return s->n_places++;
    uint32_t place = s->spare[--s->n_spare];
    s->n_empty = s->n_empty < s->n_spare ? s->n_empty : s->n_spare;
    return place;
}

static void give_place(struct spill *s, uint32_t place)
{
    void *items = s->spare;
    mem_grow(&items, &s->cap_spare, s->n_spare + 1, sizeof(*s->spare));
    s->spare = items;
    s->spare[s->n_spare++] = place;
}

/* Where the file system cannot do that, they stay on the disk until they are used again. */
static void empty_spare_places(struct spill *s)
{
    for (; s->n_empty < s->n_spare; s->n_empty++)
        (void)fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        place_at(s->spare[s->n_empty]), SPILL_PLACE);
}

static void drop_oldest(struct spill *s)
{
    give_place(s, record_of(s, s->tail_first)->place);
    s->tail_first++;
}

static bool oldest_is_wanted(const struct spill *s)
{
    return s->wanted && s->wanted_from < (s->tail_first + 1) * SPILL_BLOCK;
}

/* A large tail that nobody wants any more goes in steps of this. */
#define DROPS_AT_ONCE 32

/* Only what is wanted stays, beyond a tail of `usual` blocks. */
static void shorten_tail(struct spill *s, uint64_t usual)
{
    for (int i = 0; i < DROPS_AT_ONCE && tail_len(s) > usual; i++) {
        if (oldest_is_wanted(s) && s->budget->follow_used + SPILL_BLOCK <= s->budget->follow_max)
            return;
        drop_oldest(s);
        charge(s);
    }
}

void spill_follow(struct spill *s, uint64_t from)
{
    s->wanted = true;
    s->wanted_from = from;
    for (int i = 0; i < DROPS_AT_ONCE && tail_len(s) > head_blocks(s) && !oldest_is_wanted(s); i++)
        drop_oldest(s);
    if (s->half == 0)
        return;
    empty_spare_places(s);
    charge(s);
}

void spill_unfollow(struct spill *s)
{
    s->wanted = false;
}

/* Room for the record of the next block. */
static void grow_tail(struct spill *s)
{
    if (tail_len(s) < s->cap_tail)
        return;
    size_t cap = s->cap_tail == 0 ? 16 : 2 * s->cap_tail;
    struct spill_block *tail = mem_zalloc(cap, sizeof(*tail));
    for (uint64_t k = s->tail_first; k < end_block(s); k++)
        tail[k & (cap - 1)] = *record_of(s, k);
    free(s->tail);
    s->tail = tail;
    s->cap_tail = cap;
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
    bool grows = s->charged < 2 * s->half;
    return grows && s->budget->total_used + SPILL_BLOCK > s->budget->total_max ? -EDQUOT : 0;
}

static int write_block(const struct spill *s, uint32_t place, const char *bytes,
                       const uint64_t *tags, enum spill_tags kind)
{
    int rc = write_all(s->fd, bytes, SPILL_BLOCK, place_at(place));
    if (rc == 0 && kind == SPILL_MIXED)
        rc = write_all(s->fd, tags, SPILL_BLOCK / 8, place_at(place) + SPILL_BLOCK);
    return rc;
}

/* On a disk that is full, what is kept beyond the limit makes room. */
static int write_somewhere(struct spill *s, const char *bytes, const uint64_t *tags,
                           enum spill_tags kind, uint32_t *ret_place)
{
    uint32_t place = take_place(s);
    int rc = write_block(s, place, bytes, tags, kind);
    if (rc < 0 && tail_len(s) >= head_blocks(s) && s->end > s->half) {
        give_place(s, place);
        drop_oldest(s);
        place = take_place(s);
        rc = write_block(s, place, bytes, tags, kind);
    }
    if (rc < 0)
        give_place(s, place);
    *ret_place = place;
    return rc;
}

static int store(struct spill *s, const char *bytes, const uint64_t *tags,
                 const struct spill_block *about)
{
    uint32_t place = 0;
    int rc = s->half == 0 ? open_spill(s) : 0;
    if (rc == 0)
        rc = check_room(s);
    if (rc < 0)
        return rc;
    enum spill_tags kind = kind_of(tags);
    shorten_tail(s, head_blocks(s) - 1);
    rc = write_somewhere(s, bytes, tags, kind, &place);
    if (rc == 0) {
        if (s->end >= s->half)
            grow_tail(s);
        struct spill_block *b = record_of(s, end_block(s));
        *b = *about;
        b->tags = (uint8_t)kind;
        b->place = place;
        s->end += SPILL_BLOCK;
    }
    empty_spare_places(s);
    charge(s);
    return rc;
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

static uint64_t tail_from(const struct spill *s)
{
    uint64_t from = s->tail_first * SPILL_BLOCK;
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
    return record_of(s, offset / SPILL_BLOCK);
}

int spill_read(const struct spill *s, uint64_t offset, void *out, size_t n)
{
    size_t in_block = (size_t)(offset % SPILL_BLOCK);
    ensure(in_block + n <= SPILL_BLOCK);
    return read_all(s->fd, out, n, place_at(spill_block_at(s, offset)->place) + (off_t)in_block);
}

int spill_read_tags(const struct spill *s, uint64_t offset, uint64_t out[SPILL_TAG_WORDS])
{
    const struct spill_block *b = spill_block_at(s, offset);
    if (b->tags == SPILL_MIXED)
        return read_all(s->fd, out, SPILL_BLOCK / 8, place_at(b->place) + SPILL_BLOCK);
    memset(out, b->tags == SPILL_ALL_STDERR ? 0xff : 0, SPILL_BLOCK / 8);
    return 0;
}
