/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the API objects of the embedded control plane in an SQLite database. The registry (registry.h) makes all writes; the API server
 * reads lists from the store directly. Each object is a JSON text with the key (resource, namespace, name). Every write increments a global
 * revision, which becomes metadata.resourceVersion, and is recorded in a bounded log of changes from which watches catch up.
 *
 * Durability: WAL with synchronous=FULL. Writes form one transaction until store_commit. Committed writes survive SIGKILL and loss of
 * power; uncommitted ones leave no trace, and their revisions are used again. Commit before you acknowledge a write.
 */
#ifndef COXSWAIN_STANDALONE_STORE_H
#define COXSWAIN_STANDALONE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/json.h"

struct store;

/* Largest object, as etcd's default request limit. */
#define STORE_OBJECT_MAX (1536 * 1024)

struct store_key {
    const char *resource;  /* "pods", "trainingjobs.coxswain.dev" */
    const char *namespace; /* "" for cluster-scoped resources */
    const char *name;
};

enum store_change { STORE_ADDED, STORE_MODIFIED, STORE_DELETED };

/* Opens the database file `path`; creates it when missing. */
int store_open(const char *path, struct store **ret_store, struct error *error);
/* Discards uncommitted writes. */
void store_close(struct store *store);

int store_commit(struct store *store, struct error *error);
/* Discards all writes since the last commit. */
void store_rollback(struct store *store);
bool store_is_dirty(const struct store *store);

/* The newest revision, and the newest one that has been removed from the log of changes. */
int64_t store_revision(const struct store *store);
int64_t store_compacted_revision(const struct store *store);

/* ERROR_NOT_FOUND when the object does not exist. */
int store_get(struct store *store, const struct store_key *key, struct json **ret_object, struct error *error);
/* Sets metadata.resourceVersion in `object` and stores it, replacing an older version. After a failure of store_put or store_remove, all
 * writes since the last commit may have been discarded: store_is_dirty says whether some are left. */
int store_put(struct store *store, const struct store_key *key, struct json *object, struct error *error);
/* Removes the object. `object`, its last state, is logged with the revision of the removal as
 * resourceVersion. */
int store_remove(struct store *store, const struct store_key *key, struct json *object, struct error *error);

/* Visits objects of a resource in order of namespace and name, from the first one after
 * (`after_namespace`, `after_name`). `namespace` NULL means all. The visitor owns `object`, must
 * not write, and returns false to stop. */
typedef bool store_visitor(void *context, struct json *object);
int store_list(struct store *store, const char *resource, const char *namespace, const char *after_namespace,
               const char *after_name, store_visitor *visit, void *context, struct error *error);
/* Counts the objects that store_list would visit. */
int store_count(struct store *store, const char *resource, const char *namespace, const char *after_namespace,
                const char *after_name, int64_t *ret_count, struct error *error);

/* Visits changes of a resource after `revision`, oldest first. The visitor owns `object` and
 * `previous`, which is NULL for additions, and returns false to stop. */
typedef bool store_change_visitor(void *context, enum store_change change, struct json *object, struct json *previous);
int store_changes(struct store *store, const char *resource, int64_t revision, store_change_visitor *visit,
                  void *context, struct error *error);
/* Removes all but the newest `keep` revisions from the log of changes. */
int store_compact(struct store *store, int64_t keep, struct error *error);

/* Returns the keys of the objects whose ownerReferences have `owner_uid`, as a JSON array of
 * {"resource","namespace","name"}. */
int store_dependents(struct store *store, const char *owner_uid, struct json **ret_keys, struct error *error);
/* Returns whether an object with this uid exists. */
int store_has_uid(struct store *store, const char *uid, bool *ret_found, struct error *error);
/* Returns the keys of all objects in a namespace, or of all objects (`namespace` NULL). */
int store_keys(struct store *store, const char *namespace, struct json **ret_keys, struct error *error);

#endif
