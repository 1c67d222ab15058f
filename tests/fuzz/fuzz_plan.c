/* SPDX-License-Identifier: Apache-2.0
 *
 * A job and one of its pods as an API server might return them ({"job":…,"pod":…}): the plan must follow the rules that need no history.
 */
#include <stdint.h>
#include <stdlib.h>

#include "operator/controller/objects/pod_build.h"
#include "operator/controller/observed/pod_record.h"
#include "operator/controller/plan/plan_job.h"

#define INPUT_MAX (64 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void plan_once(const struct training_job *job, const struct pod_view *pod, const char *invalid,
                      int64_t behind_since_ms)
{
    SCOPED(plan_release) struct plan plan = {0};
    struct plan_input input = {
        .job = job,
        .invalid = invalid,
        .pods = &pod,
        .pod_count = 1,
        .memory.counts_since_ms = FIELD_UNSET,
        .memory.certificate = {.number = FIELD_UNSET},
        .memory.behind_since_ms = behind_since_ms,
        .queue = {.replaced_since_ms = FIELD_UNSET},
        .now_ms = 1700000000000,
        .options = &plan_options_default,
    };
    plan_job(&input, &plan);
    for (size_t i = 0; i < plan.action_count; i++)
        if (plan.actions[i].type == ACTION_CREATE_POD && status_terminal(&job->status))
            abort();
}

static void build_once(const struct training_job *job)
{
    struct json *pod = NULL;
    SCOPED(pod_builder_release) struct pod_builder builder = {0};
    if (pod_builder_init(&builder, job, &plan_options_default.pods, NULL) == 0 &&
        pod_build(&builder, ROLE_WORKER, 0, &pod, NULL) == 0)
        json_free(pod);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    SCOPED_JSON *root = NULL;
    struct error error = ERROR_INIT;
    if (json_parse((const char *)bytes, length, INPUT_MAX, &root, &error) < 0)
        return 0;
    struct training_job job;
    bool valid = training_job_parse(json_member(root, "job"), &job, &error) == 0;
    SCOPED_FREE struct pod_record *record = pod_record_read(json_member(root, "pod"));
    struct pod_room room;
    struct pod_view pod = pod_record_view(record, &room);
    plan_once(&job, &pod, valid ? NULL : error.message, FIELD_UNSET);
    plan_once(&job, &pod, valid ? NULL : error.message, 0);
    if (valid)
        build_once(&job);
    training_job_release(&job);
    return 0;
}
