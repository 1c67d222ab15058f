/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads from a PodGroup the few fields that the plan of a job needs: its owner and its scheduling
 * state. A PodGroup is the object by which a gang scheduler starts the pods of a job together;
 * those of all supported schedulers are read (gang.h). The informer's cache keeps this view and not
 * the JSON.
 */
#ifndef COXSWAIN_CONTROLLER_GROUP_VIEW_H
#define COXSWAIN_CONTROLLER_GROUP_VIEW_H

#include <stdbool.h>

#include "common/json.h"

/* A single allocation; free with free(). Absent strings are "". */
struct group_view {
    const char *uid, *owner_uid, *job_uid; /* owner_uid: of its controller (owner.h); job_uid: from its label */
    const char *phase;                     /* Volcano and Coscheduling: "Pending", "Inqueue", … */
    const char *words;                     /* the scheduler's message why it is not scheduled */
    bool deleting;
};

struct group_view *group_view_new(const struct json *group);

#endif
