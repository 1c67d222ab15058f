/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the reports that the scripts of jobs with progress.push send (push_server.h) and keeps the newest in the job's entry, like what a
 * log says (log_reader.h). The next plan writes it to status.progress.
 *
 * Any pod of the present attempt may report: which process of a crew has rank 0 is the framework's affair. A pod of an earlier attempt, or
 * one that has a successor, is refused. Once a script has sent a report, its log is no longer read. An evaluator outlives the crew's
 * attempts, so it may report in each; only its metrics are kept, and they are no sign that the crew makes steps.
 *
 * A metric of a report without a step has the newest step that is known.
 *
 * A job may send PUSH_BURST reports at once, and one each PUSH_INTERVAL_MS. They are written to the status at the pace of progress_pace.h;
 * what is not written by then is written when the pod's end is.
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
    struct error words;    /* its message is a sentence for the sender; the kind is of no meaning */
};

/* Takes a report whose sender has the token of `path`. `job` NULL: there is no job of that name. Returns when the entry is to be planned;
 * PLAN_NEVER: nothing new was kept. */
int64_t push_intake_take(struct progress_pace *pace, struct job_entry *entry, const struct training_job *job,
                         const struct push_path *path, const char *body, size_t length, struct push_answer *ret_answer);

#endif
