/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree-structured Parzen estimator (Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization"), for one parameter by
 * itself. The trials with the lowest losses are the good ones: a tenth of those that have a loss, at most 25. Two estimators
 * (parzen.h) are made, of the values of the good trials and of all the others. Of 24 candidates drawn from the first, the one is
 * taken that is most likely with the first in proportion to the second.
 *
 * A trial without a loss, which runs or has failed, counts as one that is not good. So trials that run at the same time keep apart,
 * and what makes trials fail is avoided.
 */
#ifndef COXSWAIN_CONTROLLER_TPE_H
#define COXSWAIN_CONTROLLER_TPE_H

#include "operator/controller/sweep/parzen.h"

#define TPE_CANDIDATES 24
#define TPE_DRAWS (2 * TPE_CANDIDATES)

/* An earlier trial. */
struct tpe_trial {
    double value; /* of the parameter */
    double loss;  /* lower is better; INFINITY: it has none */
};

/* Returns a value of the space. `trials` are in the order of their numbers; `draws` are uniform in [0, 1). */
double tpe_suggest(const struct parzen_space *space, const struct tpe_trial *trials, size_t count,
                   const double draws[TPE_DRAWS]);

#endif
