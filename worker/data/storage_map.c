/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/storage_map.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/memory.h"

#define STORAGES_MAX 64

struct storage_map {
    unsigned count;
    struct {
        char *name, *mount;
    } entries[STORAGES_MAX];
};

static int add_entry(struct storage_map *map, const char *text, size_t length, struct error *error)
{
    const char *equals = memchr(text, '=', length);
    if (!equals || equals == text || equals[1] != '/')
        return error_set(error, ERROR_INVALID, "COXSWAIN_STORAGE: \"%.*s\" is not name=/mount", (int)length, text);
    if (map->count == STORAGES_MAX)
        return error_set(error, ERROR_TOO_LARGE, "COXSWAIN_STORAGE: more than %d storages", STORAGES_MAX);
    map->entries[map->count].name = memory_copy_bytes(text, (size_t)(equals - text));
    map->entries[map->count].mount = memory_copy_bytes(equals + 1, length - (size_t)(equals + 1 - text));
    map->count++;
    return 0;
}

int storage_map_parse(const char *text, struct storage_map **ret_map, struct error *error)
{
    struct storage_map *map = memory_allocate(1, sizeof *map);
    for (const char *at = text ? text : ""; *at;) {
        size_t length = strcspn(at, ":");
        if (add_entry(map, at, length, error) < 0) {
            storage_map_free(map);
            return -1;
        }
        at += length;
        at += *at == ':';
    }
    *ret_map = map;
    return 0;
}

void storage_map_free(struct storage_map *map)
{
    if (!map)
        return;
    for (unsigned i = 0; i < map->count; i++) {
        free(map->entries[i].name);
        free(map->entries[i].mount);
    }
    free(map);
}

/* Whether a component of the path is "..". */
static bool climbs_out(const char *path)
{
    for (const char *at = path; *at;) {
        size_t length = strcspn(at, "/");
        if (length == 2 && at[0] == '.' && at[1] == '.')
            return true;
        at += length;
        at += *at == '/';
    }
    return false;
}

static int unknown_storage(const struct storage_map *map, const char *storage, struct error *error)
{
    SCOPED_BUFFER names = BUFFER_INIT(512);
    for (unsigned i = 0; i < map->count; i++)
        buffer_format(&names, "%s%s", i ? ", " : "", map->entries[i].name);
    return error_set(error, ERROR_INVALID, "there is no storage named %s; the job has: %s", storage,
                     map->count ? buffer_text(&names) : "none");
}

int storage_map_resolve(const struct storage_map *map, const char *storage, const char *path, char **ret_path,
                        struct error *error)
{
    if (!storage) {
        *ret_path = memory_copy_string(path);
        return 0;
    }
    if (climbs_out(path))
        return error_set(error, ERROR_INVALID, "the path %s leads out of storage %s; remove \"..\" from it", path,
                         storage);
    for (unsigned i = 0; i < map->count; i++)
        if (strcmp(map->entries[i].name, storage) == 0) {
            *ret_path = memory_format("%s/%s", map->entries[i].mount, path);
            return 0;
        }
    return unknown_storage(map, storage, error);
}
