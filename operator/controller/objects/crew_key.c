/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/crew_key.h"

#include <sys/random.h>

#include "common/contract/environment.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/objects/job_secret.h"

#define KEY_BYTES 32

bool crew_key_is_needed(const struct training_job *job)
{
    return job->framework == FRAMEWORK_COXSWAIN && (crew_has_peers(job) || job_document_uses_plugin(&job->document));
}

static char *secret_name(const struct training_job *job)
{
    return job_secret_name(job, "crew");
}

int crew_key_secret_build(const struct training_job *job, struct json **ret_secret, struct error *error)
{
    unsigned char key[KEY_BYTES];
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
        return error_set_errno(error, "make the crew's key");
    SCOPED_FREE char *name = secret_name(job);
    struct json *secret = job_secret_new(job, name);
    json_set_boolean(secret, "immutable", true);
    job_secret_set_data(secret, CREW_KEY_NAME, key, sizeof key);
    *ret_secret = secret;
    return 0;
}

void crew_key_add_volume(struct json *volumes, const struct training_job *job)
{
    SCOPED_FREE char *name = secret_name(job);
    job_secret_add_volume(volumes, CREW_KEY_VOLUME, name);
}

void crew_key_add_mount(struct json *mounts)
{
    job_secret_add_mount(mounts, CREW_KEY_VOLUME, CREW_KEY_DIRECTORY);
}
