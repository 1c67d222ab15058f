/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the exit code with which a worker ends after an error. The code tells the operator
 * whether to retry (common/contract/exit_code.h).
 */
#ifndef COXSWAIN_TRAIN_ERROR_EXIT_CODE_H
#define COXSWAIN_TRAIN_ERROR_EXIT_CODE_H

#include "common/contract/exit_code.h"
#include "common/error.h"

/* Returns the exit code for the kind of `error`. `otherwise` is the exit code for what the caller was
 * doing; it is returned if the kind has no exit code, or if `otherwise` says more precisely what failed. */
enum exit_code error_exit_code(const struct error *error, enum exit_code otherwise);

#endif
