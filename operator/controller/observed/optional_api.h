/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches a collection of a third-party API that the cluster may not serve, such as the PodGroups of
 * gang schedulers or Kueue's Workloads. The collection is looked up by discovery when the first job
 * needs it, in the versions that the operator supports, and cached by an informer once found. While
 * it is missing, discovery is repeated as long as jobs need it. If the server stops serving the
 * collection (404), its watch is stopped, and discovery begins again when a job needs the
 * collection. While the server refuses access, optional_api_get returns nothing, because the cache
 * is outdated.
 */
#ifndef COXSWAIN_CONTROLLER_OPTIONAL_API_H
#define COXSWAIN_CONTROLLER_OPTIONAL_API_H

#include "operator/kube/informer.h"

enum optional_state {
    OPTIONAL_UNKNOWN, /* discovery is running, the cache is not complete yet, or the server refuses access */
    OPTIONAL_MISSING,
    OPTIONAL_READY,
};

/* Delay before discovery of a missing API is repeated. */
#define OPTIONAL_RETRY_MS 5000

struct optional_api;

#define OPTIONAL_VERSIONS_MAX 4
struct optional_api_options {
    const char *group, *plural;
    const char *versions[OPTIONAL_VERSIONS_MAX + 1]; /* the preferred one first; ends with NULL */
    struct informer_options informer;                /* `resource` is filled in by discovery */
};

/* Sends nothing until optional_api_need. Copies `options` but borrows its strings. The client must outlive optional_api_stop. */
struct optional_api *optional_api_new(struct kube_client *client, const struct optional_api_options *options);
/* Stops the informer and discovery; no callback is called from here on. Call it before the client
 * is freed. */
void optional_api_stop(struct optional_api *api);
/* Call it after optional_api_stop. */
void optional_api_free(struct optional_api *api);

/* Returns the state, and starts discovery if that is due. Invalidates what optional_api_get has
 * returned. */
enum optional_state optional_api_need(struct optional_api *api);
/* Returns the server's message if it refuses access (401, 403 or 404); else "". Valid until the
 * loop's next turn. */
const char *optional_api_refusal(const struct optional_api *api);
/* Returns whether access is refused and optional_api_need was called within the last
 * `within_ms`. */
bool optional_api_is_missed(const struct optional_api *api, int64_t within_ms);
/* Returns the resource in the version that discovery found; if it found none, in the preferred
 * version. */
struct kube_resource optional_api_resource(const struct optional_api *api);
/* Returns a cached object; NULL if it does not exist, or the state is not OPTIONAL_READY. */
const void *optional_api_get(const struct optional_api *api, const char *key);
/* Returns informer_has_seen; true unless OPTIONAL_READY, because then plans go by the state and
 * need not wait. */
bool optional_api_has_seen(const struct optional_api *api, uint64_t resource_version);

#endif
