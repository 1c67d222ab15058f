/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies spec.runPolicy.failurePolicy, the user's rules for what the end of a pod means. judge.c
 * calls it after ending_classify for each end that is no success. The first rule that matches the
 * pod's exit code or condition overrides the kind of the ending; if no rule matches, the kind stays
 * as it was.
 */
#ifndef COXSWAIN_CONTROLLER_FAILURE_POLICY_H
#define COXSWAIN_CONTROLLER_FAILURE_POLICY_H

#include "operator/controller/plan/ending.h"

/* Changes `ending`, which is not a success, by the first rule that matches the pod; no rule: leaves
 * it as it is. An exit code of 0 matches no rule, nor does that of a pod that was deleted before it
 * ended, unless it was evicted or preempted. */
void failure_policy_apply(const struct failure_policy *policy, const struct pod_view *pod, struct ending *ending);

#endif
