/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operator keeps of a PodGroup, whichever scheduler's: whose it is, and
 * how far it has come.
 */
#ifndef COXSWAIN_CONTROLLER_GROUP_VIEW_H
#define COXSWAIN_CONTROLLER_GROUP_VIEW_H

#include <stdbool.h>

#include "common/json.h"

/* One block; free with free(). Absent strings are "". */
struct group_view {
    const char *uid, *owner_uid, *job_uid; /* whose it is (owner.h), and its label */
    const char *phase;                     /* Volcano and Coscheduling: "Pending", "Inqueue", … */
    const char *words;                     /* why it is not placed, as its scheduler says */
    bool deleting;
};

struct group_view *group_view_new(const struct json *group);

#endif
