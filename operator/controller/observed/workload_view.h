/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operator keeps of Kueue's objects: of a Workload whose it is, what its
 * conditions say and what its parts were given; of a ResourceFlavor where its pods
 * belong.
 */
#ifndef COXSWAIN_CONTROLLER_WORKLOAD_VIEW_H
#define COXSWAIN_CONTROLLER_WORKLOAD_VIEW_H

#include <stdbool.h>

#include "common/json.h"

/* One block; free with free(). Absent strings are "". */
struct workload_view {
    const char *uid, *owner_uid, *job_uid; /* whose it is (owner.h), and its label */
    const char *queue_name;
    const char *waiting;        /* why it is not admitted, in Kueue's words */
    const char *evicted_reason; /* "Preempted", … */
    const char *evicted_message;
    /* JSON, by part: {"worker":{"flavors":["spot"],"nodeSelector":{},"labels":{},"annotations":{},"tolerations":[]}} */
    const char *assignments;
    bool deleting, has_admission;
    bool reserved, admitted, evicted, finished; /* conditions that are True */
    bool pods_ready;                            /* PodsReady is True */
    const char *pods_ready_reason;              /* "WaitForStart", …; "": the Workload has no PodsReady yet */
};
struct workload_view *workload_view_new(const struct json *workload);

/* A ResourceFlavor as JSON text: {"nodeSelector":{},"tolerations":[]}; free with free(). */
char *flavor_view_new(const struct json *flavor);

#endif
