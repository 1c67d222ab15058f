/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats everything that is known about a job as the text of `cox describe`: its spec, progress, conditions,
 * pods and events. The caller has read these objects already (job_evidence.h). Does no I/O.
 */
#ifndef COXSWAIN_CLI_JOB_DESCRIBE_H
#define COXSWAIN_CLI_JOB_DESCRIBE_H

#include "operator/cli/why.h"

#define DESCRIPTION_MAX (1024 * 1024)

/* Appends the description to `out`, up to its ceiling. */
void job_describe(const struct why_input *input, struct buffer *out);

#endif
