/* SPDX-License-Identifier: Apache-2.0
 *
 * What is served, told to clients: the discovery documents, old and aggregated,
 * and OpenAPI v3 made from the types (custom ones with their full schema,
 * built-in ones in outline). Each function returns a new root.
 */
#ifndef COXSWAIN_STANDALONE_DISCOVERY_H
#define COXSWAIN_STANDALONE_DISCOVERY_H

#include "operator/standalone/resource.h"

/* apidiscovery.k8s.io/v2 APIGroupDiscoveryList: of the core group (/api) or of the named ones (/apis). */
#define AGGREGATED_DISCOVERY_TYPE "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
struct json *discovery_aggregated(const struct resource_table *table, bool core);

struct json *discovery_core_versions(const char *server_address);  /* /api */
struct json *discovery_groups(const struct resource_table *table); /* /apis */
struct json *discovery_group(const struct resource_table *table, const char *group);
struct json *discovery_resources(const struct resource_table *table, const char *group, const char *version);

/* /openapi/v3: the index of documents; /openapi/v3/api/v1, /openapi/v3/apis/<group>/<version>. */
struct json *openapi_index(const struct resource_table *table);
struct json *openapi_document(const struct resource_table *table, const char *group, const char *version);

/* Subresources of a type, with the verbs that each takes; both end with a NULL. */
struct subresource {
    const char *name;
    const char *kind, *group, *version; /* of what it takes and gives; kind NULL: the type itself */
    const char *verbs[4];
};
/* The `index`th one, or NULL. */
const struct subresource *resource_subresource(const struct resource *resource, size_t index);

#endif
