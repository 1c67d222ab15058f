/* SPDX-License-Identifier: Apache-2.0
 *
 * Proposes a value of one parameter for a sweep's next trial, by the tree-structured Parzen
 * estimator (Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization"). Each parameter
 * is treated by itself.
 *
 * The trials with the lowest losses are the good ones: a tenth of the trials that have a loss,
 * rounded up, at most 25. One probability density (parzen.h) is estimated from the values of the
 * good trials, and another one from the values of all other trials. Of 24 candidates that are
 * drawn from the density of the good trials, the candidate with the highest ratio of the two
 * densities (good to others) is proposed.
 *
 * A parameter that is tried in some trials only, since it depends on the value of another one, is learned from
 * those trials: the densities know nothing of the others. Which trials are good is decided among all of them.
 *
 * A trial that was stopped early is not good, but counts as one of those of which some are good: with
 * ten times as many trials over as have succeeded, all that have succeeded may be good.
 *
 * A trial without a loss, because it still runs or has failed, counts as not good. So trials that
 * run at the same time tend to get different values, and values that make trials fail are avoided.
 */
#ifndef COXSWAIN_CONTROLLER_TPE_H
#define COXSWAIN_CONTROLLER_TPE_H

#include <stdbool.h>

#include "operator/controller/sweep/parzen.h"

#define TPE_CANDIDATES 24
#define TPE_DRAWS (2 * TPE_CANDIDATES)

/* An earlier trial. */
struct tpe_trial {
    double value; /* of the parameter; NAN: it was not tried in this trial, which counts as good or not all the same */
    double loss;  /* lower is better; INFINITY: it has none */
    bool stopped; /* it has none since it was stopped early: others were better */
};

/* Returns a value of the space. `trials` are in the order of their numbers; `draws` are uniform in [0, 1). */
double tpe_suggest(const struct parzen_space *space, const struct tpe_trial *trials, size_t count,
                   const double draws[TPE_DRAWS]);

#endif
