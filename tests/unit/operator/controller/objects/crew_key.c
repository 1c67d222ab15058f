/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/objects/crew_key.h"

#include <string.h>

#include "common/base64.h"
#include "operator/controller/objects/crew_certificate.h"
#include "tests/unit/operator/controller/plan/scene.h"
#include <criterion/criterion.h>

static struct json *secret_of(const struct training_job *job)
{
    struct json *secret;
    cr_assert_eq(crew_key_secret_build(job, &secret, NULL), 0);
    return secret;
}

Test(crew_key, is_random_and_belongs_to_the_job)
{
    struct scene scene;
    scene_init(&scene, 2);
    SCOPED_JSON *first = secret_of(&scene.job), *second = secret_of(&scene.job);
    const char *key = json_string_at(first, "data.key", "");
    SCOPED_FREE char *bytes = NULL;
    size_t length;
    cr_assert_eq(base64_decode(key, &bytes, &length, NULL), 0);
    cr_assert_eq(length, 32);
    cr_assert_str_neq(key, json_string_at(second, "data.key", ""));
    cr_assert_str_eq(json_string_at(first, "metadata.name", ""), "digits-crew-job-uid-");
    cr_assert_str_eq(json_string_at(json_first(json_at(first, "metadata.ownerReferences")), "uid", ""), SCENE_UID);
    cr_assert(json_boolean_at(first, "immutable", false));
    scene_release(&scene);
}

Test(crew_key, only_crews_of_our_worker_have_one)
{
    struct scene scene;
    scene_init(&scene, 2);
    cr_assert(crew_key_is_needed(&scene.job));
    scene.job.framework = FRAMEWORK_PYTORCH;
    cr_assert_not(crew_key_is_needed(&scene.job));
    scene_release(&scene);
    scene_init(&scene, 1);
    cr_assert_not(crew_key_is_needed(&scene.job));
    scene_release(&scene);
}

Test(crew_key, one_pod_proves_its_compiled_code_with_a_key)
{
    struct scene scene;
    scene_init(&scene, 1);
    scene.job.document.encryption = ENCRYPTION_TLS;
    scene.job.document.model.program_path = "digits";
    cr_assert(crew_key_is_needed(&scene.job));
    cr_assert_not(crew_certificate_is_needed(&scene.job), "it sends nothing to another pod");
    scene.job.document.model.program_path = NULL;
    scene.job.document.devices.type = DEVICE_TYPE_TPU;
    cr_assert(crew_key_is_needed(&scene.job));
    scene.job.framework = FRAMEWORK_JAX;
    cr_assert_not(crew_key_is_needed(&scene.job));
    scene_release(&scene);
}
