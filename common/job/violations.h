/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects what is wrong with a manifest or job document: a list of causes, each with the path of a field ("spec.workers.replicas") and a
 * sentence that says what to change. The validation (field_check.h, immutability.h) fills the list, so that a user sees all causes at once,
 * at most VIOLATIONS_MAX.
 */
#ifndef COXSWAIN_JOB_VIOLATIONS_H
#define COXSWAIN_JOB_VIOLATIONS_H

#include "common/json.h"

/* A user is not helped by more causes than these. */
#define VIOLATIONS_MAX 32
#define FIELD_PATH_MAX 512

struct violations {
    struct json *list; /* [{"field": "spec.workers.replicas", "message": "…"}] */
    size_t count;
    char path[FIELD_PATH_MAX]; /* of the value that is being looked at */
    size_t path_length;
};

/* `root` is the path that all others start with: "spec", or "" for a document of its own. */
void violations_init(struct violations *violations, const char *root);
void violations_release(struct violations *violations);

/* Goes one step down the path; returns the length to come back to with violations_leave. */
size_t violations_enter(struct violations *violations, const char *name);
size_t violations_enter_element(struct violations *violations, size_t index);
void violations_leave(struct violations *violations, size_t length);

/* Adds a cause for the current path, or for its member `name` when that is not NULL. */
void violations_add(struct violations *violations, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* 0 when there are none; else ERROR_INVALID with the first and the number of the others. */
int violations_to_error(const struct violations *violations, struct error *error);

#endif
