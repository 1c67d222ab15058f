/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether what an earlier run left can stand for a new one: the same job
 * document, the same data and the same worker give the same weights, bit for bit.
 */
#ifndef COXSWAIN_CLI_EARLIER_RUN_H
#define COXSWAIN_CLI_EARLIER_RUN_H

#include <stdbool.h>

#include "common/error.h"

/* The inputs of a run. */
struct run_ingredients {
    const char *manifest; /* file */
    const char *data;     /* file, or a digest that pins it */
};

/* Keeps in `state` what the run that has just succeeded there was made from, and where its weights
 * are. */
int earlier_run_remember(const char *state, const struct run_ingredients *ingredients, const char *weights,
                         struct error *error);
/* Returns the path of the weights if the run recorded in `state` was made from the same
 * ingredients; free it with free(). Otherwise NULL. */
char *earlier_run_weights(const char *state, const struct run_ingredients *ingredients);

#endif
