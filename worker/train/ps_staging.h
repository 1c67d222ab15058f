/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies values and gradients between the host and a device that cannot access the host's memory,
 * for a parameter-server worker. Values are copied to the device while the examples are read;
 * gradients are copied back bucket by bucket while the backward pass continues.
 */
#ifndef COXSWAIN_TRAIN_PS_STAGING_H
#define COXSWAIN_TRAIN_PS_STAGING_H

#include "worker/device/device.h"
#include "worker/model/graph.h"

struct ps_staging;

/* Allocates the device's arrays and pins the host's two, which must outlive it. */
int ps_staging_new(struct device *device, const struct graph *graph, float *host_values, float *host_gradients,
                   struct ps_staging **ret_staging, struct error *error);
void ps_staging_free(struct ps_staging *staging);

/* Return the arrays on the device. */
float *ps_staging_values(struct ps_staging *staging);
float *ps_staging_gradients(struct ps_staging *staging);

/* Copies the host's values to the device, in the order of `stream`. */
void ps_staging_bring(struct ps_staging *staging, struct device_stream *stream);
/* Copies each bucket of gradients to the host as soon as the pass in progress, the last that adds
 * to them, has completed it. */
void ps_staging_take(struct ps_staging *staging);
/* Waits until the gradients are on the host. */
int ps_staging_wait(struct ps_staging *staging, struct error *error);

#endif
