/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the registry's functions for the embedded API server, beyond those of registry.h: create, update, patch, apply and delete with
 * their options, reads, durable commits and watches. A function that refuses a request returns a metav1.Status (refusal.h) instead of
 * filling a struct error. The garbage collector and the bootstrap use these functions too; the node uses registry.h.
 */
#ifndef COXSWAIN_STANDALONE_REGISTRY_WRITE_H
#define COXSWAIN_STANDALONE_REGISTRY_WRITE_H

#include "operator/standalone/refusal.h"
#include "operator/standalone/registry.h"
#include "operator/standalone/store.h"

struct resource_table *registry_resources(const struct registry *registry);
struct store *registry_store(const struct registry *registry);

enum field_validation { FIELD_VALIDATION_WARN, FIELD_VALIDATION_STRICT, FIELD_VALIDATION_IGNORE };
enum patch_kind { PATCH_MERGE, PATCH_JSON, PATCH_STRATEGIC, PATCH_APPLY };

struct write {
    const struct resource *resource;
    const char *namespace; /* "" for cluster-scoped resources */
    const char *name;      /* NULL on create: the object's own */
    bool status;           /* a write of the status subresource */
    bool dry_run;
    enum field_validation field_validation;
    const char *manager;         /* of an apply: the field manager */
    bool force;                  /* of an apply: take ownership of fields from other managers */
    struct json *managed_fields; /* the object's new managedFields, owned; NULL: unchanged */
    struct json *warnings;       /* output: array of strings, owned by the caller */
    struct json *result;         /* output: the object to answer, owned by the caller */
};

struct delete_options {
    int64_t grace_seconds;   /* negative: the resource's default */
    const char *propagation; /* "Background", "Foreground", "Orphan"; NULL: Background */
    const char *uid;         /* preconditions, NULL: none */
    const char *resource_version;
};

/* All writes return NULL or a refusal. Create and update take ownership of `object`. */
struct json *registry_write_create(struct registry *registry, struct write *write, struct json *object);
struct json *registry_write_update(struct registry *registry, struct write *write, struct json *object);
struct json *registry_write_patch(struct registry *registry, struct write *write, enum patch_kind kind,
                                  const struct json *patch);
/* Server-side apply. Creates the object when it does not exist, and then sets `*ret_created`. */
struct json *registry_write_apply(struct registry *registry, struct write *write, const struct json *config,
                                  bool *ret_created);
struct json *registry_write_delete(struct registry *registry, struct write *write,
                                   const struct delete_options *options);

/* Reads one object, a new root; refuses with NotFound. `namespace` is NULL or "" for cluster-scoped
 * types. */
struct json *registry_read(struct registry *registry, const struct resource *resource, const char *namespace,
                           const char *name, struct json **ret_object);

/* Calls `done` when all writes so far are on disk (`failed` NULL) or the commit has failed; at once
 * without pending writes. */
typedef void registry_durable(void *context, const struct error *failed);
void registry_when_durable(struct registry *registry, registry_durable *done, void *context);

/* Called for every committed change, for watches. `previous` is the state before it, NULL for
 * additions. */
typedef void registry_watcher(void *context, enum store_change change, const struct json *object,
                              const struct json *previous);
struct registry_subscription *registry_watch(struct registry *registry, const char *storage, registry_watcher *watcher,
                                             void *context);

#endif
