/* SPDX-License-Identifier: Apache-2.0
 *
 * A collection of somebody else's API that a cluster may lack: looked for by
 * discovery when the first job needs it, in the versions that this operator knows,
 * and from then on cached by an informer. While it is missing it is looked for
 * again from time to time, as long as somebody needs it; so is one that was there
 * and is not found any more, whose watch ends then, needed or not. A copy that the
 * server does not let grow further is not shown.
 */
#ifndef COXSWAIN_CONTROLLER_OPTIONAL_API_H
#define COXSWAIN_CONTROLLER_OPTIONAL_API_H

#include "operator/kube/informer.h"

enum optional_state {
    OPTIONAL_UNKNOWN, /* being looked for, or its cache is not complete yet, or the server does not show it any more */
    OPTIONAL_MISSING,
    OPTIONAL_READY,
};

/* How long until a missing one is looked for again. */
#define OPTIONAL_RETRY_MS 5000

struct optional_api;

#define OPTIONAL_VERSIONS_MAX 4
struct optional_api_options {
    const char *group, *plural;
    const char *versions[OPTIONAL_VERSIONS_MAX + 1]; /* the best first, up to a NULL */
    struct informer_options informer;                /* but for its resource; copied */
};

struct optional_api *optional_api_new(struct kube_client *client, const struct optional_api_options *options);
/* Before the client is freed; nothing is called from here on. */
void optional_api_stop(struct optional_api *api);
void optional_api_free(struct optional_api *api);

/* Where it stands; looks for it when that is due. What optional_api_get gave before may be gone after it. */
enum optional_state optional_api_need(struct optional_api *api);
/* The server's words when it refuses to show it; "" when it does not. Valid until the loop's next turn. */
const char *optional_api_refusal(const struct optional_api *api);
/* It is refused, and somebody needed it within that time. */
bool optional_api_is_missed(const struct optional_api *api, int64_t within_ms);
/* What is served, in the version found; while it is none, in the best one. */
struct kube_resource optional_api_resource(const struct optional_api *api);
/* NULL when it is absent, or not OPTIONAL_READY. */
const void *optional_api_get(const struct optional_api *api, const char *key);
/* As informer_has_seen. What it does not show is not waited for: whoever plans is told that it is not OPTIONAL_READY. */
bool optional_api_has_seen(const struct optional_api *api, uint64_t resource_version);

#endif
