/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the directory at which a storage of the job is mounted. A job names its storages in spec.storage and
 * refers to them by name, as in data.storage; the operator mounts them and sets COXSWAIN_STORAGE
 * ("name=/mount:name=/mount", contract/environment.h). The trainer parses the map once; paths of data,
 * checkpoints, exports and initial weights are resolved by it.
 */
#ifndef COXSWAIN_DATA_STORAGE_MAP_H
#define COXSWAIN_DATA_STORAGE_MAP_H

#include "common/error.h"

struct storage_map;

/* Parses the variable's text; NULL and "" give an empty map. ERROR_INVALID quotes the part that
 * cannot be read. */
int storage_map_parse(const char *text, struct storage_map **ret_map, struct error *error);
void storage_map_free(struct storage_map *map);

/* Returns "<mount>/<path>", or the path itself if `storage` is NULL; free() it. ERROR_INVALID if
 * the path leaves the storage ("..") or the storage is unknown; the message lists the known
 * ones. */
int storage_map_resolve(const struct storage_map *map, const char *storage, const char *path, char **ret_path,
                        struct error *error);

#endif
