/* SPDX-License-Identifier: Apache-2.0
 *
 * The job's headless Service: it gives each current pod its name in the DNS,
 * ready or not.
 */
#ifndef COXSWAIN_CONTROLLER_SERVICE_BUILD_H
#define COXSWAIN_CONTROLLER_SERVICE_BUILD_H

#include "common/job/training_job.h"

/* Free with json_free. */
struct json *service_build(const struct training_job *job);

#endif
