/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the pod's termination message when a worker ends. A worker that has failed writes one
 * line with the cause and the remedy, which the operator quotes, and prints the same line to
 * stderr. A worker that has finished writes its final status document, because the operator's last
 * request for the status may have come before the end.
 */
#ifndef COXSWAIN_REPORT_TERMINATION_H
#define COXSWAIN_REPORT_TERMINATION_H

#include <stddef.h>

#include "common/contract/exit_code.h"
#include "common/error.h"

/* The kubelet keeps at most 4096 bytes of the message. */
#define TERMINATION_MESSAGE_MAX 2048
#define TERMINATION_STATUS_MAX 4096

/* Writes a status document as the termination message. Writes nothing if it is longer than
 * TERMINATION_STATUS_MAX. */
void termination_leave_status(const char *text, size_t length);

/* Writes the termination message, also to stderr, in the form "exit 65 (the training data is
 * wrong or missing): <error's message>". */
void termination_report(enum exit_code code, const struct error *error);

/* Writes the same line to stderr only. For a process that runs beside the container's main
 * process, whose termination message must not be overwritten. */
void termination_tell(enum exit_code code, const struct error *error);

#endif
