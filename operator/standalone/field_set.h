/* SPDX-License-Identifier: Apache-2.0
 *
 * Which fields of an object somebody speaks of, in the form of
 * metadata.managedFields (FieldsV1): {"f:spec":{"f:workers":{}}}. Members of
 * objects are "f:name", elements of keyed lists k:{"type":"Ready"} with a "." for
 * the element itself, elements of sets v:"text"; {} is a leaf.
 */
#ifndef COXSWAIN_STANDALONE_FIELD_SET_H
#define COXSWAIN_STANDALONE_FIELD_SET_H

#include "operator/standalone/resource.h"

/* Where in the type a value stands: its schema for a custom resource, else the name of its field. */
struct field_place {
    const struct json *schema; /* NULL: unknown, or a built-in type */
    const char *name;
    bool builtin;
};
struct field_place field_place_of(const struct resource *resource);
struct field_place field_place_member(struct field_place place, const char *name);
struct field_place field_place_element(struct field_place place);

/* How a list merges: keys[0] NULL when it is replaced as a whole or is a set. */
#define FIELD_KEYS_MAX 4
struct field_keys {
    const char *keys[FIELD_KEYS_MAX + 1];
    bool set;
};
struct field_keys field_keys_of(struct field_place place, const struct json *list);
/* An object that is replaced as a whole. */
bool field_is_atomic(struct field_place place);

/* The element of `list` that agrees with `like` in all keys (sets: is equal); NULL: none. */
struct json *field_element(const struct json *list, const struct field_keys *keys, const struct json *like);

/* What `value` speaks of, all the way down; a new object. */
struct json *field_set_of(const struct json *value, struct field_place place);
/* Adds what `more` has to `set`. */
void field_set_add(struct json *set, const struct json *more);
/* Takes out of `set` the leaves that `other` has. */
void field_set_subtract(struct json *set, const struct json *other);

/* What an element of a set names in `value`: a member, or an element of the list; NULL: nothing. `ret_place` is where. */
struct json *field_resolve(const struct json *value, const char *element, struct field_place place,
                           struct field_place *ret_place);

#endif
