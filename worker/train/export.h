/* SPDX-License-Identifier: Apache-2.0
 *
 * The trained parameters as one safetensors file, which appears whole or not at
 * all.
 */
#ifndef COXSWAIN_TRAIN_EXPORT_H
#define COXSWAIN_TRAIN_EXPORT_H

#include "common/error.h"
#include "worker/optimizer/training_state.h"

/* Creates missing directories; replaces an older file. */
int export_parameters(struct training_state *state, const char *path, struct error *error);

#endif
