/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the exit code with which a worker ends after an error. The code tells the operator
 * whether to retry (common/contract/exit_code.h).
 */
#ifndef COXSWAIN_TRAIN_ERROR_EXIT_CODE_H
#define COXSWAIN_TRAIN_ERROR_EXIT_CODE_H

#include "common/contract/exit_code.h"
#include "common/error.h"

/* Returns the exit code for `error`: that of its kind or, if the kind has none or a less precise
 * one, `otherwise`, the caller's code for what it was doing. */
enum exit_code error_exit_code(const struct error *error, enum exit_code otherwise);

#endif
