/* SPDX-License-Identifier: Apache-2.0
 *
 * Says which fields and words were probably meant where an API server has refused unknown ones. Only then: a newer server may know fields that this
 * program does not.
 */
#ifndef COXSWAIN_CLI_UNKNOWN_FIELD_H
#define COXSWAIN_CLI_UNKNOWN_FIELD_H

#include <stdbool.h>

#include "common/error.h"

/* Adds the fields that are most like those in `unknown field "spec.workers.replica"` to the message, if it has such. After a value as in
 * `Unsupported value: "mirored": supported values: "OneDevice", "Mirrored"` it adds the one of these words that is most like it. */
void unknown_field_explain(bool is_sweep, struct error *error);

#endif
