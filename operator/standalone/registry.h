/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects of the embedded control plane with the semantics of a Kubernetes
 * API server: admission, metadata, conflicts, graceful deletion, finalizers.
 * The HTTP verbs and the node stand on it side by side.
 *
 * Writes take effect at once and are durable after the next registry_commit,
 * which the server runs once a turn of the loop for all writes of that turn
 * (group commit). Observers and watches hear of a change only after its commit,
 * from the loop, in the order of resourceVersions.
 */
#ifndef COXSWAIN_STANDALONE_REGISTRY_H
#define COXSWAIN_STANDALONE_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/event_loop.h"
#include "common/json.h"

struct registry;
struct resource; /* resource.h */

/* `directory` must exist; the database lies in it. `loop` commits; NULL: the caller calls registry_commit (tests). */
int registry_open(const char *directory, struct event_loop *loop, struct registry **ret_registry, struct error *error);
/* Commits what is pending. */
void registry_close(struct registry *registry);
int registry_commit(struct registry *registry, struct error *error);

/* ---- for the node and other parts in this process: resources by plural ("pods", "persistentvolumeclaims") ---- */

/* Errors: NOT_FOUND, CONFLICT (resourceVersion or uid differ), ALREADY_EXISTS, INVALID, NO_SPACE. `namespace` is NULL for
 * cluster-scoped resources; NULL in registry_list means all namespaces. Results are roots: free with json_free. */
int registry_get(struct registry *registry, const char *plural, const char *namespace, const char *name,
                 struct json **ret_object, struct error *error);
/* A JSON array of objects, by namespace and name. */
int registry_list(struct registry *registry, const char *plural, const char *namespace, struct json **ret_objects,
                  struct error *error);
/* namespace and name are the object's own. `object` stays the caller's. ret_stored may be NULL. */
int registry_create(struct registry *registry, const char *plural, const struct json *object, struct json **ret_stored,
                    struct error *error);
/* Replaces `status` only; checks metadata.resourceVersion when the object carries one. */
int registry_update_status(struct registry *registry, const char *plural, const struct json *object,
                           struct json **ret_stored, struct error *error);
/* `uid` NULL: whichever. `grace_seconds` 0 removes at once (the node calls that when a pod's processes are gone);
 * negative: the resource's default. */
int registry_delete(struct registry *registry, const char *plural, const char *namespace, const char *name,
                    const char *uid, int64_t grace_seconds, struct error *error);
/* A core/v1 Event about `involved` ({kind, namespace, name, uid, apiVersion} are taken from it); `type` is "Normal" or
 * "Warning". Equal events are counted, not repeated. */
int registry_event(struct registry *registry, const struct json *involved, const char *type, const char *reason,
                   const char *component, const char *message, struct error *error);

/* ---- changes ---- */

enum registry_change { REGISTRY_ADDED, REGISTRY_MODIFIED, REGISTRY_DELETED };

/* `object` as it is now (or was, for REGISTRY_DELETED); valid during the call. The callback may use the registry. */
typedef void registry_observer(void *context, enum registry_change change, const char *plural,
                               const struct json *object);
/* Hears every change of `plural` (NULL: of all resources) committed from now on; list first to learn what is there. */
struct registry_subscription *registry_observe(struct registry *registry, const char *plural,
                                               registry_observer *observer, void *context);
void registry_unobserve(struct registry *registry, struct registry_subscription *subscription);

#endif
