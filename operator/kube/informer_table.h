/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache inside an informer (informer.h), filled from lists and watch events. For each object the cache stores an item: what the
 * caller's informer_options.parse made of the object. When a list or an event of the watch changes an item, the cache calls the informer's
 * callbacks. The cache does no networking.
 */
#ifndef COXSWAIN_KUBE_INFORMER_TABLE_H
#define COXSWAIN_KUBE_INFORMER_TABLE_H

#include "operator/kube/hash_map.h"
#include "operator/kube/informer.h"

struct informer_table {
    struct hash_map entries; /* key -> struct informer_entry */
    const struct informer_options *options;
    uint32_t generation; /* incremented by each list; entries of an older generation were deleted */
};

/* `options` must outlive it. */
void informer_table_init(struct informer_table *table, const struct informer_options *options);
void informer_table_release(struct informer_table *table);

/* Stores an object that was listed, added or modified. Ignores one that is not newer than the stored one. */
void informer_table_apply(struct informer_table *table, const struct json *object);
/* Removes an object that was deleted. */
void informer_table_remove(struct informer_table *table, const struct json *object);

/* Enclose a list: informer_table_end_list reports objects that were not applied since informer_table_begin_list as
 * deleted. */
void informer_table_begin_list(struct informer_table *table);
void informer_table_end_list(struct informer_table *table);

const void *informer_table_get(const struct informer_table *table, const char *key);
bool informer_table_next(const struct informer_table *table, size_t *at, const char **ret_key, const void **ret_item);

#endif
