/* SPDX-License-Identifier: Apache-2.0
 *
 * The last word of a worker, in the pod's termination message. One that failed
 * leaves a line with cause and remedy, also on stderr, which the operator quotes; one
 * that is done its status document, which the operator reads: it may have asked long
 * before.
 */
#ifndef COXSWAIN_REPORT_TERMINATION_H
#define COXSWAIN_REPORT_TERMINATION_H

#include <stddef.h>

#include "common/contract/exit_code.h"
#include "common/error.h"

/* The kubelet keeps at most 4096 bytes of it. */
#define TERMINATION_MESSAGE_MAX 2048
#define TERMINATION_STATUS_MAX 4096

/* A status document as text; one that is too long is not left. */
void termination_leave_status(const char *text, size_t length);

/* "exit 65 (the training data is wrong or missing): <error's message>". */
void termination_report(enum exit_code code, const struct error *error);

/* The same line on stderr alone: of who uses a model beside the container's own process, whose message it would overwrite. */
void termination_tell(enum exit_code code, const struct error *error);

#endif
