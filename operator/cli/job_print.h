/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints a TrainingJob as YAML for people to edit. A comment above each field of its spec gives the
 * field's description from the table of fields; for an enum, only what it says of the value.
 */
#ifndef COXSWAIN_CLI_JOB_PRINT_H
#define COXSWAIN_CLI_JOB_PRINT_H

#include "common/json.h"

/* Appends the YAML to `out`, up to its ceiling. */
void job_print(const struct json *job, struct buffer *out);

#endif
