/* SPDX-License-Identifier: Apache-2.0
 *
 * The exit code that an error ends the process with.
 */
#ifndef COXSWAIN_TRAIN_ERROR_EXIT_CODE_H
#define COXSWAIN_TRAIN_ERROR_EXIT_CODE_H

#include "common/contract/exit_code.h"
#include "common/error.h"

/* For an error where plain bad input means `code`: kinds that say more win. */
enum exit_code error_exit_code(const struct error *error, enum exit_code code);

#endif
