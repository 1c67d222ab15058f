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

struct look_input progress_look_of(const struct job_entry *entry, const struct training_job *job)
{
    const struct progress_look *look = &entry->look;
    struct pod_room room;
    struct pod_view chief;
    bool counts = look->pod && job_entry_find_pod(entry, job, crew_chief_role(job), &room, &chief) &&
                  strcmp(look->pod, chief.uid) == 0;
    if (!counts)
        return (struct look_input){.asked_ms = FIELD_UNSET, .since_ms = FIELD_UNSET};
    return (struct look_input){.asked_ms = look->asked_ms, .since_ms = look->since_ms, .found = look->found};
}
