/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash table from strings to pointers: open addressing with linear probing and
 * backward-shift deletion, FNV-1a with a seed drawn once per process, so that names
 * chosen by others cannot be made to collide. Keys are copied, or lie in their values; values belong
 * to the caller. Life cycle: init -> set, get, remove … -> release.
 */
#ifndef COXSWAIN_KUBE_HASH_MAP_H
#define COXSWAIN_KUBE_HASH_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_map_entry {
    char *key; /* NULL: free slot */
    void *value;
    uint64_t hash;
};

struct hash_map {
    struct hash_map_entry *entries;
    size_t capacity; /* 0 or a power of two */
    size_t count;
    bool keys_in_values;
};

/* Allocates nothing. */
void hash_map_init(struct hash_map *map);
/* Keys are not copied: each lies in the value that is stored under it, and goes with it. */
void hash_map_init_keys_in_values(struct hash_map *map);
/* Frees keys and table; `value_free` (or NULL) is called for each value. */
void hash_map_release(struct hash_map *map, void (*value_free)(void *value));

/* NULL when absent. */
void *hash_map_get(const struct hash_map *map, const char *key);
/* Stores `value` (not NULL) and returns the one it replaces, or NULL. */
void *hash_map_set(struct hash_map *map, const char *key, void *value);
/* Takes the entry out and returns its value, or NULL when absent. */
void *hash_map_remove(struct hash_map *map, const char *key);

/* for (size_t at = 0; hash_map_next(&map, &at, &key, &value);) in no particular order.
 * The map must not change meanwhile. `ret_key` may be NULL. */
bool hash_map_next(const struct hash_map *map, size_t *at, const char **ret_key, void **ret_value);

#endif
