/* SPDX-License-Identifier: Apache-2.0
 *
 * Which directory a named storage is mounted at, from COXSWAIN_STORAGE
 * ("name=/mount:name=/mount", contract/environment.h).
 */
#ifndef COXSWAIN_DATA_STORAGE_MAP_H
#define COXSWAIN_DATA_STORAGE_MAP_H

#include "common/error.h"

struct storage_map;

/* NULL or "" gives an empty map. ERROR_INVALID shows the part that cannot be read. */
int storage_map_parse(const char *text, struct storage_map **ret_map, struct error *error);
void storage_map_free(struct storage_map *map);

/* "<mount>/<path>"; with `storage` NULL the path itself. A relative path that climbs out ("..") is refused; an unknown
 * storage is ERROR_INVALID and lists the known ones. free() the result. */
int storage_map_resolve(const struct storage_map *map, const char *storage, const char *path, char **ret_path,
                        struct error *error);

#endif
