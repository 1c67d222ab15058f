/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizers as a table: how many flat slots each keeps, their names, and the
 * launch that updates one contiguous range, so that a bucket can be updated as
 * soon as the caller may (never before every bucket of the step is reduced).
 *
 *   sgd    heavy ball as PyTorch has it (Polyak 1964; Sutskever et al. 2013):
 *          v = momentum v + (g + decay p), p -= rate v
 *   adamw  Loshchilov and Hutter 2019, decoupled decay, bias-corrected
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

/* Slots that `spec` needs: 0 for sgd without momentum, 1 with it, 2 for adamw. */
unsigned optimizer_slot_count(const struct optimizer_spec *spec);
/* Whether a gradient of 0 changes nothing, so that it need not be applied: sgd without momentum and decay. */
bool optimizer_rests(const struct optimizer_spec *spec);
const char *optimizer_slot_name(const struct optimizer_spec *spec, unsigned slot);

/* What of the range lies before `statistics` is running statistics, whose step is subtracted as it is. */
struct optimizer_range {
    int64_t offset, elements;
    int64_t statistics; /* parameter_layout.statistics */
    float *parameters;  /* bases of the flat arrays; offset is added here */
    float *slots[OPTIMIZER_SLOTS_MAX];
    const float *gradients;
    int64_t step;          /* the step being applied, from 1, without those that were skipped */
    double learning_rate;  /* of this step: schedule_rate */
    double gradient_scale; /* from gradient_clip_factor, 1 without clipping; by the scale of the loss */
    /* Device memory, or NULL: in place of the last three, with optimizer_factors of them; nothing changes where it refuses. */
    const struct step_values *values;
};
struct update_factors optimizer_factors(const struct optimizer_spec *spec, double learning_rate, int64_t step);
void optimizer_update(struct device_stream *stream, const struct optimizer_spec *spec,
                      const struct optimizer_range *range);

#endif
