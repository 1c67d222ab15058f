/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a manifest file for `cox run` and applies it to a cluster. A manifest has one or more YAML or JSON
 * documents, exactly one of which is a TrainingJob or a TrainingSweep; the class that it names may be
 * another. Each document is created in the cluster; if an object of that name exists, it is patched. The API
 * server refuses fields that it does not know, as with kubectl. `cox migrate` uses the reading alone.
 */
#ifndef COXSWAIN_CLI_MANIFEST_H
#define COXSWAIN_CLI_MANIFEST_H

#include "operator/kube/client.h"

#define MANIFEST_MAX (4 * 1024 * 1024)

struct manifest {
    struct json *documents; /* an array */
    struct json *job;       /* in it: the job, or the sweep */
    struct json *effective; /* a copy of it, with the defaults of its class if that is in the file */
    bool is_sweep;
    const char *name;       /* of the job */
    const char *name_space; /* as written, else `default_namespace` */
};

/* Which manifest to read, and how. Strings are borrowed; `default_namespace` must outlive the manifest. */
struct manifest_request {
    const char *path; /* "-": the standard input */
    const char *default_namespace;
    const char *const *settings; /* "spec.coxswain.training.steps=100" (job_setting.h), applied in their order */
    unsigned setting_count;
};

/* The documents of a file, an array. */
int manifest_documents(const char *path, struct json **ret_documents, struct error *error);

/* ERROR_INVALID when there is not exactly one TrainingJob or TrainingSweep, a document lacks apiVersion, kind or
 * name, or a setting does not fit. */
int manifest_read(const struct manifest_request *request, struct manifest *ret_manifest, struct error *error);
void manifest_release(struct manifest *manifest);

/* What became of the job or sweep. */
struct manifest_result {
    bool created;   /* it was not there before */
    bool suspended; /* it was there, is not over, and a user had suspended it */
};

/* Creates or patches every document, and runs the client's loop until that is done. `resume`: a job or sweep that a user had suspended goes
 * on, unless the manifest says whether it is suspended. ERROR_CANCELLED once `*interrupted` is set, which a callback of the loop may do.
 * ERROR_ALREADY_EXISTS if the job exists and differs in a field that cannot be changed. */
int manifest_apply(const struct manifest *manifest, struct kube_client *client, bool resume, const bool *interrupted,
                   struct manifest_result *ret_result, struct error *error);

#endif
