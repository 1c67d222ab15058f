/* SPDX-License-Identifier: Apache-2.0
 *
 * Population based training (Jaderberg et al. 2017, "Population based training of neural networks"), generation after generation. With a
 * population of P, trial t is member t % P of generation t / P. A generation starts when all trials of the one before are over. Each of
 * its trials goes on from the last checkpoint of one of these, its parent: as a rule the same member. The members that are the worst fifth
 * of those that succeeded, and those that failed, have one of the best fifth as their parent instead, and other values: each is multiplied
 * by 0.8 or 1.2, whichever its bounds leave, or moved to a neighbour in a list, or with a probability of a quarter drawn anew.
 *
 * All functions are pure: parent and values follow from the spec and the results of the generation before. The status records both before
 * the trial is created (sweep_plan.c).
 */
#ifndef COXSWAIN_CONTROLLER_POPULATION_H
#define COXSWAIN_CONTROLLER_POPULATION_H

#include "common/job/training_sweep.h"

bool population_is_used(const struct training_sweep *sweep);
/* Returns the generation of a trial, from 0. */
int64_t population_generation(const struct training_sweep *sweep, int64_t trial);
/* Returns whether a trial may start: all trials of the generation before are over. */
bool population_may_start(const struct training_sweep *sweep, const struct trial_record *results, int64_t trial);
/* Returns the trial from whose checkpoint a trial goes on; FIELD_UNSET: it is of the first generation, or none of the one before
 * succeeded. */
int64_t population_parent(const struct training_sweep *sweep, const struct trial_record *results, int64_t trial);
/* Returns the value of a parameter in a trial whose parent is recorded. Free with json_free. */
struct json *population_value(const struct training_sweep *sweep, unsigned parameter, int64_t trial);

#endif
