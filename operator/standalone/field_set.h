/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes with sets of fields for server-side apply (apply.h): which fields of an object a manager owns, in the format of
 * metadata.managedFields (FieldsV1), such as {"f:spec":{"f:workers":{}}}. "f:name" is a member of an object, k:{"type":"Ready"} an element
 * of a keyed list (with "." for the element itself), v:"text" an element of a list that is a set; {} is a leaf.
 */
#ifndef COXSWAIN_STANDALONE_FIELD_SET_H
#define COXSWAIN_STANDALONE_FIELD_SET_H

#include "operator/standalone/resource.h"

/* The position of a value within its type: its schema for a custom resource, else the name of its
 * field. */
struct field_place {
    const struct json *schema; /* NULL: unknown, or a built-in type */
    const char *name;
    bool builtin;
};
struct field_place field_place_of(const struct resource *resource);
struct field_place field_place_member(struct field_place place, const char *name);
struct field_place field_place_element(struct field_place place);

/* The keys by which a list merges; keys[0] is NULL when it is a set or is replaced as a whole. */
#define FIELD_KEYS_MAX 4
struct field_keys {
    const char *keys[FIELD_KEYS_MAX + 1];
    bool set;
};
struct field_keys field_keys_of(struct field_place place, const struct json *list);
/* Returns whether the object at `place` is replaced as a whole. */
bool field_is_atomic(struct field_place place);

/* Finds the element of `list` whose keys equal those of `like` (in a set: that equals it); NULL
 * when there is none. */
struct json *field_element(const struct json *list, const struct field_keys *keys, const struct json *like);

/* Returns all fields of `value`, at every depth, as a new set. */
struct json *field_set_of(const struct json *value, struct field_place place);
/* Adds the fields of `more` to `set`. */
void field_set_add(struct json *set, const struct json *more);
/* Removes the leaves of `other` from `set`. */
void field_set_subtract(struct json *set, const struct json *other);

/* Finds the member or list element of `value` that `element` of a field set names, and its place;
 * NULL when `value` does not have it. */
struct json *field_resolve(const struct json *value, const char *element, struct field_place place,
                           struct field_place *ret_place);

#endif
