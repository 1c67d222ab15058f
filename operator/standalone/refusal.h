/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the error answers of the embedded API server. A function that may refuse a request returns NULL on success, else a refusal: a
 * metav1.Status with code, reason, message and details, in the words of kube-apiserver. The caller sends the refusal or frees it
 * (json_free).
 */
#ifndef COXSWAIN_STANDALONE_REFUSAL_H
#define COXSWAIN_STANDALONE_REFUSAL_H

#include "common/error.h"
#include "common/json.h"
#include "operator/standalone/resource.h"

struct json *refusal_new(int code, const char *reason, const char *format, ...) __attribute__((format(printf, 3, 4)));

struct json *refusal_already_exists(const struct resource *resource, const char *name);
/* "Operation cannot be fulfilled on …: <why>"; `why` NULL: the object has been modified. */
struct json *refusal_conflict(const struct resource *resource, const char *name, const char *why);
/* Refuses a delete whose precondition does not hold. `field` is "UID" or "ResourceVersion", `guess` the
 * likely cause. */
struct json *refusal_precondition(const struct resource *resource, const char *name, const char *field,
                                  const char *wanted, const char *has, const char *guess);
/* Takes ownership of `causes`, an array of {"reason","message","field"}. */
struct json *refusal_invalid(const struct resource *resource, const char *name, struct json *causes);
struct json *refusal_bad_request(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct json *refusal_method_not_allowed(void);
struct json *refusal_unknown_path(void);
/* Converts an error of the store or of a parser. */
struct json *refusal_from_error(const struct resource *resource, const char *name, const struct error *error);
/* Converts a refusal to an error, for callers in this process. Frees the refusal; returns -1. */
int refusal_to_error(struct json *refusal, struct error *error);

int refusal_code(const struct json *refusal);

#define CAUSE_KINDS(X)                                                                                                 \
    X(REQUIRED, "FieldValueRequired", "Required value")                                                                \
    X(INVALID, "FieldValueInvalid", "Invalid value")                                                                   \
    X(TYPE, "FieldValueTypeInvalid", "Invalid value")                                                                  \
    X(NOT_SUPPORTED, "FieldValueNotSupported", "Unsupported value")                                                    \
    X(FORBIDDEN, "FieldValueForbidden", "Forbidden")                                                                   \
    X(TOO_LONG, "FieldValueTooLong", "Too long")                                                                       \
    X(TOO_MANY, "FieldValueTooMany", "Too many")                                                                       \
    X(DUPLICATE, "FieldValueDuplicate", "Duplicate value")
enum cause_kind {
#define X(name, reason, words) CAUSE_##name,
    CAUSE_KINDS(X)
#undef X
};
/* Appends a cause, with kube-apiserver's format of messages. `value` and `detail` are left out when
 * NULL. */
void cause_add(struct json *causes, enum cause_kind kind, const char *field, const struct json *value,
               const char *detail);

#endif
