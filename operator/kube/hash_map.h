/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps strings to pointers: a hash table with open addressing, linear probing and
 * backward-shift deletion. The hash is FNV-1a with a seed drawn once per process, so that users
 * cannot choose names that collide. Keys are copied unless they lie in their values; values
 * belong to the caller. Life cycle: init -> set, get, remove … -> release.
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
/* Keys are not copied: each key must lie in the value stored under it and live as long as that value. */
void hash_map_init_keys_in_values(struct hash_map *map);
/* Frees keys and table; `value_free` (or NULL) is called for each value. The map is then as after hash_map_init. */
void hash_map_release(struct hash_map *map, void (*value_free)(void *value));

/* Returns the value of a key, NULL if there is none. */
void *hash_map_get(const struct hash_map *map, const char *key);
/* Stores `value` (not NULL) and returns the one it replaces, or NULL. */
void *hash_map_set(struct hash_map *map, const char *key, void *value);
/* Removes the entry and returns its value, or NULL when absent. */
void *hash_map_remove(struct hash_map *map, const char *key);

/* Iterates in no particular order: for (size_t at = 0; hash_map_next(&map, &at, &key, &value);)
 * The map must not change during the loop. `ret_key` may be NULL. */
bool hash_map_next(const struct hash_map *map, size_t *at, const char **ret_key, void **ret_value);

#endif
