/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/job_roles.h"

#include "common/gpu_list.h"
#include "common/job/template_overlay.h"

int64_t job_role_count(const struct training_job *job, enum role role)
{
    int64_t count = role == ROLE_WORKER ? job->document.workers : job->roles[role].count;
    return count >= 0 && count <= JOB_ROLE_MAX ? count : 0;
}

int64_t job_role_minimum(const struct training_job *job, enum role role)
{
    int64_t count = job_role_count(job, role), least = job->elastic.min_workers;
    bool fewer = role == ROLE_WORKER && job->elastic.enabled && least > 0 && least < count;
    return fewer ? least : count;
}

int64_t job_role_devices(const struct training_job *job, enum role role)
{
    bool ours = job->framework == FRAMEWORK_COXSWAIN;
    bool served = job->document.strategy.type == STRATEGY_PARAMETER_SERVER;
    if (role == ROLE_PS || (ours && role == ROLE_CHIEF && served))
        return 0;
    if (ours && role == ROLE_EVALUATOR)
        return 1;
    return job->document.devices.count;
}

int64_t job_least_devices(const struct training_job *job)
{
    int64_t sum = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        sum += job_role_minimum(job, (enum role)role) * job_role_devices(job, (enum role)role);
    return sum;
}

const char *job_device_resource(const struct training_job *job, enum role role, enum device_type type)
{
    const struct json *main = template_main_container(job->roles[role].template);
    if (type != DEVICE_TYPE_GPU && type != DEVICE_TYPE_TPU)
        return NULL;
    if (job->document.devices.resource_name)
        return job->document.devices.resource_name;
    if (json_count(json_at(main, "resources.claims")) > 0)
        return NULL;
    return type == DEVICE_TYPE_GPU ? GPU_RESOURCE : "google.com/tpu";
}
