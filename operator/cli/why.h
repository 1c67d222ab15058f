/* SPDX-License-Identifier: Apache-2.0
 *
 * Explains in one sentence what a job is waiting for, such as a pod, a quota or a person, for `cox why` and
 * `cox describe`. The caller has read the job, its pods and its events (job_evidence.h). Does no I/O.
 */
#ifndef COXSWAIN_CLI_WHY_H
#define COXSWAIN_CLI_WHY_H

#include "common/buffer.h"
#include "common/json.h"

#define WHY_MAX (16 * 1024)

/* `pods` and `events` are arrays: the job's pods, the events about them (events.k8s.io/v1). `sweep`: the TrainingSweep whose trial the job
 * is; NULL: the job is no trial, or its sweep could not be read. `pending`: Kueue's list of the Workloads that wait in the job's queue
 * (PendingWorkloadsSummary); NULL: the job waits in no queue, or the list could not be read. `kept`: its `cox run` on this machine has
 * ended. `again`: the command that continues a run that was interrupted; NULL: unknown. */
struct why_input {
    const struct json *job, *pods, *events, *sweep, *pending;
    bool kept;
    const char *again;
    int64_t now_ms;
};

/* Appends the sentence to `out`, without a newline. */
void why_print(const struct why_input *input, struct buffer *out);

/* Appends that sentence if it follows from the job alone: a queue or a class is not ready, or the pods cannot be created. Returns the
 * condition's reason, borrowed from the job; "": nothing was appended. */
const char *why_print_hold(const struct json *job, struct buffer *out);

#endif
