/* SPDX-License-Identifier: Apache-2.0
 *
 * Records what a finished run of `cox demo` was made from, and decides whether its weights may be reused.
 * `cox demo --preempt` compares its weights with those of an undisturbed run, and repeats that run only if no
 * recorded one is equivalent. Two runs are equivalent if their manifest, data and coxswain-worker program
 * have the same SHA-256: training is deterministic, so equal inputs give weights that are equal bit for bit.
 * Weights that have changed since they were recorded are not reused.
 */
#ifndef COXSWAIN_CLI_EARLIER_RUN_H
#define COXSWAIN_CLI_EARLIER_RUN_H

#include <stdbool.h>

#include "common/error.h"

/* The inputs of a run. */
struct run_ingredients {
    const char *manifest; /* path */
    const char *data;     /* path of the file, or a digest of it */
};

/* Records in the state directory `state` the ingredients of the run that has just succeeded there,
 * and the path of its weights. */
int earlier_run_remember(const char *state, const struct run_ingredients *ingredients, const char *weights,
                         struct error *error);
/* Returns the path of the weights if the run recorded in `state` was made from the same
 * ingredients; free it with free(). Otherwise NULL. */
char *earlier_run_weights(const char *state, const struct run_ingredients *ingredients);

#endif
