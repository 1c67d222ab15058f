/* SPDX-License-Identifier: Apache-2.0
 *
 * Amounts of resources as Kubernetes writes them ("500m", "1.5Gi", "2e3"), kept in
 * thousandths, and sums of them by resource.
 */
#ifndef COXSWAIN_CONTROLLER_QUANTITY_H
#define COXSWAIN_CONTROLLER_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json.h"

/* Rounded up to a thousandth; false for what is none, is negative or is beyond nine quadrillion. */
bool quantity_parse(const char *text, int64_t *ret_thousandths);

#define QUANTITY_TEXT_MAX 32
/* "2", "1500m". */
void quantity_print(int64_t thousandths, char text[QUANTITY_TEXT_MAX]);

/* Adds `times` the amounts of `more` ({"cpu":"1"}) to those of `sum`; what is no amount is left out. */
void quantities_add(struct json *sum, const struct json *more, int64_t times);

/* What a scheduler sets aside for a pod: the sum over its containers and sidecars (init containers that run on), or an init
 * container and the sidecars before it where that is more; limits stand for requests that are not given. What the pod
 * requests as a whole takes the place of that, its limit stands where nobody requests, and its overhead comes on top. A new object; free with json_free. */
struct json *quantities_of_pod(const struct json *spec);

#endif
