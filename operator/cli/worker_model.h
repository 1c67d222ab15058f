/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks coxswain-worker for the layers of a job's model, for the page of `cox ui`: only the worker knows what a preset consists of. Runs
 * coxswain-worker --describe-model as a child process.
 */
#ifndef COXSWAIN_CLI_WORKER_MODEL_H
#define COXSWAIN_CLI_WORKER_MODEL_H

#include "common/buffer.h"
#include "common/json.h"

/* Appends the worker's JSON to `out`. Waits for the worker, at most 10 s. ERROR_NOT_FOUND: coxswain-worker is not there; ERROR_INVALID: it
 * refuses the model, or the job has none of layers; the message is for the user. */
int worker_model_describe(const struct json *job, struct buffer *out, struct error *error);

#endif
