/* SPDX-License-Identifier: Apache-2.0
 *
 * A manifest file: YAML or JSON documents, one of them a TrainingJob, and how
 * they get into a cluster: created, or merged into what is there.
 */
#ifndef COXSWAIN_CLI_MANIFEST_H
#define COXSWAIN_CLI_MANIFEST_H

#include "operator/kube/client.h"

#define MANIFEST_MAX (4 * 1024 * 1024)

struct manifest {
    struct json *documents; /* an array */
    const struct json *job; /* in it */
    const char *name;       /* of the job */
    const char *name_space; /* as written, else `default_namespace` */
};

/* ERROR_INVALID when there is not exactly one TrainingJob, or a document lacks apiVersion, kind or name. */
int manifest_read(const char *path, const char *default_namespace, struct manifest *ret_manifest, struct error *error);
void manifest_release(struct manifest *manifest);

/* Runs the client's loop until every document is stored. */
int manifest_apply(const struct manifest *manifest, struct kube_client *client, struct error *error);

#endif
