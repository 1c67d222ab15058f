/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the exit code with which a worker ends after an error. The code tells the operator
 * whether to retry (common/contract/exit_code.h).
 */
#ifndef COXSWAIN_TRAIN_ERROR_EXIT_CODE_H
#define COXSWAIN_TRAIN_ERROR_EXIT_CODE_H

#include "common/contract/exit_code.h"
#include "common/error.h"

/* Returns the exit code for `error`. Kinds of errors with an exit code of their own determine it;
 * for all others it is `code`. */
enum exit_code error_exit_code(const struct error *error, enum exit_code code);

#endif
