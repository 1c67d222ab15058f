/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses, prints and adds Kubernetes resource quantities ("500m", "1.5Gi", "2e3"), as integers in
 * thousandths, and adds up what a scheduler reserves for a pod. gang.c computes the minResources of
 * a PodGroup with it. A quantity is rounded up to a thousandth; text that is no quantity is refused
 * when it is parsed, and left out of sums.
 */
#ifndef COXSWAIN_CONTROLLER_QUANTITY_H
#define COXSWAIN_CONTROLLER_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json.h"

/* Parses a quantity and rounds it up to a thousandth. Returns false if the text is not a quantity,
 * is negative, or exceeds nine quadrillion. */
bool quantity_parse(const char *text, int64_t *ret_thousandths);

#define QUANTITY_TEXT_MAX 32
/* Prints a quantity: "2", "1500m". */
void quantity_print(int64_t thousandths, char text[QUANTITY_TEXT_MAX]);

/* Adds `times` the quantities in `more`, such as {"cpu":"1"}, to those in `sum`. Ignores values
 * that are not quantities, and sums that overflow. */
void quantities_add(struct json *sum, const struct json *more, int64_t times);

/* Returns the resources that a scheduler reserves for a pod, as a new object; free with json_free.
 * For each resource this is the sum over the containers and sidecars (init containers that keep
 * running), or, if that is more, an init container and the sidecars before it. A missing request
 * defaults to the limit. The pod-level request replaces that sum, the pod-level limit is used if
 * neither the pod nor a container requests the resource, and the pod's overhead is added. */
struct json *quantities_of_pod(const struct json *spec);

#endif
