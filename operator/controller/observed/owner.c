/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/observed/owner.h"

#include <string.h>

#include "common/contract/labels.h"
#include "common/memory.h"

static bool is_job(const struct json *reference)
{
    return strcmp(json_string_at(reference, "kind", ""), TRAINING_JOB_KIND) == 0 &&
           strncmp(json_string_at(reference, "apiVersion", ""), API_GROUP "/", strlen(API_GROUP "/")) == 0;
}

struct owner owner_of(const struct json *object)
{
    const struct json *references = json_at(object, "metadata.ownerReferences");
    for (const struct json *item = json_first(references); item; item = json_next(item))
        if (json_boolean_at(item, "controller", false))
            return (struct owner){.uid = json_string_at(item, "uid", ""),
                                  .kind = json_string_at(item, "kind", ""),
                                  .name = json_string_at(item, "name", ""),
                                  .is_job = is_job(item)};
    return (struct owner){.uid = "", .kind = "", .name = ""};
}

const char *owner_label(const struct json *object)
{
    return json_string(json_member(json_at(object, "metadata.labels"), LABEL_JOB_UID), "");
}

bool owner_is_job(const char *owner_uid, const char *label_uid, const char *job_uid)
{
    return strcmp(*owner_uid != '\0' ? owner_uid : label_uid, job_uid) == 0;
}

bool owner_is_any(const struct json *object)
{
    return json_count(json_at(object, "metadata.ownerReferences")) > 0;
}

char *owner_name_taken(const char *plural, const char *name, const struct owner *owner)
{
    if (*owner->uid == '\0')
        return memory_format("%s %s exists and belongs to nobody: remove it, or give the job another name", plural,
                             name);
    return memory_format("%s %s exists and belongs to %s %s%s: remove it, or give the job another name", plural, name,
                         owner->kind, owner->name, owner->is_job ? " of another UID" : "");
}

char *owner_label_lost(const struct json *object, const char *plural, const char *job_uid)
{
    const char *name = json_string_at(object, "metadata.name", "");
    if (json_member(json_at(object, "metadata.labels"), LABEL_JOB_UID))
        return NULL;
    return memory_format(
        "%s %s is this job's, but has lost the label by which it is found: kubectl -n %s label %s %s " LABEL_JOB_UID
        "=%s",
        plural, name, json_string_at(object, "metadata.namespace", ""), plural, name, job_uid);
}
