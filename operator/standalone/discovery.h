/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the documents by which clients such as kubectl learn which types the embedded API server serves: the discovery documents, per
 * group and aggregated, and OpenAPI v3, with the full schema of custom types and an outline of built-in ones. Each function returns a new
 * JSON root that the caller frees.
 */
#ifndef COXSWAIN_STANDALONE_DISCOVERY_H
#define COXSWAIN_STANDALONE_DISCOVERY_H

#include "operator/standalone/resource.h"

/* An apidiscovery.k8s.io/v2 APIGroupDiscoveryList of the core group (/api) or of all other groups
 * (/apis). */
#define AGGREGATED_DISCOVERY_TYPE "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
struct json *discovery_aggregated(const struct resource_table *table, bool core);

struct json *discovery_core_versions(const char *server_address);  /* /api */
struct json *discovery_groups(const struct resource_table *table); /* /apis */
struct json *discovery_group(const struct resource_table *table, const char *group);
struct json *discovery_resources(const struct resource_table *table, const char *group, const char *version);

/* /openapi/v3: the index of documents; /openapi/v3/api/v1, /openapi/v3/apis/<group>/<version>. */
struct json *openapi_index(const struct resource_table *table);
struct json *openapi_document(const struct resource_table *table, const char *group, const char *version);

/* A subresource of a type and its verbs, which end with a NULL. */
struct subresource {
    const char *name;
    const char *kind, *group, *version; /* type of its objects; kind NULL: the same type */
    const char *verbs[4];
};
/* The subresource at `index`, or NULL after the last one. */
const struct subresource *resource_subresource(const struct resource *resource, size_t index);

#endif
