/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/child_metadata.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/contract/labels.h"

struct json *child_owner_reference(const char *kind, const char *name, const char *uid)
{
    struct json *owner = json_new_object();
    json_set_string(owner, "apiVersion", API_GROUP_VERSION);
    json_set_string(owner, "kind", kind);
    json_set_string(owner, "name", name);
    json_set_string(owner, "uid", uid);
    json_set_boolean(owner, "controller", true);
    json_set_boolean(owner, "blockOwnerDeletion", true);
    return owner;
}

void child_metadata_fill(struct json *metadata, const struct training_job *job, const char *name)
{
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "namespace", job->namespace);
    json_append(json_set(metadata, "ownerReferences", json_new_array()),
                child_owner_reference(TRAINING_JOB_KIND, job->name, job->uid));
    struct json *labels = json_member(metadata, "labels");
    if (json_type(labels) != JSON_OBJECT)
        labels = json_set(metadata, "labels", json_new_object());
    json_set_string(labels, LABEL_APP_NAME, "coxswain");
    json_set_string(labels, LABEL_APP_INSTANCE, job->name);
    json_set_string(labels, LABEL_APP_MANAGED_BY, OPERATOR_NAME);
    json_set_string(labels, LABEL_JOB_NAME, job->name);
    json_set_string(labels, LABEL_JOB_UID, job->uid);
    json_set_string(labels, LABEL_KUBEFLOW_JOB_NAME, job->name);
}

void child_label_number(struct json *labels, const char *key, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    json_set_string(labels, key, text);
}
