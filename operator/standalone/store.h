/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects on disk: the one wrapper around SQLite. Each object is a JSON text
 * under (resource, namespace, name); every write raises one global revision,
 * which becomes metadata.resourceVersion, and is kept in a bounded log of
 * changes from which watches catch up.
 *
 * Durability: WAL with synchronous=FULL. Writes gather in one transaction until
 * store_commit; what was committed survives SIGKILL and loss of power, what was
 * not is as if it never happened, its revisions included. Whoever acknowledges a
 * write commits first.
 */
#ifndef COXSWAIN_STANDALONE_STORE_H
#define COXSWAIN_STANDALONE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/json.h"

struct store;

/* One object is at most this large, as etcd's default request limit. */
#define STORE_OBJECT_MAX (1536 * 1024)

struct store_key {
    const char *resource;  /* "pods", "trainingjobs.coxswain.dev" */
    const char *namespace; /* "" for cluster-scoped resources */
    const char *name;
};

enum store_change { STORE_ADDED, STORE_MODIFIED, STORE_DELETED };

/* `path` of the database file, created when missing. */
int store_open(const char *path, struct store **ret_store, struct error *error);
/* Drops what is not committed. */
void store_close(struct store *store);

int store_commit(struct store *store, struct error *error);
/* Takes back all since the last commit. */
void store_rollback(struct store *store);
bool store_is_dirty(const struct store *store);

/* The newest revision, and the one up to which the log of changes is forgotten. */
int64_t store_revision(const struct store *store);
int64_t store_compacted_revision(const struct store *store);

/* ERROR_NOT_FOUND when there is none. */
int store_get(struct store *store, const struct store_key *key, struct json **ret_object, struct error *error);
/* Sets metadata.resourceVersion in `object` and writes it, new or over the old one. */
int store_put(struct store *store, const struct store_key *key, struct json *object, struct error *error);
/* Removes it; metadata.resourceVersion in `object` (its last state, to be logged) is set to the removal's revision. */
int store_remove(struct store *store, const struct store_key *key, struct json *object, struct error *error);

/* Objects of a resource by namespace and name, beginning after (`after_namespace`, `after_name`); `namespace` NULL: all.
 * The visitor owns `object`; it returns false to stop. It must not write. */
typedef bool store_visitor(void *context, struct json *object);
int store_list(struct store *store, const char *resource, const char *namespace, const char *after_namespace,
               const char *after_name, store_visitor *visit, void *context, struct error *error);
/* How many a list would visit. */
int store_count(struct store *store, const char *resource, const char *namespace, const char *after_namespace,
                const char *after_name, int64_t *ret_count, struct error *error);

/* Changes of a resource after `revision`, oldest first; `previous` is NULL for additions. Both are the visitor's. */
typedef bool store_change_visitor(void *context, enum store_change change, struct json *object, struct json *previous);
int store_changes(struct store *store, const char *resource, int64_t revision, store_change_visitor *visit,
                  void *context, struct error *error);
/* Forgets all but the newest `keep` revisions of the log. */
int store_compact(struct store *store, int64_t keep, struct error *error);

/* Keys of the objects that name `owner_uid` in their ownerReferences: a JSON array of
 * {"resource","namespace","name"}. */
int store_dependents(struct store *store, const char *owner_uid, struct json **ret_keys, struct error *error);
/* Does any object have this uid? */
int store_has_uid(struct store *store, const char *uid, bool *ret_found, struct error *error);
/* Keys of all objects in a namespace; `namespace` NULL: of all objects there are. */
int store_keys(struct store *store, const char *namespace, struct json **ret_keys, struct error *error);

#endif
