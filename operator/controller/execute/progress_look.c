/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/progress_look.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "operator/controller/plan/crew.h"

void progress_look_note(struct job_entry *entry, const char *pod_uid, int64_t asked_ms, bool found)
{
    struct progress_look *look = &entry->look;
    if (!look->pod || strcmp(look->pod, pod_uid) != 0) {
        free(look->pod);
        look->pod = memory_copy_string(pod_uid);
        look->since_ms = asked_ms;
    }
    look->asked_ms = asked_ms;
    look->found = found;
}

static struct look_input unknown(void)
{
    return (struct look_input){.asked_ms = FIELD_UNSET, .since_ms = FIELD_UNSET};
}

struct look_input progress_look_of(const struct job_entry *entry, const struct training_job *job)
{
    const struct progress_look *look = &entry->look;
    struct pod_room room;
    struct pod_view chief;
    bool counts = look->pod && job_entry_find_pod(entry, job, crew_chief_role(job), &room, &chief) &&
                  strcmp(look->pod, chief.uid) == 0;
    if (!counts)
        return unknown();
    return (struct look_input){.asked_ms = look->asked_ms, .since_ms = look->since_ms, .found = look->found};
}

static bool reads_log(const struct training_job *job)
{
    return job->document.progress.log_pattern_count > 0;
}

bool progress_look_is_pushed(const struct job_entry *entry, const struct training_job *job,
                             const struct push_endpoint *endpoint)
{
    return push_is_possible(job, endpoint) && (job_entry_has_sent(entry, job) || !reads_log(job));
}

/* An earlier operator wrote updatedAt; a new attempt begins without it. */
struct look_input progress_look_of_push(const struct job_entry *entry, const struct training_job *job, int64_t since_ms,
                                        int64_t now_ms)
{
    bool told = !reads_log(job) && job->status.progress.updated_at_ms != FIELD_UNSET;
    if (since_ms == FIELD_UNSET || (!job_entry_has_sent(entry, job) && !told))
        return unknown();
    return (struct look_input){.asked_ms = now_ms, .since_ms = since_ms};
}
