/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolves a container's environment and arguments for the embedded control plane's node, as the Kubernetes API defines them: env (value,
 * fieldRef, configMapKeyRef, secretKeyRef; resourceFieldRef is refused), envFrom, and $(NAME) references. A reference sees the variables
 * before it in the list; $$(NAME) becomes $(NAME), and an unknown name is left as it is.
 */
#ifndef COXSWAIN_STANDALONE_NODE_ENVIRONMENT_H
#define COXSWAIN_STANDALONE_NODE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/json.h"

/* "NAME=value" strings, one for each name. The list ends with NULL; an empty one may be NULL
 * itself. */
struct environment {
    char **entries;
    size_t count;
};

void environment_release(struct environment *environment);
void environment_set(struct environment *environment, const char *name, const char *value);
const char *environment_get(const struct environment *environment, const char *name);

/* Looks up a ConfigMap ("configmaps") or Secret ("secrets") of the pod's namespace. Returns a root
 * that the caller frees, or NULL when it does not exist. */
typedef struct json *environment_lookup(void *context, const char *plural, const char *name);

struct environment_source {
    const struct json *pod; /* with status.podIP set */
    const char *gpus;       /* CUDA_VISIBLE_DEVICES of containers that request GPUs; NULL: the pod requests none */
    environment_lookup *lookup;
    void *context;
};

/* Adds a container's env and envFrom. ERROR_NOT_FOUND when a ConfigMap, Secret or key that is not
 * optional is missing, ERROR_UNSUPPORTED for sources that this node does not support. */
int environment_resolve(struct environment *environment, const struct json *container,
                        const struct environment_source *source, struct error *error);

/* Replaces $(NAME) references in `text`; release with free(). */
char *environment_expand(const struct environment *environment, const char *text);

/* Reads a field of the pod for fieldRef and downwardAPI volumes ("metadata.name",
 * "metadata.labels['app']", "metadata.labels", "status.podIP", …). Release with free(); NULL when
 * the field is not supported. */
char *pod_field(const struct json *pod, const char *path);

/* Reads the value of a key of a ConfigMap (data, binaryData) or Secret (data, stringData).
 * NUL-terminated; release with free(). NULL when the key is absent. */
char *config_value(const struct json *object, const char *key, size_t *ret_length);

#endif
