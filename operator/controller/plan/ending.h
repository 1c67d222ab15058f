/* SPDX-License-Identifier: Apache-2.0
 *
 * How a pod ended, and whose fault it was: the table of docs/operations.md, asked
 * in its order.
 */
#ifndef COXSWAIN_CONTROLLER_ENDING_H
#define COXSWAIN_CONTROLLER_ENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/job/training_job.h"
#include "operator/controller/observed/pod_view.h"

/* In the order of blame: of two ends at the same moment the earlier in this list is the cause. */
#define ENDINGS(X)                                                                                                     \
    X(ENDING_NONE, "") /* it lives */                                                                                  \
    X(ENDING_SUCCESS, "Succeeded")                                                                                     \
    X(ENDING_DISRUPTION, "PodDisrupted")    /* never spends backoffLimit */                                            \
    X(ENDING_OUT_OF_MEMORY, "OutOfMemory")  /* spends it, with a counter of its own */                                 \
    X(ENDING_FAILURE, "PodFailed")          /* spends it */                                                            \
    X(ENDING_IGNORED, "PodIgnored")         /* a rule of failurePolicy lets it off */                                  \
    X(ENDING_PERMANENT, "PermanentFailure") /* would fail again: the job ends */                                       \
    X(ENDING_COLLATERAL, "CrewLost")        /* of somebody else's end: counts only where none is seen and it repeats */
#define X(name, text) name,
enum ending_kind { ENDINGS(X) };
#undef X
/* CamelCase, for conditions and events. */
const char *ending_reason(enum ending_kind kind);

struct ending {
    enum ending_kind kind;
    int64_t at_ms;    /* when it happened, as far as the API says; else now */
    int64_t check_ms; /* ENDING_NONE: look again then; FIELD_UNSET: no need */
    unsigned rule;    /* of failurePolicy, from 1; 0: none matched */
    bool follows;     /* from a loss of the same crew that was counted before */
};

/* Of a pod that has ended. Of our own worker exit code 0 says so; many others exit with 0 when they are asked to end, too, or when
 * their node evicts them. */
bool ending_is_success(const struct pod_view *pod, enum framework framework);

/* `start_failure_ms`: how long its container may wait in vain to be started before that is permanent. */
struct ending ending_classify(const struct pod_view *pod, enum framework framework, int64_t start_failure_ms,
                              int64_t now_ms);

/* Appends a sentence that begins with the cause where the program named one: "images.gz is truncated (pod digits-worker-1-1, exit
 * code 65: the training data is wrong or missing)", else "pod digits-worker-1-1 exited with code 137 (signal 9, Killed)". */
void ending_describe(const struct pod_view *pod, enum ending_kind kind, enum framework framework, struct buffer *out);

#endif
