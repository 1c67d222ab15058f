/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/job_devices.h"

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
    int64_t sum = 0, least = job->elastic.min_workers;
    for (int role = 0; role < ROLE_COUNT; role++) {
        int64_t pods = job->roles[role].count;
        if (role == ROLE_WORKER && job->elastic.enabled && least > 0 && least < pods)
            pods = least;
        sum += pods * job_role_devices(job, (enum role)role);
    }
    return sum;
}
