/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds the table of resource types that the embedded API server serves: built-in types, and those that CustomResourceDefinitions add at
 * run time, each in its storage version only. A `struct resource` of a custom type is valid until its definition is replaced or removed.
 */
#ifndef COXSWAIN_STANDALONE_RESOURCE_H
#define COXSWAIN_STANDALONE_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/json.h"

/* In the order of the discovery documents. */
#define RESOURCE_VERBS(X)                                                                                              \
    X(CREATE, "create")                                                                                                \
    X(DELETE, "delete")                                                                                                \
    X(DELETE_COLLECTION, "deletecollection")                                                                           \
    X(GET, "get")                                                                                                      \
    X(LIST, "list")                                                                                                    \
    X(PATCH, "patch")                                                                                                  \
    X(UPDATE, "update")                                                                                                \
    X(WATCH, "watch")
enum resource_verb_bit {
#define X(name, text) VERB_BIT_##name,
    RESOURCE_VERBS(X)
#undef X
};
enum resource_verb {
#define X(name, text) VERB_##name = 1 << VERB_BIT_##name,
    RESOURCE_VERBS(X)
#undef X
};

#define RESOURCE_NAMES_MAX 4

struct resource {
    const char *group; /* "" for the core group */
    const char *version, *plural, *singular, *kind;
    const char *storage; /* its name in the store: "pods", "trainingjobs.coxswain.dev"; versions of one type share it */
    const char *short_names[RESOURCE_NAMES_MAX + 1]; /* ends with NULL */
    const char *categories[RESOURCE_NAMES_MAX + 1];
    bool namespaced;
    bool has_status; /* has a status subresource, the only way to change the status */
    bool has_generation;
    unsigned verbs;
    const struct json *version_definition; /* schema, columns and subresources of a custom type; else NULL */
    struct json *definition;               /* of a custom type: owns all strings above */
    struct resource *next;
};

struct resource_table;

struct resource_table *resource_table_new(void);
void resource_table_free(struct resource_table *table);

const struct resource *resource_table_first(const struct resource_table *table);
/* These return NULL when no such type is served. */
const struct resource *resource_find(const struct resource_table *table, const char *group, const char *version,
                                     const char *plural);
/* Finds the first type with this plural, in any group. */
const struct resource *resource_find_plural(const struct resource_table *table, const char *plural);
const struct resource *resource_find_storage(const struct resource_table *table, const char *storage);
const struct resource *resource_find_kind(const struct resource_table *table, const char *group, const char *kind);
bool resource_group_exists(const struct resource_table *table, const char *group, const char *version);

/* Serves the storage version of a CustomResourceDefinition. Replaces an earlier definition of that
 * name. */
int resource_define(struct resource_table *table, const struct json *definition, struct error *error);
/* Stops serving the type of the CustomResourceDefinition named `storage`. */
void resource_undefine(struct resource_table *table, const char *storage);

/* Writes "v1" or "group/version". */
#define API_VERSION_TEXT_MAX 128
void resource_api_version(const struct resource *resource, char text[API_VERSION_TEXT_MAX]);
/* Writes the name of the type in messages: "pods" or "trainingjobs.coxswain.dev". */
void resource_qualified(const struct resource *resource, char text[API_VERSION_TEXT_MAX]);

#endif
