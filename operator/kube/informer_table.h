/* SPDX-License-Identifier: Apache-2.0
 *
 * The table inside an informer: what is known of each object, and which of the
 * caller's callbacks a new look at it leads to. Knows nothing of the network.
 */
#ifndef COXSWAIN_KUBE_INFORMER_TABLE_H
#define COXSWAIN_KUBE_INFORMER_TABLE_H

#include "operator/kube/hash_map.h"
#include "operator/kube/informer.h"

struct informer_table {
    struct hash_map entries; /* key -> struct informer_entry */
    const struct informer_options *options;
    uint32_t generation; /* raised by each list; entries not seen in it are gone */
};

/* `options` must outlive it. */
void informer_table_init(struct informer_table *table, const struct informer_options *options);
void informer_table_release(struct informer_table *table);

/* An object as listed, added or modified. One that is not newer than what is known is passed over. */
void informer_table_apply(struct informer_table *table, const struct json *object);
/* An object that was deleted. */
void informer_table_remove(struct informer_table *table, const struct json *object);

/* Around a list: what was not applied between the two is reported as deleted at the end. */
void informer_table_begin_list(struct informer_table *table);
void informer_table_end_list(struct informer_table *table);

const void *informer_table_get(const struct informer_table *table, const char *key);
bool informer_table_next(const struct informer_table *table, size_t *at, const char **ret_key, const void **ret_item);

#endif
