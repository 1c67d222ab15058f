/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks before a sweep starts that its trials will report the metric of its objective: without it every trial would train to its end and
 * count as failed.
 */
#ifndef COXSWAIN_CLI_SWEEP_METRIC_H
#define COXSWAIN_CLI_SWEEP_METRIC_H

#include "common/json.h"

/* `sweep`: with the defaults of its class, if they are known. ERROR_INVALID names the metric that was probably meant, or what the template
 * lacks. Scripts of other frameworks report metrics of any name: returns 0. */
int sweep_metric_check(const struct json *sweep, struct error *error);

#endif
