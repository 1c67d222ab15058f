/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses, changes and prints JSON values; the only wrapper around cJSON.
 *
 * A `struct json *` is either a root (owned: free with json_free) or a borrowed view into a root (never freed by its user, valid until that
 * value, or one that contains it, is removed, replaced or freed). Numbers are IEEE doubles, as in JavaScript: integers are exact up to
 * 2^53, which is enough for every number that this project stores (resourceVersions are strings). All look-ups accept NULL and values of
 * another type, for which they return "absent", so that reading a path of an untrusted document needs no check at each step.
 */
#ifndef COXSWAIN_COMMON_JSON_H
#define COXSWAIN_COMMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/scope.h"

struct json;

/* Nesting deeper than this is refused by the parser. */
#define JSON_DEPTH_MAX 128

/* Parses exactly one value (white space around it is allowed), as strictly as RFC 8259: UTF-8
 * only, no NUL in strings, no number too large for a double. ERROR_INVALID with the offset and the
 * unexpected text; ERROR_TOO_LARGE for text longer than `ceiling` bytes. If a key occurs twice, the
 * last value is kept. */
int json_parse(const char *text, size_t length, size_t ceiling, struct json **ret_value, struct error *error);
void json_free(struct json *root);
DEFINE_SCOPE_FREE(struct json *, json_free)
#define SCOPED_JSON SCOPED(json_free_scope) struct json

/* Append a value as JSON text, compact or indented; keys keep their order. ERROR_TOO_LARGE at the
 * buffer's ceiling. The output is always valid: bytes that are not UTF-8 become U+FFFD, control
 * characters are escaped, numbers that are not finite become null. */
int json_print(const struct json *value, struct buffer *out, struct error *error);
int json_print_indented(const struct json *value, struct buffer *out, struct error *error);

/* Returns a string, a number or a boolean as text, such as "c10d", "2" or "true"; numbers are written as by json_print. NULL for other
 * values. Release with free(). */
char *json_scalar_text(const struct json *value);

enum json_type { JSON_ABSENT, JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
enum json_type json_type(const struct json *value); /* JSON_ABSENT for NULL */
const char *json_type_name(enum json_type type);    /* "object", "string", … */

/* Look-ups: NULL when absent. `path` is dotted ("metadata.name"); a key that itself holds a dot
 * needs json_member. */
struct json *json_member(const struct json *object, const char *key);
struct json *json_at(const struct json *object, const char *path);
struct json *json_element(const struct json *array,
                          size_t index);         /* walks from the front; iterate with json_first/json_next */
size_t json_count(const struct json *container); /* members of an object, elements of an array, else 0 */

/* for (struct json *item = json_first(list); item; item = json_next(item)) */
struct json *json_first(const struct json *container);
struct json *json_next(const struct json *value);
const char *json_key(const struct json *member); /* the name of an object's member, else NULL */

/* Each returns the C value of a JSON value, or `otherwise` if the value is absent or of another type. */
const char *json_string(const struct json *value, const char *otherwise);
int64_t json_integer(const struct json *value, int64_t otherwise); /* also `otherwise` when not whole or beyond 2^53 */
double json_number(const struct json *value, double otherwise);
bool json_boolean(const struct json *value, bool otherwise);

/* Each returns the C value of the JSON value at a dotted path, such as json_string_at(pod, "metadata.name", ""), or `otherwise`. */
const char *json_string_at(const struct json *object, const char *path, const char *otherwise);
int64_t json_integer_at(const struct json *object, const char *path, int64_t otherwise);
double json_number_at(const struct json *object, const char *path, double otherwise);
bool json_boolean_at(const struct json *object, const char *path, bool otherwise);

/* Building. New roots: */
struct json *json_new_object(void);
struct json *json_new_array(void);
struct json *json_new_string(const char *text);
struct json *json_new_number(double number);
struct json *json_new_integer(int64_t number);
struct json *json_new_boolean(bool value);
struct json *json_new_null(void);
struct json *json_copy(const struct json *value);

/* Set or replace a member of `object`, which must be an object. json_set takes ownership of `value`; NULL
 * removes the member. Each returns the new member (borrowed), or NULL if it was removed. */
struct json *json_set(struct json *object, const char *key, struct json *value);
struct json *json_set_string(struct json *object, const char *key, const char *text); /* NULL text: removes */
struct json *json_set_integer(struct json *object, const char *key, int64_t number);
struct json *json_set_number(struct json *object, const char *key, double number);
struct json *json_set_boolean(struct json *object, const char *key, bool value);
struct json *json_set_object(struct json *object,
                             const char *key); /* the member if it is an object already, else a new empty one */
struct json *json_set_array(struct json *object, const char *key); /* the same for an array */
void json_remove(struct json *object, const char *key);

/* Appends an element and takes ownership of `value`; returns the element (borrowed). */
struct json *json_append(struct json *array, struct json *value);
/* Replaces an element and takes ownership of `value`; an `index` equal to the count appends. Returns
 * the element (borrowed). */
struct json *json_set_element(struct json *array, size_t index, struct json *value);
struct json *json_append_string(struct json *array, const char *text);
/* Removes an element or member from its container and returns it as a root, which the caller owns. */
struct json *json_detach(struct json *container, struct json *value);

/* Returns whether two values are equal. The order of an object's members does not matter, that of an array's elements does. */
bool json_equal(const struct json *left, const struct json *right);

/* Applies a merge patch (RFC 7386) to `*target` in place. The root itself may be replaced. */
void json_merge_patch(struct json **target, const struct json *patch);

#endif
