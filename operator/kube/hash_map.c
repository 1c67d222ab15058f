/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/hash_map.h"

#include <string.h>
#include <sys/random.h>

#include "common/fnv1a.h"
#include "common/memory.h"

#define FIRST_CAPACITY 16

static uint64_t hash_seed(void)
{
    static uint64_t seed;
    while (seed == 0) {
        if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
            seed = FNV1A_START;
    }
    return seed;
}

static uint64_t hash_of(const char *key)
{
    uint64_t hash = fnv1a(hash_seed(), key);
    return hash ^ hash >> 32;
}

void hash_map_init(struct hash_map *map)
{
    *map = (struct hash_map){0};
}

void hash_map_init_keys_in_values(struct hash_map *map)
{
    *map = (struct hash_map){.keys_in_values = true};
}

static void key_free(const struct hash_map *map, char *key)
{
    if (!map->keys_in_values)
        free(key);
}

void hash_map_release(struct hash_map *map, void (*value_free)(void *value))
{
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].key && value_free)
            value_free(map->entries[i].value);
        key_free(map, map->entries[i].key);
    }
    free(map->entries);
    hash_map_init(map);
}

/* The entry of `key`, or the free one where it belongs. */
static struct hash_map_entry *entry_find(const struct hash_map *map, const char *key, uint64_t hash)
{
    size_t mask = map->capacity - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        struct hash_map_entry *entry = &map->entries[at];
        if (entry->key == NULL || (entry->hash == hash && strcmp(entry->key, key) == 0))
            return entry;
    }
}

static void resize(struct hash_map *map, size_t capacity)
{
    struct hash_map larger = {memory_allocate(capacity, sizeof *map->entries), capacity, map->count,
                              map->keys_in_values};
    for (size_t i = 0; i < map->capacity; i++) {
        const struct hash_map_entry *entry = &map->entries[i];
        if (entry->key)
            *entry_find(&larger, entry->key, entry->hash) = *entry;
    }
    free(map->entries);
    *map = larger;
}

void *hash_map_get(const struct hash_map *map, const char *key)
{
    return map->count > 0 ? entry_find(map, key, hash_of(key))->value : NULL;
}

void *hash_map_set(struct hash_map *map, const char *key, void *value)
{
    if (8 * (map->count + 1) > 7 * map->capacity)
        resize(map, map->capacity ? 2 * map->capacity : FIRST_CAPACITY);
    uint64_t hash = hash_of(key);
    struct hash_map_entry *entry = entry_find(map, key, hash);
    void *old = entry->value;
    if (entry->key == NULL) {
        entry->hash = hash;
        map->count++;
    }
    if (map->keys_in_values)
        entry->key = (char *)(uintptr_t)key; /* never written to */
    else if (entry->key == NULL)
        entry->key = memory_copy_string(key);
    entry->value = value;
    return old;
}

/* Moves what was pushed past the hole back into it, so that every probe still ends at the first free entry. */
static void close_hole(struct hash_map *map, size_t hole)
{
    size_t mask = map->capacity - 1;
    for (size_t at = (hole + 1) & mask; map->entries[at].key; at = (at + 1) & mask) {
        size_t wanted = map->entries[at].hash & mask;
        bool stays = ((at - wanted) & mask) < ((at - hole) & mask);
        if (stays)
            continue;
        map->entries[hole] = map->entries[at];
        hole = at;
    }
    map->entries[hole] = (struct hash_map_entry){0};
}

void *hash_map_remove(struct hash_map *map, const char *key)
{
    if (map->count == 0)
        return NULL;
    struct hash_map_entry *entry = entry_find(map, key, hash_of(key));
    void *value = entry->value;
    if (entry->key == NULL)
        return NULL;
    key_free(map, entry->key);
    map->count--;
    close_hole(map, (size_t)(entry - map->entries));
    return value;
}

bool hash_map_next(const struct hash_map *map, size_t *at, const char **ret_key, void **ret_value)
{
    for (; *at < map->capacity; (*at)++) {
        const struct hash_map_entry *entry = &map->entries[*at];
        if (entry->key == NULL)
            continue;
        if (ret_key)
            *ret_key = entry->key;
        *ret_value = entry->value;
        (*at)++;
        return true;
    }
    return false;
}
