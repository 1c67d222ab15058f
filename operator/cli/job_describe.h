/* SPDX-License-Identifier: Apache-2.0
 *
 * All that is known of a job, for a person: what was asked for, where it stands,
 * its conditions, pods and events. Pure.
 */
#ifndef COXSWAIN_CLI_JOB_DESCRIBE_H
#define COXSWAIN_CLI_JOB_DESCRIBE_H

#include "operator/cli/why.h"

#define DESCRIPTION_MAX (1024 * 1024)

void job_describe(const struct why_input *input, struct buffer *out);

#endif
