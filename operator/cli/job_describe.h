/* SPDX-License-Identifier: Apache-2.0
 *
 * Describes a job in full for `cox describe`: its spec, progress, conditions, pods and events. Does
 * no I/O.
 */
#ifndef COXSWAIN_CLI_JOB_DESCRIBE_H
#define COXSWAIN_CLI_JOB_DESCRIBE_H

#include "operator/cli/why.h"

#define DESCRIPTION_MAX (1024 * 1024)

/* Appends the description to `out`, up to its ceiling. */
void job_describe(const struct why_input *input, struct buffer *out);

#endif
