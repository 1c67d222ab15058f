/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements --describe-model: prints the layers of a job's model as JSON (graph_describe.h). It needs no data, no storage and no weights.
 */
#ifndef COXSWAIN_INFERENCE_DESCRIBE_H
#define COXSWAIN_INFERENCE_DESCRIBE_H

#include "common/contract/exit_code.h"
#include "common/error.h"
#include "common/job/job_document.h"

/* On failure *ret_code is the process's exit code. */
int describe_run(const struct job_document *job, enum exit_code *ret_code, struct error *error);

#endif
