/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies runPolicy.failurePolicy: the user's rules for what the end of a pod means, which override
 * the classification by exit code and API.
 */
#ifndef COXSWAIN_CONTROLLER_FAILURE_POLICY_H
#define COXSWAIN_CONTROLLER_FAILURE_POLICY_H

#include "operator/controller/plan/ending.h"

/* Changes `ending`, which is not a success, by the first rule that matches the pod; no rule: leaves
 * it as it is. */
void failure_policy_apply(const struct failure_policy *policy, const struct pod_view *pod, struct ending *ending);

#endif
