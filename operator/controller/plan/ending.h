/* SPDX-License-Identifier: Apache-2.0
 *
 * Classifies how a pod ended and what caused it: success, disruption, out of memory, a failure that
 * may be tried again, a permanent one, or a consequence of another pod's end. judge.c decides from
 * the kind whether the job goes on and which counter rises. The rules are the table in
 * docs/operations.md, in the order of its rows. Most exit codes have a meaning of their own only if
 * the project's own worker exits with them.
 */
#ifndef COXSWAIN_CONTROLLER_ENDING_H
#define COXSWAIN_CONTROLLER_ENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/job/training_job.h"
#include "operator/controller/observed/pod_view.h"

/* If two pods ended at the same moment, the one with the kind that comes first in this list is the cause. */
#define ENDINGS(X)                                                                                                     \
    X(ENDING_NONE, "") /* the pod has not ended */                                                                     \
    X(ENDING_SUCCESS, "Succeeded")                                                                                     \
    X(ENDING_DISRUPTION, "PodDisrupted")    /* does not count against backoffLimit */                                  \
    X(ENDING_OUT_OF_MEMORY, "OutOfMemory")  /* counts against backoffLimit, in a counter of its own */                 \
    X(ENDING_FAILURE, "PodFailed")          /* counts against backoffLimit */                                          \
    X(ENDING_IGNORED, "PodIgnored")         /* does not count, because a rule of failurePolicy says so */              \
    X(ENDING_PERMANENT, "PermanentFailure") /* would fail again: the job fails */                                      \
    X(ENDING_COLLATERAL, "CrewLost")        /* follows from another pod's end; counts if none is seen and it recurs */
#define X(name, text) name,
enum ending_kind { ENDINGS(X) };
#undef X
/* Returns the kind's name in CamelCase, for conditions and events. */
const char *ending_reason(enum ending_kind kind);

struct ending {
    enum ending_kind kind;
    int64_t at_ms;    /* when it ended; the present time if the API does not say */
    int64_t check_ms; /* ENDING_NONE: when to check again; FIELD_UNSET: no need */
    unsigned rule;    /* number, from 1, of the failurePolicy rule that matched; 0: none */
    bool follows;     /* it is a consequence of another pod's end that was counted before */
};

/* Returns whether a pod that has ended succeeded. For our own worker exit code 0 is enough. Many
 * other programs also exit with 0 on SIGTERM, so that their pods must not have been deleted or
 * evicted before. */
bool ending_is_success(const struct pod_view *pod, enum framework framework);

/* Returns whether an init container of ours ended because object storage, or a server of downloads, refused its credentials.
 * ending_classify calls that permanent, unless the pod was disrupted. */
bool ending_is_refusal(const struct pod_view *pod);

/* Returns whether our worker ended because its loss became infinite or not a number. ending_classify calls that permanent, unless the pod
 * was disrupted. */
bool ending_is_divergence(const struct pod_view *pod, enum framework framework);

/* Classifies a pod's end; a pod that is being deleted counts as disrupted. `start_failure_ms`: how long its container may fail to start
 * before that is permanent. Leaves `rule` (failure_policy.h) and `follows` (judge.c) unset. */
struct ending ending_classify(const struct pod_view *pod, enum framework framework, int64_t start_failure_ms,
                              int64_t now_ms);

/* Appends a sentence about the end. It begins with the cause if the program reported one:
 * "images.gz is truncated (pod digits-worker-1-1, exit code 65: the training data is wrong or
 * missing)", else "pod digits-worker-1-1 exited with code 137 (signal 9, Killed)". */
void ending_describe(const struct pod_view *pod, enum ending_kind kind, enum framework framework, struct buffer *out);

#endif
