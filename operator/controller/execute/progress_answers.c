/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/progress_answers.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "operator/controller/objects/crew_roles.h"
#include "operator/controller/plan/crew.h"

void progress_answers_note(struct job_entry *entry, const char *pod_uid, int64_t asked_ms, bool found)
{
    struct progress_answers *answers = &entry->answers;
    if (!answers->pod || strcmp(answers->pod, pod_uid) != 0) {
        free(answers->pod);
        answers->pod = memory_copy_string(pod_uid);
        answers->newest.since_ms = asked_ms;
    }
    answers->newest.asked_ms = asked_ms;
    answers->newest.found = found;
}

static struct answers_input unknown(void)
{
    return (struct answers_input){.asked_ms = FIELD_UNSET, .since_ms = FIELD_UNSET};
}

struct answers_input progress_answers_of(const struct job_entry *entry, const struct training_job *job)
{
    const struct progress_answers *answers = &entry->answers;
    struct pod_room room;
    struct pod_view chief;
    bool counts = answers->pod && job_entry_find_pod(entry, job, crew_chief_role(job), &room, &chief) &&
                  strcmp(answers->pod, chief.uid) == 0;
    return counts ? answers->newest : unknown();
}

static bool reads_log(const struct training_job *job)
{
    return job->document.progress.log_pattern_count > 0;
}

bool progress_answers_is_pushed(const struct job_entry *entry, const struct training_job *job,
                                const struct push_endpoint *endpoint)
{
    return push_is_possible(job, endpoint) && (job_entry_has_sent(entry, job) || !reads_log(job));
}

/* An earlier operator wrote updatedAt; a new attempt begins without it. */
struct answers_input progress_answers_of_push(const struct job_entry *entry, const struct training_job *job,
                                              int64_t since_ms, int64_t now_ms)
{
    bool told = !reads_log(job) && job->status.progress.updated_at_ms != FIELD_UNSET;
    if (since_ms == FIELD_UNSET || (!job_entry_has_sent(entry, job) && !told))
        return unknown();
    return (struct answers_input){.asked_ms = now_ms, .since_ms = since_ms};
}
