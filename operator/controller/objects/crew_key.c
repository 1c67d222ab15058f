/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/crew_key.h"

#include <sys/random.h>

#include "common/base64.h"
#include "common/contract/environment.h"
#include "common/memory.h"
#include "operator/controller/objects/child_metadata.h"
#include "operator/controller/objects/crew_roles.h"

#define KEY_BYTES 32
#define UID_PART 8

bool crew_key_is_needed(const struct training_job *job)
{
    int64_t pods = job->elastic.enabled ? job->elastic.max_workers : 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        pods += crew_role_count(job, (enum role)role);
    return job->framework == FRAMEWORK_COXSWAIN && pods > 1;
}

/* "<job>-crew-<start of its UID>"; release with free(). */
static char *secret_name(const struct training_job *job)
{
    return memory_format("%s-crew-%.*s", job->name, UID_PART, job->uid);
}

int crew_key_secret_build(const struct training_job *job, struct json **ret_secret, struct error *error)
{
    unsigned char key[KEY_BYTES];
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
        return error_set_errno(error, "make the crew's key");
    SCOPED_FREE char *name = secret_name(job), *text = base64_encode(key, sizeof key);
    struct json *secret = json_new_object();
    json_set_string(secret, "apiVersion", "v1");
    json_set_string(secret, "kind", "Secret");
    child_metadata_fill(json_set(secret, "metadata", json_new_object()), job, name);
    json_set_string(secret, "type", "Opaque");
    json_set_boolean(secret, "immutable", true);
    json_set_string(json_set(secret, "data", json_new_object()), CREW_KEY_NAME, text);
    *ret_secret = secret;
    return 0;
}

void crew_key_add_volume(struct json *volumes, const struct training_job *job)
{
    SCOPED_FREE char *name = secret_name(job);
    struct json *volume = json_append(volumes, json_new_object());
    json_set_string(volume, "name", CREW_KEY_VOLUME);
    struct json *source = json_set(volume, "secret", json_new_object());
    json_set_string(source, "secretName", name);
    json_set_integer(source, "defaultMode", 0444); /* readable for any user that a template sets */
}

void crew_key_add_mount(struct json *mounts)
{
    struct json *mount = json_append(mounts, json_new_object());
    json_set_string(mount, "name", CREW_KEY_VOLUME);
    json_set_string(mount, "mountPath", CREW_KEY_DIRECTORY);
    json_set_boolean(mount, "readOnly", true);
}
