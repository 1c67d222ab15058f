/* SPDX-License-Identifier: Apache-2.0
 *
 * The writing verbs of the API on the registry, and what the reading ones need:
 * its store, its types and its durable commits. The HTTP server and registry.c
 * use it; the node has registry.h.
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
    const char *name;      /* NULL: from the object (create) */
    bool status;           /* through the status subresource */
    bool dry_run;
    enum field_validation field_validation;
    const char *manager; /* who applies, and whether it may take fields over: PATCH_APPLY */
    bool force;
    struct json *managed_fields; /* of the object as it will be; NULL: as they were. The write's to free */
    struct json *warnings;       /* out: array of strings, the caller's */
    struct json *result;         /* out: what to answer, the caller's to free */
};

struct delete_options {
    int64_t grace_seconds;   /* negative: the resource's default */
    const char *propagation; /* "Background", "Foreground", "Orphan"; NULL: Background */
    const char *uid;         /* preconditions, NULL: none */
    const char *resource_version;
};

/* `object` is taken over. */
struct json *registry_write_create(struct registry *registry, struct write *write, struct json *object);
struct json *registry_write_update(struct registry *registry, struct write *write, struct json *object);
struct json *registry_write_patch(struct registry *registry, struct write *write, enum patch_kind kind,
                                  const struct json *patch);
/* Server-side apply; makes the object when there is none. `ret_created` tells. */
struct json *registry_write_apply(struct registry *registry, struct write *write, const struct json *config,
                                  bool *ret_created);
struct json *registry_write_delete(struct registry *registry, struct write *write,
                                   const struct delete_options *options);

/* One object, a new root; NotFound when there is none. `namespace` NULL or "" for cluster-scoped resources. */
struct json *registry_read(struct registry *registry, const struct resource *resource, const char *namespace,
                           const char *name, struct json **ret_object);

/* Calls `done` once all writes so far are on disk (`failed` NULL) or are lost. At once when nothing is pending. */
typedef void registry_durable(void *context, const struct error *failed);
void registry_when_durable(struct registry *registry, registry_durable *done, void *context);

/* Every committed change, with the state before it: what watches live on. `previous` is NULL for additions. */
typedef void registry_watcher(void *context, enum store_change change, const struct json *object,
                              const struct json *previous);
struct registry_subscription *registry_watch(struct registry *registry, const char *storage, registry_watcher *watcher,
                                             void *context);

#endif
