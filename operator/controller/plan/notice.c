/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/plan/notice.h"

#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"

#define BODY_MAX 16384

static void set_time(struct json *object, const char *name, int64_t ms)
{
    char text[CLOCK_TEXT_MAX];
    if (ms == FIELD_UNSET)
        return;
    clock_format_seconds(ms, text);
    json_set_string(object, name, text);
}

static void set_number(struct json *object, const char *name, int64_t number)
{
    if (number != FIELD_UNSET)
        json_set_integer(object, name, number);
}

static struct json *data_of(const struct planning *planning, const struct condition *condition)
{
    const struct job_status *next = planning->next;
    struct json *data = json_new_object();
    json_set_string(data, "namespace", planning->job->namespace);
    json_set_string(data, "name", planning->job->name);
    json_set_string(data, "uid", planning->job->uid);
    json_set_string(data, "reason", condition->reason);
    json_set_integer(data, "attempt", next->attempt);
    struct json *restarts = json_set_object(data, "restarts");
    json_set_integer(restarts, "total", next->restart_count);
    json_set_integer(restarts, "failures", next->restarts.failures);
    json_set_integer(restarts, "disruptions", next->restarts.disruptions);
    json_set_integer(restarts, "outOfMemory", next->restarts.out_of_memory);
    json_set_integer(restarts, "ignored", next->restarts.ignored);
    set_time(data, "startTime", next->start_ms);
    set_time(data, "completionTime", next->completion_ms);
    set_number(data, "step", next->progress.step);
    set_number(data, "totalSteps", next->progress.total_steps);
    return data;
}

/* In the structured mode of CloudEvents 1.0: the attributes are in the body, too. */
static struct notice notice_of(struct planning *planning, enum condition_type type, const char *word, const char *id,
                               int64_t until_ms)
{
    const struct training_job *job = planning->job;
    const struct condition *condition = &planning->next->conditions[type];
    SCOPED_JSON *event = json_new_object();
    json_set_string(event, "specversion", "1.0");
    json_set_string(event, "id", id);
    json_set_string(event, "source",
                    planning_format(planning, "/apis/" API_GROUP_VERSION "/namespaces/%s/" TRAINING_JOB_PLURAL "/%s",
                                    job->namespace, job->name));
    json_set_string(event, "type", planning_format(planning, "dev.coxswain.trainingjob.%s", word));
    json_set_string(event, "subject", planning_format(planning, "%s/%s", job->namespace, job->name));
    set_time(event, "time", condition->last_transition_ms);
    json_set_string(event, "datacontenttype", "application/json");
    json_set(event, "data", data_of(planning, condition));
    SCOPED_BUFFER body = BUFFER_INIT(BODY_MAX);
    if (json_print(event, &body, NULL) < 0)
        return (struct notice){0};
    return (struct notice){.id = id, .body = planning_format(planning, "%s", buffer_text(&body)), .until_ms = until_ms};
}

static void set_end_notice(struct planning *planning, int64_t since_ms)
{
    bool failed = condition_is(planning->next, CONDITION_FAILED, CONDITION_TRUE);
    const char *word = failed ? "failed" : "succeeded";
    planning->plan->end_notice =
        notice_of(planning, failed ? CONDITION_FAILED : CONDITION_SUCCEEDED, word,
                  planning_format(planning, "%s.%s", planning->job->uid, word), since_ms + NOTICE_END_MS);
}

static void set_restart_notice(struct planning *planning)
{
    const char *id =
        planning_format(planning, "%s.restarting.%" PRId64, planning->job->uid, planning->next->restart_count);
    planning->plan->restart_notice =
        notice_of(planning, CONDITION_RESTARTING, "restarting", id, planning->now_ms + NOTICE_RESTART_MS);
}

bool notice_is_about_end(const char *id, const char *uid)
{
    size_t length = strlen(uid);
    return strncmp(id, uid, length) == 0 &&
           (strcmp(id + length, ".succeeded") == 0 || strcmp(id + length, ".failed") == 0);
}

bool notice_is_pending(const struct planning *planning)
{
    return planning->old->notice_since_ms != FIELD_UNSET && planning->input->options->notifies &&
           planning->input->memory.notice == NOTICE_OPEN;
}

void notice_update(struct planning *planning)
{
    const struct job_status *old = planning->old;
    struct job_status *next = planning->next;
    bool is_new = status_terminal(next) && !status_terminal(old);
    if (!planning->input->options->notifies) {
        next->notice_since_ms = FIELD_UNSET;
    } else if (is_new) {
        next->notice_since_ms = planning->now_ms;
    } else if (notice_is_pending(planning)) {
        set_end_notice(planning, old->notice_since_ms);
    } else if (old->notice_since_ms != FIELD_UNSET) {
        next->notice_since_ms = FIELD_UNSET;
        if (planning->input->memory.notice == NOTICE_FAILED)
            planning_event(planning, true, "NotificationFailed", "Notify",
                           "the notification about the job's end could not be delivered to the operator's sink; "
                           "the operator's log says why");
    }
    if (planning->input->options->notifies && !status_terminal(next) && next->restart_count > old->restart_count)
        set_restart_notice(planning);
}
