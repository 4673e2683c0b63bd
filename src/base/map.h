/* base/map: string keys to pointers, open addressing. For id tables.
 *
 * The hash is keyed with random bytes per map, since keys may come from outside and a chosen set
 * of colliding keys must not make look-ups slow. The map owns its keys, never the values.
 */
#ifndef CODESPACE_BASE_MAP_H
#define CODESPACE_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_slot {
    char *key; /* NULL: never used; MAP_GONE: removed */
    void *value;
};

struct map {
    struct map_slot *slots;
    size_t cap;  /* a power of two, or 0 */
    size_t used; /* live entries */
    size_t full; /* live and removed */
    uint64_t seed;
};

/* A zeroed map is empty and ready. */
void map_fini(struct map *m);

/* The value, or NULL. */
void *map_get(const struct map *m, const char *key);

/* Set (value must not be NULL); returns the value it replaces, or NULL. */
void *map_set(struct map *m, const char *key, void *value);

/* Remove; returns the value that was there, or NULL. */
void *map_remove(struct map *m, const char *key);

/* Iterate: start with *pos = 0; NULL at the end. The current entry may be removed meanwhile. */
void *map_next(const struct map *m, size_t *pos, const char **ret_key);

#endif
