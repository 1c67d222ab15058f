/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/job_secret.h"

#include "common/base64.h"
#include "common/memory.h"
#include "operator/controller/objects/child_metadata.h"

#define UID_PART 8

char *job_secret_name(const struct training_job *job, const char *purpose)
{
    return memory_format("%s-%s-%.*s", job->name, purpose, UID_PART, job->uid);
}

struct json *job_secret_new(const struct training_job *job, const char *name)
{
    struct json *secret = json_new_object();
    json_set_string(secret, "apiVersion", "v1");
    json_set_string(secret, "kind", "Secret");
    child_metadata_fill(json_set(secret, "metadata", json_new_object()), job, name);
    json_set_string(secret, "type", "Opaque");
    return secret;
}

void job_secret_set_data(struct json *secret, const char *file, const void *bytes, size_t length)
{
    SCOPED_FREE char *text = base64_encode(bytes, length);
    json_set_string(json_set_object(secret, "data"), file, text);
}

struct json *job_secret_add_volume(struct json *volumes, const char *volume, const char *secret_name)
{
    struct json *added = json_append(volumes, json_new_object());
    json_set_string(added, "name", volume);
    struct json *source = json_set(added, "secret", json_new_object());
    json_set_string(source, "secretName", secret_name);
    json_set_integer(source, "defaultMode", JOB_SECRET_MODE);
    return source;
}

void job_secret_add_mount(struct json *mounts, const char *volume, const char *directory)
{
    struct json *mount = json_append(mounts, json_new_object());
    json_set_string(mount, "name", volume);
    json_set_string(mount, "mountPath", directory);
    json_set_boolean(mount, "readOnly", true);
}
