/* SPDX-License-Identifier: Apache-2.0
 *
 * runPolicy.failurePolicy: what the user says that an end means, in place of what
 * its exit code or the API tell by themselves.
 */
#ifndef COXSWAIN_CONTROLLER_FAILURE_POLICY_H
#define COXSWAIN_CONTROLLER_FAILURE_POLICY_H

#include "operator/controller/plan/ending.h"

/* Changes `ending`, which is no success, as the first rule that matches the pod says; without one it stays. */
void failure_policy_apply(const struct failure_policy *policy, const struct pod_view *pod, struct ending *ending);

#endif
