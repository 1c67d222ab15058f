/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/optimizer/optimizer.h"

#include <stddef.h>

static unsigned sgd_slots(const struct optimizer_spec *spec)
{
    return spec->momentum != 0 ? 1 : 0;
}

static unsigned adamw_slots(const struct optimizer_spec *spec)
{
    (void)spec;
    return 2;
}

static float *slot_at(const struct optimizer_range *range, unsigned slot)
{
    return range->slots[slot] ? range->slots[slot] + range->offset : NULL;
}

static void sgd_launch(struct device_stream *stream, const struct optimizer_spec *spec,
                       const struct optimizer_range *range)
{
    device_sgd_update(stream, &(struct sgd_update){
                                  .count = range->elements,
                                  .parameters = range->parameters + range->offset,
                                  .velocity = sgd_slots(spec) ? slot_at(range, 0) : NULL,
                                  .gradients = range->gradients + range->offset,
                                  .rate = (float)range->learning_rate,
                                  .momentum = (float)spec->momentum,
                                  .weight_decay = (float)spec->weight_decay,
                                  .gradient_scale = (float)range->gradient_scale,
                                  .values = range->values,
                              });
}

static struct update_factors sgd_factors(const struct optimizer_spec *spec, double learning_rate, int64_t step)
{
    (void)spec, (void)step;
    return (struct update_factors){.rate = (float)learning_rate};
}

static void adamw_launch(struct device_stream *stream, const struct optimizer_spec *spec,
                         const struct optimizer_range *range)
{
    device_adamw_update(stream, &(struct adamw_update){
                                    .count = range->elements,
                                    .parameters = range->parameters + range->offset,
                                    .m = slot_at(range, 0),
                                    .v = slot_at(range, 1),
                                    .gradients = range->gradients + range->offset,
                                    .rate = (float)range->learning_rate,
                                    .beta1 = (float)spec->beta1,
                                    .beta2 = (float)spec->beta2,
                                    .epsilon = (float)spec->epsilon,
                                    .weight_decay = (float)spec->weight_decay,
                                    .gradient_scale = (float)range->gradient_scale,
                                    .step = range->step,
                                    .values = range->values,
                                });
}

static struct update_factors adamw_factors_of(const struct optimizer_spec *spec, double learning_rate, int64_t step)
{
    return adamw_factors((float)learning_rate, (float)spec->beta1, (float)spec->beta2, (float)spec->weight_decay, step);
}

static const struct {
    unsigned (*slots)(const struct optimizer_spec *spec);
    const char *slot_names[OPTIMIZER_SLOTS_MAX];
    void (*launch)(struct device_stream *stream, const struct optimizer_spec *spec,
                   const struct optimizer_range *range);
    struct update_factors (*factors)(const struct optimizer_spec *spec, double learning_rate, int64_t step);
} optimizers[] = {
    [OPTIMIZER_SGD] = {sgd_slots, {"momentum"}, sgd_launch, sgd_factors},
    [OPTIMIZER_ADAMW] = {adamw_slots, {"adam.m", "adam.v"}, adamw_launch, adamw_factors_of},
};

unsigned optimizer_slot_count(const struct optimizer_spec *spec)
{
    return optimizers[spec->type].slots(spec);
}

struct update_factors optimizer_factors(const struct optimizer_spec *spec, double learning_rate, int64_t step)
{
    return optimizers[spec->type].factors(spec, learning_rate, step);
}

bool optimizer_rests(const struct optimizer_spec *spec)
{
    return spec->type == OPTIMIZER_SGD && spec->momentum == 0 && spec->weight_decay == 0;
}

const char *optimizer_slot_name(const struct optimizer_spec *spec, unsigned slot)
{
    return optimizers[spec->type].slot_names[slot];
}

void optimizer_update(struct device_stream *stream, const struct optimizer_spec *spec,
                      const struct optimizer_range *range)
{
    int64_t end = range->offset + range->elements, trained = range->offset;
    if (trained < range->statistics)
        trained = range->statistics < end ? range->statistics : end;
    int64_t statistics = trained - range->offset;
    if (statistics > 0)
        device_statistics_update(stream, &(struct statistics_update){statistics, range->parameters + range->offset,
                                                                     range->gradients + range->offset, range->values});
    struct optimizer_range rest = *range;
    rest.offset = trained;
    rest.elements = end - trained;
    if (rest.elements > 0)
        optimizers[spec->type].launch(stream, spec, &rest);
}
