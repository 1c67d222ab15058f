/* SPDX-License-Identifier: Apache-2.0
 *
 * The resource types that are served: a table of built-in ones, and those that
 * CustomResourceDefinitions add while the program runs.
 */
#ifndef COXSWAIN_STANDALONE_RESOURCE_H
#define COXSWAIN_STANDALONE_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/json.h"

/* In the order in which discovery lists them. */
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
    const char *storage; /* its name in the store: "pods", "trainingjobs.coxswain.dev"; views of one another share it */
    const char *short_names[RESOURCE_NAMES_MAX + 1]; /* up to a NULL */
    const char *categories[RESOURCE_NAMES_MAX + 1];
    bool namespaced;
    bool has_status; /* a status subresource: main writes leave status alone and status writes all else */
    bool has_generation;
    unsigned verbs;
    const struct json *version_definition; /* of a CRD: schema, columns, subresources; else NULL */
    struct json *definition;               /* of a CRD: owns all the strings above */
    struct resource *next;
};

struct resource_table;

struct resource_table *resource_table_new(void);
void resource_table_free(struct resource_table *table);

const struct resource *resource_table_first(const struct resource_table *table);
/* NULL when not served. */
const struct resource *resource_find(const struct resource_table *table, const char *group, const char *version,
                                     const char *plural);
/* The first one with this plural. */
const struct resource *resource_find_plural(const struct resource_table *table, const char *plural);
const struct resource *resource_find_storage(const struct resource_table *table, const char *storage);
const struct resource *resource_find_kind(const struct resource_table *table, const char *group, const char *kind);
bool resource_group_exists(const struct resource_table *table, const char *group, const char *version);

/* Serves what a CustomResourceDefinition describes (its storage version), in place of what its name stood for. */
int resource_define(struct resource_table *table, const struct json *definition, struct error *error);
/* `storage` is the definition's name. */
void resource_undefine(struct resource_table *table, const char *storage);

/* "v1" or "group/version"; `text` has room for 128 bytes. */
#define API_VERSION_TEXT_MAX 128
void resource_api_version(const struct resource *resource, char text[API_VERSION_TEXT_MAX]);
/* "pods" or "trainingjobs.coxswain.dev": how messages name a type. */
void resource_qualified(const struct resource *resource, char text[API_VERSION_TEXT_MAX]);

#endif
