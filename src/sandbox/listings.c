/* sandbox/listings: see listings.h. */
#include "sandbox/listings.h"

#include "base/str.h"

#include <linux/magic.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>

/* A power of two, more than the smallest listings that LISTINGS_BYTES can hold. */
#define SLOTS (1u << 17)
/* Slots that are looked at for one directory. */
#define PROBES_MAX 64
/* Above the step of the kernel's clock, which is 10 ms at most. */
#define SETTLED_NS 20000000
/* Where times are whole seconds. */
#define SETTLED_WHOLE_NS 2000000000
#define ALIGNMENT 8u
/* Of an entry, before its name: its place and whether it is a directory. */
#define ENTRY_HEAD (sizeof(uint32_t) + 1)

struct listings {
    _Atomic uint32_t used; /* of `bytes`; 0 is no place, so it starts at ALIGNMENT */
    atomic_bool full;      /* something did not fit */
    atomic_bool stale;
    _Atomic uint32_t slots[SLOTS]; /* place of a listing in `bytes`; 0 = none */
    _Alignas(ALIGNMENT) char bytes[LISTINGS_BYTES];
};

_Static_assert(LISTINGS_BYTES / (sizeof(struct listing)) < SLOTS, "slots never run out");

/* What changes the entries of a directory changes its ctime there, at once, for everybody. */
static bool is_told(int fd)
{
    static const uint32_t kinds[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                     F2FS_SUPER_MAGIC, TMPFS_MAGIC,     OVERLAYFS_SUPER_MAGIC};
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if ((uint32_t)fs.f_type == kinds[i])
            return true;
    }
    return false;
}

struct listings *listings_new(void)
{
    struct listings *l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (l == MAP_FAILED)
        return NULL;
    atomic_init(&l->used, ALIGNMENT);
    return l;
}

void listings_free(struct listings *l)
{
    if (l != NULL)
        munmap(l, sizeof(*l));
}

void listings_renew(struct listings **l)
{
    if (*l == NULL || !atomic_load(&(*l)->stale))
        return;
    listings_free(*l);
    *l = listings_new();
}

/* ---- finding ---- */

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_of(const struct listing *it, const struct stat *st)
{
    return it->inode == st->st_ino && it->device == st->st_dev;
}

static uint32_t first_slot(const struct stat *st)
{
    uint64_t h = (st->st_ino ^ (uint64_t)st->st_dev << 40) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

static uint32_t slot_at(const struct stat *st, uint32_t probe)
{
    return (first_slot(st) + probe) % SLOTS;
}

static const struct listing *listing_at(const struct listings *l, uint32_t place)
{
    return (const void *)(l->bytes + place);
}

static size_t room_for(size_t bytes)
{
    return (sizeof(struct listing) + bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

const struct listing *listings_find(const struct listings *l, const struct stat *st,
                                    struct listings_use *use)
{
    for (uint32_t probe = 0; probe < PROBES_MAX; probe++) {
        uint32_t place = atomic_load_explicit(&l->slots[slot_at(st, probe)], memory_order_acquire);
        if (place == 0)
            return NULL;
        const struct listing *it = listing_at(l, place);
        if (!is_of(it, st))
            continue;
        if (!same_time(&it->changed, &st->st_ctim) || !same_time(&it->modified, &st->st_mtim) ||
            it->size != (uint64_t)st->st_size || it->links != st->st_nlink)
            return NULL;
        use->known += room_for(it->bytes);
        use->all += room_for(it->bytes);
        return it;
    }
    return NULL;
}

bool listing_next(const struct listing *it, size_t *at, struct listing_entry *ret)
{
    if (*at >= it->bytes)
        return false;
    const char *p = it->entries + *at;
    memcpy(&ret->place, p, sizeof(ret->place));
    ret->directory = p[sizeof(ret->place)] != 0;
    ret->name = p + ENTRY_HEAD;
    *at += ENTRY_HEAD + strlen(ret->name) + 1;
    return true;
}

/* ---- keeping ---- */

static int64_t age_ns(const struct timespec *now, const struct timespec *then)
{
    int64_t seconds = (int64_t)now->tv_sec - then->tv_sec;
    if (seconds < -1 || seconds > 60)
        return seconds < 0 ? -1 : INT64_MAX;
    return seconds * 1000000000 + now->tv_nsec - then->tv_nsec;
}

bool listing_settled(const struct timespec *now, const struct timespec *changed)
{
    return age_ns(now, changed) > (changed->tv_nsec == 0 ? SETTLED_WHOLE_NS : SETTLED_NS);
}

void listing_begin(struct listing_draft *d, int fd)
{
    struct timespec now;
    buf_truncate(&d->entries, 0);
    d->count = 0;
    d->keep = clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 && fstat(fd, &d->st) == 0 &&
              listing_settled(&now, &d->st.st_ctim) && is_told(fd);
}

void listing_add(struct listing_draft *d, const char *name, bool directory)
{
    const char kind = (char)directory;
    uint32_t place = d->count++;
    bool told = directory || str_eq(name, LISTINGS_NAME) || str_eq(name, LISTINGS_HEAD);
    if (!d->keep || !told)
        return;
    buf_put(&d->entries, &place, sizeof(place));
    buf_put(&d->entries, &kind, sizeof(kind));
    buf_put(&d->entries, name, strlen(name) + 1);
    d->keep = d->entries.len <= LISTINGS_ONE_MAX;
}

/* A place for so many bytes that is ours, or 0. */
static uint32_t take_room(struct listings *l, size_t n)
{
    uint32_t place = atomic_load(&l->used);
    do {
        if (n > LISTINGS_BYTES - place) {
            atomic_store(&l->full, true);
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&l->used, &place, place + (uint32_t)n));
    return place;
}

/* Let others see it, in place of an older one of the same directory. False when its slots are all
 * taken. */
static bool publish(struct listings *l, const struct stat *st, uint32_t place)
{
    for (uint32_t probe = 0; probe < PROBES_MAX; probe++) {
        _Atomic uint32_t *slot = &l->slots[slot_at(st, probe)];
        uint32_t there = atomic_load(slot);
        while (there == 0 || is_of(listing_at(l, there), st)) {
            if (atomic_compare_exchange_weak(slot, &there, place))
                return true;
        }
    }
    return false;
}

void listings_put(struct listings *l, const struct listing_draft *d, struct listings_use *use)
{
    /* Several children begin with the same tree at the same time. */
    if (!d->keep || listings_find(l, &d->st, use) != NULL)
        return;
    size_t room = room_for(d->entries.len);
    use->all += room;
    uint32_t place = take_room(l, room);
    if (place == 0)
        return;
    struct listing *it = (void *)(l->bytes + place);
    *it = (struct listing){.device = d->st.st_dev,
                           .inode = d->st.st_ino,
                           .size = (uint64_t)d->st.st_size,
                           .links = d->st.st_nlink,
                           .changed = d->st.st_ctim,
                           .modified = d->st.st_mtim,
                           .count = d->count,
                           .bytes = (uint32_t)d->entries.len};
    if (d->entries.len > 0)
        memcpy(it->entries, buf_bytes(&d->entries), d->entries.len);
    if (publish(l, &d->st, place))
        use->known += room;
}

void listing_fini(struct listing_draft *d)
{
    buf_fini(&d->entries);
}

void listings_judge(struct listings *l, const struct listings_use *use)
{
    size_t possible = use->all < LISTINGS_BYTES ? use->all : LISTINGS_BYTES;
    if (atomic_load(&l->full) && use->known < possible / 4 * 3)
        atomic_store(&l->stale, true);
}
