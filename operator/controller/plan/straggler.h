/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports a worker that is slower than the rest, as the job's chief finds (the condition Straggling), and replaces its pod if
 * spec.runPolicy.stragglerReplacement says so.
 *
 * A pod is replaced once the chief has reported its worker without a break for afterSeconds. The time before the crew was last
 * complete does not count, because the report was then about the worker's previous pod. Every required pod must be ready, so no pod is
 * replaced while another one is missing, and at most maxPerHour pods are replaced within an hour.
 *
 * status.controllerState.stragglerReplacements is the journal. The decision is written there first, together with a failure that
 * blames the pod's node (node_avoidance.h), so that the successor is placed elsewhere. Only a later plan that sees the entry deletes
 * the pod, and does so until the pod ends; a restarted operator continues there. The end counts as a disruption. Entries are kept
 * for an hour, which enforces maxPerHour.
 */
#ifndef COXSWAIN_CONTROLLER_STRAGGLER_H
#define COXSWAIN_CONTROLLER_STRAGGLER_H

#include "operator/controller/plan/planning.h"

/* Sets the condition Straggling from the chief's report, and drops old entries of the journal. */
void straggler_update(struct planning *planning);

#endif
