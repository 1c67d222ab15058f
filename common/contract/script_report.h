/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the results that a training script of another framework (PyTorch, JAX, TensorFlow) reports when it ends. The report is a JSON
 * object, the last line of its container's termination message. The operator copies it into the job's status.progress.
 *
 *   {"metrics":{"validationLoss":0.31,"bleu":27.4},"step":3000,"epoch":2}
 *
 * Each of these three members may be left out; other members are ignored. The text is untrusted: values that cannot be used are left out
 * and named in an error, and the rest of the report is used. Metrics that are NaN or infinite are left out in the same way; Python's json
 * module writes them although they are not JSON.
 */
#ifndef COXSWAIN_CONTRACT_SCRIPT_REPORT_H
#define COXSWAIN_CONTRACT_SCRIPT_REPORT_H

#include "common/contract/status_document.h"

/* The API server's limit for termination messages. */
#define SCRIPT_REPORT_MAX 4096

/* Reads the report from an untrusted termination message. If the last line does not begin with "{" but the message does, the whole message
 * is the report. Values that cannot be used are left out; `ret_flaw` then names them, otherwise its kind is ERROR_NONE. A message without a
 * report gives an empty report, and is no error. */
void script_report_read(const char *message, struct status_document *ret_report, struct error *ret_flaw);

#endif
