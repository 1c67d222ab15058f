/* SPDX-License-Identifier: Apache-2.0
 *
 * When a job has succeeded. In most frameworks its chief tells when training is
 * over; every process of PyTorch and JAX trains to the end by itself.
 *
 * In an elastic crew of these, workers.minReplicas of them must, the first included,
 * since it is where they meet. Once one has finished, training is over: who comes
 * later finds nobody to train with, and nobody is made, waited for or made good any
 * more, as long as enough of those that are at work may still finish. Where too few
 * are left, the crew starts over as a whole: those that have finished take in nobody.
 * A pod that was asked to end and has long outlasted its grace period is on a silent
 * node, and not at work.
 */
#ifndef COXSWAIN_CONTROLLER_FINISHING_H
#define COXSWAIN_CONTROLLER_FINISHING_H

#include "operator/controller/plan/planning.h"

/* It has ended well: the status knows, or its pod shows it. */
bool finishing_slot_done(const struct planning *planning, const struct slot *slot);

/* Every worker, and not the chief alone, has to end well. */
bool finishing_needs_workers(const struct training_job *job);

/* Of an elastic crew; FINISHING_NOT of all others. Whoever is to end is looked at again once he is late. */
enum finishing finishing_of(struct planning *planning);

/* When the chief has finished, for the time when its pod is gone; into the next status, once its attempt is known. */
void finishing_update(struct planning *planning);

/* Takes back the promises of workers that would come too late. */
void finishing_promise_nobody(struct planning *planning);

#endif
