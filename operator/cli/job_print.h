/* SPDX-License-Identifier: Apache-2.0
 *
 * A TrainingJob as YAML for people who will change it: above each field of its spec stands what the table of fields says of it,
 * of a word what it says of that word.
 */
#ifndef COXSWAIN_CLI_JOB_PRINT_H
#define COXSWAIN_CLI_JOB_PRINT_H

#include "common/json.h"

/* Appends to `out`, as far as its ceiling allows. */
void job_print(const struct json *job, struct buffer *out);

#endif
