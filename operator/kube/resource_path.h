/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the URL path of a Kubernetes resource from group, version, resource, namespace, name,
 * subresource and query. Every part is percent-encoded (RFC 3986: all but unreserved
 * characters), so no name can escape from its place in the path.
 */
#ifndef COXSWAIN_KUBE_RESOURCE_PATH_H
#define COXSWAIN_KUBE_RESOURCE_PATH_H

#include "common/buffer.h"
#include "common/error.h"

/* A kind of resource. Strings are borrowed: constants, as a rule. */
struct kube_resource {
    const char *group; /* "" for the core group */
    const char *version;
    const char *plural; /* "pods" */
};

#define KUBE_PODS ((struct kube_resource){"", "v1", "pods"})
#define KUBE_DISRUPTION_BUDGETS ((struct kube_resource){"policy", "v1", "poddisruptionbudgets"})
#define KUBE_SECRETS ((struct kube_resource){"", "v1", "secrets"})
#define KUBE_SERVICES ((struct kube_resource){"", "v1", "services"})
#define KUBE_NODES ((struct kube_resource){"", "v1", "nodes"})
#define KUBE_CONFIG_MAPS ((struct kube_resource){"", "v1", "configmaps"})
#define KUBE_PRIORITY_CLASSES ((struct kube_resource){"scheduling.k8s.io", "v1", "priorityclasses"})
#define KUBE_LEASES ((struct kube_resource){"coordination.k8s.io", "v1", "leases"})
#define KUBE_EVENTS ((struct kube_resource){"events.k8s.io", "v1", "events"})

/* One object, or a collection if `name` is NULL. `name_space` NULL: cluster-scoped, or all namespaces. */
struct resource_path {
    struct kube_resource resource;
    const char *name_space;
    const char *name;
    const char *subresource; /* "status", "scale", "log", or NULL */
};

/* Appends the path, for example "/api/v1/namespaces/default/pods/digits-worker-0-1/log". ERROR_INVALID when a part is empty or cannot be a
 * path segment ("." and ".."). */
int resource_path_append(struct buffer *url, const struct resource_path *path, struct error *error);

/* Appends "?name=value", or "&name=value" if `url` has a query already; name and value are encoded. Appends nothing if
 * the value is NULL or empty. */
int resource_path_append_query(struct buffer *url, const char *name, const char *value, struct error *error);

#endif
