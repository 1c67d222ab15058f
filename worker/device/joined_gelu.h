/* SPDX-License-Identifier: Apache-2.0
 *
 * A dense layer and a GELU beside it that one product makes (device_finishes_products),
 * where nothing is rounded between the two: apart they have other bits, whoever cuts
 * a model.
 */
#ifndef COXSWAIN_DEVICE_JOINED_GELU_H
#define COXSWAIN_DEVICE_JOINED_GELU_H

#include "worker/device/device.h"

/* Whether products of this device may do so where values lie as `stored` says. */
bool device_joins_gelus(const struct device *device, enum stored stored);

#endif
