/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the TrainingJob or TrainingSweep of `cox generate` as YAML for people to edit. A comment above each field of its spec
 * gives the field's description from the table of fields (common/job/fields.h); for an enum, only the
 * description of the chosen value.
 */
#ifndef COXSWAIN_CLI_JOB_PRINT_H
#define COXSWAIN_CLI_JOB_PRINT_H

#include "common/json.h"

/* Appends the YAML to `out`, whose ceiling must be high enough: text that does not fit is left out, and nothing reports it. */
void job_print(const struct json *job, struct buffer *out);

#endif
