/* SPDX-License-Identifier: Apache-2.0
 *
 * Suggests the fields and words that were probably meant when an API server has refused unknown ones. Nothing is suggested before, because a
 * newer server may know fields that this program does not.
 */
#ifndef COXSWAIN_CLI_UNKNOWN_FIELD_H
#define COXSWAIN_CLI_UNKNOWN_FIELD_H

#include <stdbool.h>

#include "common/error.h"

/* Adds suggestions to the server's message: for `unknown field "spec.workers.replica"` the most similar field, and for
 * `Unsupported value: "mirored": supported values: "OneDevice", "Mirrored"` the most similar of the supported values. */
void unknown_field_explain(bool is_sweep, struct error *error);

#endif
