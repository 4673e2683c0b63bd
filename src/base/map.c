/* base/map: see map.h. */
#include "base/map.h"

#include "base/mem.h"

#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

static char gone_mark;
#define MAP_GONE (&gone_mark)

static bool is_live(const struct map_slot *s)
{
    return s->key != NULL && s->key != MAP_GONE;
}

/* Eight bytes a step, multiply and fold (the shape of wyhash): quick, and useless to an attacker
 * without the seed. */
static uint64_t hash(uint64_t seed, const char *key)
{
    uint64_t h = seed ^ 0x9e3779b97f4a7c15ULL;
    size_t n = strlen(key);
    while (n > 0) {
        uint64_t word = 0;
        size_t step = n < 8 ? n : 8;
        memcpy(&word, key, step);
        unsigned __int128 m = (unsigned __int128)(h ^ word) * 0xa0761d6478bd642fULL;
        h = (uint64_t)m ^ (uint64_t)(m >> 64) ^ n;
        key += step;
        n -= step;
    }
    return h;
}

/* The slot that holds the key, or the first free one on its way. */
static struct map_slot *find(const struct map *m, const char *key, struct map_slot **ret_free)
{
    size_t mask = m->cap - 1;
    *ret_free = NULL;
    for (size_t i = hash(m->seed, key) & mask;; i = (i + 1) & mask) {
        struct map_slot *s = &m->slots[i];
        if (is_live(s)) {
            if (strcmp(s->key, key) == 0)
                return s;
            continue;
        }
        if (*ret_free == NULL)
            *ret_free = s;
        if (s->key == NULL)
            return NULL;
    }
}

static void rehash(struct map *m, size_t cap)
{
    struct map old = *m;
    m->slots = mem_zalloc(cap, sizeof(struct map_slot));
    m->cap = cap;
    m->full = m->used;
    for (size_t i = 0; i < old.cap; i++) {
        struct map_slot *free_slot = NULL;
        if (!is_live(&old.slots[i]))
            continue;
        find(m, old.slots[i].key, &free_slot);
        *free_slot = old.slots[i];
    }
    free(old.slots);
}

static void make_room(struct map *m)
{
    if (m->cap == 0) {
        ensure(getrandom(&m->seed, sizeof(m->seed), 0) == (ssize_t)sizeof(m->seed));
        rehash(m, 16);
        return;
    }
    if ((m->full + 1) * 4 > m->cap * 3)
        rehash(m, (m->used + 1) * 2 > m->cap ? m->cap * 2 : m->cap);
}

void map_fini(struct map *m)
{
    for (size_t i = 0; i < m->cap; i++) {
        if (is_live(&m->slots[i]))
            free(m->slots[i].key);
    }
    free(m->slots);
    *m = (struct map){0};
}

void *map_get(const struct map *m, const char *key)
{
    struct map_slot *free_slot = NULL;
    if (m->cap == 0)
        return NULL;
    struct map_slot *s = find(m, key, &free_slot);
    return s == NULL ? NULL : s->value;
}

void *map_set(struct map *m, const char *key, void *value)
{
    ensure(value != NULL);
    make_room(m);
    struct map_slot *slot = NULL;
    struct map_slot *s = find(m, key, &slot);
    if (s != NULL) {
        void *old = s->value;
        s->value = value;
        return old;
    }
    if (slot->key == NULL)
        m->full++;
    *slot = (struct map_slot){mem_strdup(key), value};
    m->used++;
    return NULL;
}

void *map_remove(struct map *m, const char *key)
{
    struct map_slot *free_slot = NULL;
    struct map_slot *s = m->cap == 0 ? NULL : find(m, key, &free_slot);
    if (s == NULL)
        return NULL;
    void *value = s->value;
    free(s->key);
    *s = (struct map_slot){MAP_GONE, NULL};
    m->used--;
    return value;
}

void *map_next(const struct map *m, size_t *pos, const char **ret_key)
{
    while (*pos < m->cap) {
        const struct map_slot *s = &m->slots[(*pos)++];
        if (is_live(s)) {
            if (ret_key != NULL)
                *ret_key = s->key;
            return s->value;
        }
    }
    return NULL;
}
