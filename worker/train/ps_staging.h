/* SPDX-License-Identifier: Apache-2.0
 *
 * Values and gradients of a parameter server's worker whose device does not see
 * the host's memory: values go to the device while the examples are read,
 * gradients come back bucket by bucket while the backward pass goes on.
 */
#ifndef COXSWAIN_TRAIN_PS_STAGING_H
#define COXSWAIN_TRAIN_PS_STAGING_H

#include "worker/device/device.h"
#include "worker/model/graph.h"

struct ps_staging;

/* Pins the host's two arrays, which outlive it. */
int ps_staging_new(struct device *device, const struct graph *graph, float *host_values, float *host_gradients,
                   struct ps_staging **ret_staging, struct error *error);
void ps_staging_free(struct ps_staging *staging);

/* On the device. */
float *ps_staging_values(struct ps_staging *staging);
float *ps_staging_gradients(struct ps_staging *staging);

/* The host's values to the device, in the stream's order. */
void ps_staging_bring(struct ps_staging *staging, struct device_stream *stream);
/* Gradients to the host, behind the pass that is under way and the last to add to them. */
void ps_staging_take(struct ps_staging *staging);
/* Until they are there. */
int ps_staging_wait(struct ps_staging *staging, struct error *error);

#endif
