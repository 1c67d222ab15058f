/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies optimizer updates to parameters in flat arrays, for strategies and parameter servers. The
 * optimizer's own values, such as a momentum, lie in arrays with one value per parameter, called
 * slots. A table of optimizers says how many slots each has, what they are called, and how to
 * launch the update of one contiguous range. Ranges are updated independently, so the gradient may
 * be applied bucket by bucket, but not before the whole gradient of the step is reduced.
 *
 *     sgd    heavy ball as PyTorch has it (Polyak 1964; Sutskever et al. 2013):
 *            v = momentum v + (g + decay p), p -= rate v
 *     adamw  Loshchilov and Hutter 2019, decoupled decay, bias-corrected
 *
 * All arithmetic is elementwise float32 in a fixed order.
 */
#ifndef COXSWAIN_OPTIMIZER_OPTIMIZER_H
#define COXSWAIN_OPTIMIZER_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/job/job_document.h"
#include "worker/device/device.h"

#define OPTIMIZER_SLOTS_MAX 2

/* Returns how many slots `spec` needs: 0 for sgd without momentum, 1 with momentum, 2 for adamw. */
unsigned optimizer_slot_count(const struct optimizer_spec *spec);
/* Returns whether an update with a zero gradient changes nothing and may be skipped: true for
 * sgd without momentum and weight decay. */
bool optimizer_rests(const struct optimizer_spec *spec);
const char *optimizer_slot_name(const struct optimizer_spec *spec, unsigned slot);

/* A range of the flat arrays to update. The elements before `statistics` are running statistics:
 * their gradient is subtracted unchanged. */
struct optimizer_range {
    int64_t offset, elements;
    int64_t statistics; /* parameter_layout.statistics */
    float *parameters;  /* bases of the flat arrays; offset is added here */
    float *slots[OPTIMIZER_SLOTS_MAX];
    const float *gradients;
    int64_t step;          /* number of the update, from 1; skipped steps do not count */
    double learning_rate;  /* of this step: schedule_rate */
    double gradient_scale; /* gradient_clip_factor (1 without clipping), divided by the loss scale */
    /* NULL, or device memory that replaces step, learning_rate (by optimizer_factors) and
     * gradient_scale. If it marks the step as skipped, the update changes nothing. */
    const struct step_values *values;
};
/* Returns what an update computes from the learning rate and the step's number, for step_values.factors. */
struct update_factors optimizer_factors(const struct optimizer_spec *spec, double learning_rate, int64_t step);
/* Enqueues the update of the range. `range` is read during the call, the arrays when the stream executes the update. */
void optimizer_update(struct device_stream *stream, const struct optimizer_spec *spec,
                      const struct optimizer_range *range);

#endif
