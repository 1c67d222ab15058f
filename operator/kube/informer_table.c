/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/kube/informer_table.h"

#include <stddef.h>
#include <string.h>

#include "common/fnv1a.h"
#include "common/memory.h"

struct informer_entry {
    void *item;
    uint64_t version;
    uint64_t uid; /* hash of the uid: distinguishes an object from a later one of the same name */
    uint32_t generation;
    char key[];
};

uint64_t resource_version_number(const char *text)
{
    char *end;
    if (text == NULL || *text < '0' || *text > '9')
        return 0;
    uint64_t number = strtoull(text, &end, 10);
    return *end == '\0' ? number : 0;
}

static char *key_of(const struct json *object)
{
    const char *name = json_string_at(object, "metadata.name", NULL);
    const char *name_space = json_string_at(object, "metadata.namespace", NULL);
    if (name == NULL)
        return NULL;
    return name_space ? memory_format("%s/%s", name_space, name) : memory_copy_string(name);
}

void informer_table_init(struct informer_table *table, const struct informer_options *options)
{
    *table = (struct informer_table){.options = options};
    hash_map_init_keys_in_values(&table->entries);
}

static void entry_free(const struct informer_table *table, struct informer_entry *entry)
{
    if (table->options->item_free)
        table->options->item_free(entry->item);
    free(entry);
}

void informer_table_release(struct informer_table *table)
{
    size_t at = 0;
    void *entry;
    while (hash_map_next(&table->entries, &at, NULL, &entry))
        entry_free(table, entry);
    hash_map_release(&table->entries, NULL);
}

static void remove_key(struct informer_table *table, const char *key)
{
    struct informer_entry *entry = hash_map_remove(&table->entries, key);
    if (entry == NULL)
        return;
    if (table->options->on_deleted)
        table->options->on_deleted(table->options->context, key, entry->item);
    entry_free(table, entry);
}

static void add(struct informer_table *table, const char *key, const struct informer_entry *fresh)
{
    size_t length = strlen(key) + 1;
    struct informer_entry *entry = memory_allocate(1, offsetof(struct informer_entry, key) + length);
    memcpy(entry, fresh, offsetof(struct informer_entry, key));
    memcpy(entry->key, key, length);
    hash_map_set(&table->entries, entry->key, entry);
    if (table->options->on_added)
        table->options->on_added(table->options->context, key, entry->item);
}

static void change(struct informer_table *table, const char *key, struct informer_entry *entry,
                   const struct informer_entry *fresh)
{
    void *old = entry->item;
    memcpy(entry, fresh, offsetof(struct informer_entry, key));
    if (table->options->on_changed)
        table->options->on_changed(table->options->context, key, old, entry->item);
    if (table->options->item_free)
        table->options->item_free(old);
}

static bool is_known(const struct informer_entry *entry, const struct informer_entry *fresh)
{
    return entry && entry->uid == fresh->uid && fresh->version != 0 && fresh->version <= entry->version;
}

void informer_table_apply(struct informer_table *table, const struct json *object)
{
    SCOPED_FREE char *key = key_of(object);
    if (key == NULL)
        return;
    struct informer_entry *entry = hash_map_get(&table->entries, key);
    struct informer_entry fresh = {
        .version = resource_version_number(json_string_at(object, "metadata.resourceVersion", NULL)),
        .uid = fnv1a(FNV1A_START, json_string_at(object, "metadata.uid", "")),
        .generation = table->generation,
    };
    if (is_known(entry, &fresh)) {
        entry->generation = table->generation;
        return;
    }
    bool is_namesake = entry && entry->uid != fresh.uid;
    fresh.item = table->options->parse(table->options->context, object);
    if (entry && (is_namesake || fresh.item == NULL)) {
        remove_key(table, key);
        entry = NULL;
    }
    if (fresh.item == NULL)
        return;
    if (entry)
        change(table, key, entry, &fresh);
    else
        add(table, key, &fresh);
}

void informer_table_remove(struct informer_table *table, const struct json *object)
{
    SCOPED_FREE char *key = key_of(object);
    const struct informer_entry *entry = key ? hash_map_get(&table->entries, key) : NULL;
    if (entry && entry->uid == fnv1a(FNV1A_START, json_string_at(object, "metadata.uid", "")))
        remove_key(table, key);
}

void informer_table_begin_list(struct informer_table *table)
{
    table->generation++;
}

/* Collects the keys first, because callbacks may read the table while entries are removed. */
void informer_table_end_list(struct informer_table *table)
{
    size_t at = 0, stale = 0;
    const char *key;
    void *value;
    SCOPED_FREE char **keys = memory_allocate(table->entries.count + 1, sizeof *keys);
    while (hash_map_next(&table->entries, &at, &key, &value)) {
        if (((struct informer_entry *)value)->generation != table->generation)
            keys[stale++] = memory_copy_string(key);
    }
    for (size_t i = 0; i < stale; i++) {
        remove_key(table, keys[i]);
        free(keys[i]);
    }
}

const void *informer_table_get(const struct informer_table *table, const char *key)
{
    const struct informer_entry *entry = hash_map_get(&table->entries, key);
    return entry ? entry->item : NULL;
}

bool informer_table_next(const struct informer_table *table, size_t *at, const char **ret_key, const void **ret_item)
{
    void *entry;
    if (!hash_map_next(&table->entries, at, ret_key, &entry))
        return false;
    *ret_item = ((struct informer_entry *)entry)->item;
    return true;
}
