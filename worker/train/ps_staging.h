/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies parameters and gradients between the host and a GPU that cannot access the host's memory,
 * for a worker of a ParameterServer job (ps_share.c). Parameters are copied to the GPU while the
 * examples are read. Gradients are copied back in buckets (consecutive ranges of the gradient
 * array), each as soon as the backward pass has completed it.
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
