/* core/version_cache: see version_cache.h. */
#include "core/version_cache.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

/* Files that share a place. */
#define WAYS 4
#define SETS (VERSION_CACHE_MAX / WAYS)
/* Coarser than any clock of a local file system. */
#define SETTLED_SECONDS 2

struct entry {
    bool used;
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec modified;
    struct timespec changed;
    uint64_t age; /* when it was put */
    char version[FILES_VERSION_LEN];
};

struct version_cache {
    pthread_mutex_t lock;
    uint64_t clock;
    struct entry entries[SETS][WAYS];
};

struct version_cache *version_cache_new(void)
{
    struct version_cache *c = mem_new(struct version_cache);
    ensure(pthread_mutex_init(&c->lock, NULL) == 0);
    return c;
}

void version_cache_free(struct version_cache *c)
{
    if (c == NULL)
        return;
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static struct entry *set_of(struct version_cache *c, const struct stat *st)
{
    uint64_t h = ((uint64_t)st->st_ino * 0x9e3779b97f4a7c15u) ^ (uint64_t)st->st_dev;
    return c->entries[(h >> 32) % SETS];
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_file(const struct entry *e, const struct stat *st)
{
    return e->used && e->dev == st->st_dev && e->ino == st->st_ino;
}

bool version_cache_get(struct version_cache *c, const struct stat *st, char ret[FILES_VERSION_LEN])
{
    bool found = false;
    ensure(pthread_mutex_lock(&c->lock) == 0);
    struct entry *set = set_of(c, st);
    for (size_t i = 0; i < WAYS && !found; i++) {
        found = is_file(&set[i], st) && set[i].size == st->st_size &&
                same_time(set[i].modified, st->st_mtim) && same_time(set[i].changed, st->st_ctim);
        if (found)
            memcpy(ret, set[i].version, FILES_VERSION_LEN);
    }
    ensure(pthread_mutex_unlock(&c->lock) == 0);
    return found;
}

static bool settled(const struct stat *st)
{
    struct timespec now;
    ensure(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return st->st_size > 0 && st->st_ctim.tv_sec + SETTLED_SECONDS <= now.tv_sec &&
           st->st_mtim.tv_sec + SETTLED_SECONDS <= now.tv_sec;
}

void version_cache_put(struct version_cache *c, const struct stat *st, const char *version)
{
    if (!settled(st))
        return;
    ensure(pthread_mutex_lock(&c->lock) == 0);
    struct entry *set = set_of(c, st);
    struct entry *to = &set[0];
    for (size_t i = 0; i < WAYS; i++) {
        if (is_file(&set[i], st)) {
            to = &set[i];
            break;
        }
        if (!set[i].used || set[i].age < to->age)
            to = &set[i];
    }
    *to = (struct entry){.used = true,
                         .dev = st->st_dev,
                         .ino = st->st_ino,
                         .size = st->st_size,
                         .modified = st->st_mtim,
                         .changed = st->st_ctim,
                         .age = ++c->clock};
    memcpy(to->version, version, FILES_VERSION_LEN);
    ensure(pthread_mutex_unlock(&c->lock) == 0);
}
