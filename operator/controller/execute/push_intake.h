/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the reports that the scripts of jobs with progress.push send (push_server.h) and keeps the newest in the job's entry, like what a
 * log says (log_reader.h). The next plan writes it to status.progress.
 *
 * Any pod of the present attempt may report, because the operator does not know which of them has the framework's rank 0. A pod of an
 * earlier attempt, or one that has been replaced, is refused. Once a script has sent a report, its log is no longer read. An evaluator is
 * not restarted with the crew, so it may report in every attempt; only its metrics are kept, and they do not show that the crew makes
 * steps.
 *
 * A metric of a report without a step has the newest step that is known.
 *
 * A job may send PUSH_BURST reports at once, and then one every PUSH_INTERVAL_MS. They are written to the status at the pace of
 * progress_pace.h; a report that has not been written when the pod ends is written together with that end.
 */
#ifndef COXSWAIN_CONTROLLER_PUSH_INTAKE_H
#define COXSWAIN_CONTROLLER_PUSH_INTAKE_H

#include "operator/controller/execute/job_entry.h"
#include "operator/controller/execute/progress_pace.h"
#include "operator/controller/objects/progress_push.h"

#define PUSH_BURST 10
#define PUSH_INTERVAL_MS 1000

/* The HTTP answer to a report. */
struct push_answer {
    int status;            /* 200, 400, 404, 409, 413, 429, 503 */
    int64_t retry_after_s; /* 0: none */
    struct error words;    /* only its message is used: a sentence for the sender */
};

/* Handles a report whose sender has proved with its token that it is the pod of `path`. `job` NULL: there is no job of that name. Returns
 * the time at which the entry is to be planned; PLAN_NEVER if the report was not kept. */
int64_t push_intake_take(struct progress_pace *pace, struct job_entry *entry, const struct training_job *job,
                         const struct push_path *path, const char *body, size_t length, struct push_answer *ret_answer);

#endif
