/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/job_condition.h"

#include <string.h>

#include "common/contract/exit_code.h"
#include "common/contract/labels.h"
#include "common/job/enum_words.h"
#include "common/memory.h"

const struct json *job_condition(const struct json *job, const char *type)
{
    const struct json *conditions = json_at(job, "status.conditions");
    for (const struct json *item = json_first(conditions); item; item = json_next(item))
        if (strcmp(json_string_at(item, "type", ""), type) == 0)
            return item;
    return NULL;
}

bool job_condition_true(const struct json *job, const char *type)
{
    return strcmp(json_string_at(job_condition(job, type), "status", ""), "True") == 0;
}

const char *job_state(const struct json *job)
{
    const struct json *conditions = json_at(job, "status.conditions"), *suspended = job_condition(job, "Suspended");
    if (strcmp(json_string_at(suspended, "reason", ""), "Suspending") == 0)
        return "Suspending";
    for (const struct json *item = json_first(conditions); item; item = json_next(item))
        if (strcmp(json_string_at(item, "status", ""), "True") == 0)
            return json_string_at(item, "type", "");
    return json_count(conditions) > 0 ? "Pending" : "";
}

const char *job_state_shown(const struct json *job)
{
    const char *state = job_state(job);
    bool diverged = strcmp(state, "Failed") == 0 &&
                    strcmp(json_string_at(job_condition(job, "Failed"), "reason", ""), REASON_DIVERGED) == 0;
    return diverged ? sweep_trial_state_words[TRIAL_DIVERGED] : state;
}

static bool is_suspended_trial(const struct json *job)
{
    return json_member(json_at(job, "metadata.labels"), LABEL_TRIAL) && json_boolean_at(job, "spec.suspend", false);
}

void job_mark_interrupted(struct json *object, const char *again)
{
    struct json *status = json_member(object, "status"), *trials = json_member(status, "trials");
    if (job_is_over(object) || is_suspended_trial(object) || !status)
        return;
    struct json *conditions = json_new_array();
    bool suspended = json_boolean_at(object, "spec.suspend", false);
    struct json *own = json_append(conditions, json_new_object());
    if (suspended) { /* job_state names the first condition */
        json_set_string(own, "type", "Suspended");
        json_set_string(own, "status", "True");
        json_set_string(own, "reason", "Suspended");
        json_set_string(own, "message", "a user has suspended it");
        own = json_append(conditions, json_new_object());
    }
    json_set_string(own, "type", JOB_INTERRUPTED);
    json_set_string(own, "status", "True");
    json_set_string(own, "reason", "NothingRunsIt");
    SCOPED_FREE char *message = again ? memory_format("its cox run has ended; to continue: %s", again) : NULL;
    json_set_string(own, "message",
                    message ? message : "its cox run has ended; run the same command again to continue");
    for (const struct json *item = json_first(json_member(status, "conditions")); item; item = json_next(item))
        if (strcmp(json_string_at(item, "type", ""), "Running") != 0 &&
            !(suspended && strcmp(json_string_at(item, "type", ""), "Suspended") == 0))
            json_append(conditions, json_copy(item));
    json_set(status, "conditions", conditions);
    if (trials)
        json_set_integer(trials, "running", 0);
    else
        json_set_string(status, "readySummary", "0");
}

bool job_has_news(const struct json *job)
{
    int64_t observed = json_integer_at(job, "status.observedGeneration", 0);
    return observed > 0 && json_integer_at(job, "metadata.generation", 0) > observed;
}

bool job_is_over(const struct json *job)
{
    return !job || job_condition_true(job, "Failed") || job_condition_true(job, "Succeeded") ||
           job_condition_true(job, "Complete");
}
