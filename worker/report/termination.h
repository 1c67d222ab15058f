/* SPDX-License-Identifier: Apache-2.0
 *
 * The last word of a worker: one line with cause and remedy, on stderr and in the
 * pod's termination message, which the operator quotes.
 */
#ifndef COXSWAIN_REPORT_TERMINATION_H
#define COXSWAIN_REPORT_TERMINATION_H

#include "common/contract/exit_code.h"
#include "common/error.h"

/* The kubelet keeps at most 4096 bytes of it. */
#define TERMINATION_MESSAGE_MAX 2048

/* "exit 65 (the training data is wrong or missing): <error's message>". */
void termination_report(enum exit_code code, const struct error *error);

#endif
