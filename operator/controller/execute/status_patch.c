/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/status_patch.h"

/* Members of `before` that `after` lacks become null; equal ones are left out. */
static struct json *difference(const struct json *before, const struct json *after)
{
    struct json *patch = json_new_object();
    for (const struct json *old = json_first(before); old; old = json_next(old))
        if (!json_member(after, json_key(old)))
            json_set(patch, json_key(old), json_new_null());
    for (const struct json *new = json_first(after); new; new = json_next(new)) {
        const struct json *old = json_member(before, json_key(new));
        if (json_equal(old, new))
            continue;
        bool both_objects = json_type(old) == JSON_OBJECT && json_type(new) == JSON_OBJECT;
        json_set(patch, json_key(new), both_objects ? difference(old, new) : json_copy(new));
    }
    return patch;
}

struct json *status_patch_between(const char *resource_version, const struct json *before, const struct json *after)
{
    struct json *patch = json_new_object();
    json_set_string(json_set(patch, "metadata", json_new_object()), "resourceVersion", resource_version);
    json_set(patch, "status", difference(before, after));
    return patch;
}

struct json *status_patch(const struct training_job *job, const struct job_status *after)
{
    SCOPED_JSON *old = job_status_to_json(&job->status);
    SCOPED_JSON *new = job_status_to_json(after);
    return status_patch_between(job->resource_version, old, new);
}
