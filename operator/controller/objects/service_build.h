/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the job's headless Service, which gives each current pod a DNS name, ready or not. A pod
 * is current while it has the label `current`, which the operator removes when another pod takes
 * its place. The Service exists before the job's first pod.
 */
#ifndef COXSWAIN_CONTROLLER_SERVICE_BUILD_H
#define COXSWAIN_CONTROLLER_SERVICE_BUILD_H

#include "common/job/training_job.h"

/* Returns the Service; free with json_free. */
struct json *service_build(const struct training_job *job);

#endif
