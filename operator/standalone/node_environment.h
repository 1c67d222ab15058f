/* SPDX-License-Identifier: Apache-2.0
 *
 * A container's environment and arguments as the pod's API defines them:
 * env (value, valueFrom fieldRef, resourceFieldRef refused, configMapKeyRef,
 * secretKeyRef), envFrom, and $(NAME) references, which see what stands before
 * them in the list; $$(NAME) stays $(NAME), an unknown name stays as it is.
 */
#ifndef COXSWAIN_STANDALONE_NODE_ENVIRONMENT_H
#define COXSWAIN_STANDALONE_NODE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/json.h"

/* "NAME=value" strings in order, NULL-terminated once anything is in it; each name once, the last value wins. */
struct environment {
    char **entries;
    size_t count;
};

void environment_release(struct environment *environment);
void environment_set(struct environment *environment, const char *name, const char *value);
const char *environment_get(const struct environment *environment, const char *name);

/* Looks a ConfigMap ("configmaps") or Secret ("secrets") of the pod's namespace up; a root the caller frees, NULL when
 * there is none. */
typedef struct json *environment_lookup(void *context, const char *plural, const char *name);

struct environment_source {
    const struct json *pod; /* with status.podIP set */
    environment_lookup *lookup;
    void *context;
};

/* Adds a container's env and envFrom to what is there. ERROR_NOT_FOUND names what is referred to and missing (and not
 * optional), ERROR_UNSUPPORTED what this node does not have. */
int environment_resolve(struct environment *environment, const struct json *container,
                        const struct environment_source *source, struct error *error);

/* $(NAME) references replaced; release with free(). */
char *environment_expand(const struct environment *environment, const char *text);

/* A field of the pod for fieldRef and downwardAPI volumes ("metadata.name", "metadata.labels['app']", "metadata.labels",
 * "status.podIP", …); release with free(), NULL when the field is not supported. */
char *pod_field(const struct json *pod, const char *path);

/* The bytes of a key of a ConfigMap (data, binaryData) or Secret (data, stringData): NUL-terminated, release with free();
 * NULL when absent. */
char *config_value(const struct json *object, const char *key, size_t *ret_length);

#endif
