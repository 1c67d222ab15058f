/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills status.progress of a job that runs a user's script under PyTorch, JAX or TensorFlow, which
 * the operator cannot poll. While it runs, its log may be read instead (execute/log_reader.h), whose
 * report arrives like that of our own worker. When the chief (the pod that leads the job) has succeeded, its script's
 * report is read from the pod's termination message (common/contract/script_report.h). Only a pod
 * that succeeded counts: the termination message of one that failed may be the end of its log.
 */
#ifndef COXSWAIN_CONTROLLER_SCRIPT_PROGRESS_H
#define COXSWAIN_CONTROLLER_SCRIPT_PROGRESS_H

#include "operator/controller/plan/planning.h"

/* Updates the next status. An event says if the log cannot be read, or, when the job succeeds, if a part of the report cannot be used.
 * When the whole crew starts over, what an earlier attempt reported is forgotten. */
void script_progress_update(struct planning *planning);

#endif
