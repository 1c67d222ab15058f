/* SPDX-License-Identifier: Apache-2.0
 *
 * Which fields a Pod has, as the types of core/v1 say: what is spelled otherwise is
 * dropped with a warning, or refused where the client asks for that, as a real API
 * server does it.
 */
#ifndef COXSWAIN_STANDALONE_POD_FIELDS_H
#define COXSWAIN_STANDALONE_POD_FIELDS_H

#include "common/json.h"

/* Removes fields that a Pod does not have. Each is named in `unknown`, an array of strings
 * ("spec.containers[0].imagePullPolcy"). */
void pod_fields_prune(struct json *pod, struct json *unknown);

#endif
