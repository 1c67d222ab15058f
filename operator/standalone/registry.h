/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds the objects of the embedded control plane (coxswain-standalone), with the semantics of a Kubernetes API server: admission,
 * metadata, conflicts, graceful deletion, finalizers. The API server and the node both use it, on the thread of the event loop.
 *
 * A write can be read back at once and is durable after the next registry_commit. The loop commits all writes of one iteration together
 * (group commit). Observers and watches are called from the loop after the commit, in order of resourceVersion.
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

/* Opens or creates the database in `directory`, which must exist. With `loop` NULL the caller must
 * call registry_commit. */
int registry_open(const char *directory, struct event_loop *loop, struct registry **ret_registry, struct error *error);
/* Commits pending writes and frees the registry. */
void registry_close(struct registry *registry);
/* Commits pending writes at once. After a failure, all of them are discarded. */
int registry_commit(struct registry *registry, struct error *error);

/* ---- for callers in this process; types are named by plural ("pods", "persistentvolumeclaims")
 * ---- */

/* Errors: NOT_FOUND, CONFLICT (resourceVersion or uid differ), ALREADY_EXISTS, INVALID, NO_SPACE.
 * `namespace` is NULL for cluster-scoped resources; NULL in registry_list means all namespaces.
 * Results are roots: free with json_free. */
int registry_get(struct registry *registry, const char *plural, const char *namespace, const char *name,
                 struct json **ret_object, struct error *error);
/* Returns a JSON array of objects, in order of namespace and name. */
int registry_list(struct registry *registry, const char *plural, const char *namespace, struct json **ret_objects,
                  struct error *error);
/* Creates `object` under the namespace and name in its metadata; does not take ownership.
 * `ret_stored` may be NULL. */
int registry_create(struct registry *registry, const char *plural, const struct json *object, struct json **ret_stored,
                    struct error *error);
/* Replaces only `status`. ERROR_CONFLICT when the object has another metadata.resourceVersion, if
 * it has one. */
int registry_update_status(struct registry *registry, const char *plural, const struct json *object,
                           struct json **ret_stored, struct error *error);
/* Deletes the object, if `uid` is NULL or the object's uid (else ERROR_CONFLICT). `grace_seconds` 0 removes it at once, as the
 * node does when a pod's processes have ended; a negative number means the type's default. */
int registry_delete(struct registry *registry, const char *plural, const char *namespace, const char *name,
                    const char *uid, int64_t grace_seconds, struct error *error);
/* Records a core/v1 Event about the object `involved`; `type` is "Normal" or "Warning". An equal
 * event raises the count of the first one instead. */
int registry_event(struct registry *registry, const struct json *involved, const char *type, const char *reason,
                   const char *component, const char *message, struct error *error);

/* ---- changes ---- */

enum registry_change { REGISTRY_ADDED, REGISTRY_MODIFIED, REGISTRY_DELETED };

/* `object` is the new state, or the last one for REGISTRY_DELETED, and valid during the call. May
 * use the registry. */
typedef void registry_observer(void *context, enum registry_change change, const char *plural,
                               const struct json *object);
/* Calls `observer` for every later committed change of a type (`plural` NULL: of all types). List
 * existing objects first. */
struct registry_subscription *registry_observe(struct registry *registry, const char *plural,
                                               registry_observer *observer, void *context);
void registry_unobserve(struct registry *registry, struct registry_subscription *subscription);

#endif
