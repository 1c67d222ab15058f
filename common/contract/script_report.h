/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the results that a training script of another framework (PyTorch, JAX, TensorFlow) reports when it ends. The report is a JSON
 * object, the last line of its container's termination message. The operator copies it into the job's status.progress.
 *
 *   {"metrics":{"validationLoss":0.31,"bleu":27.4},"step":3000,"epoch":2}
 *
 * Each of these three members may be left out; other members are ignored. The text is untrusted: what cannot be used is left out, an error
 * says what that is, and the rest of the report is used. That holds for metrics that are NaN or infinite, too: Python's json writes them,
 * though they are not JSON.
 */
#ifndef COXSWAIN_CONTRACT_SCRIPT_REPORT_H
#define COXSWAIN_CONTRACT_SCRIPT_REPORT_H

#include "common/contract/status_document.h"

/* The API server's limit for termination messages. */
#define SCRIPT_REPORT_MAX 4096

/* Reads the report of an untrusted termination message. If the last line does not begin with "{" but the message does, the whole message
 * is the report. What cannot be used is left out: `ret_flaw` says what, and its kind is ERROR_NONE if there is nothing of the kind. A
 * message without a report, such as other text, reports nothing and has no flaw. */
void script_report_read(const char *message, struct status_document *ret_report, struct error *ret_flaw);

#endif
