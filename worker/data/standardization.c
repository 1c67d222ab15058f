/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/standardization.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/crc32c.h"
#include "common/memory.h"

void standardization_init(struct standardization *standardization, int64_t inputs, int64_t targets)
{
    *standardization = (struct standardization){.inputs = inputs, .targets = targets};
    standardization->moments = memory_allocate((size_t)(inputs + targets), sizeof *standardization->moments);
}

void standardization_copy(struct standardization *standardization, const struct standardization *from)
{
    size_t count = (size_t)(from->inputs + from->targets);
    *standardization = *from;
    standardization->moments = memory_allocate(count, sizeof *from->moments);
    memcpy(standardization->moments, from->moments, count * sizeof *from->moments);
}

void standardization_release(struct standardization *standardization)
{
    free(standardization->moments);
    *standardization = (struct standardization){.inputs = 0};
}

/* Welford 1962: the mean so far, and squared distances from it. */
static void add(struct column_moments *moments, const float *values, int64_t count, double share)
{
    for (int64_t i = 0; i < count; i++) {
        double distance = (double)values[i] - moments[i].mean;
        moments[i].mean += distance * share;
        moments[i].squares += distance * ((double)values[i] - moments[i].mean);
    }
}

void standardization_add(struct standardization *standardization, const float *inputs, const float *targets)
{
    double share = 1 / (double)++standardization->examples;
    size_t input_bytes = (size_t)standardization->inputs * sizeof *inputs;
    size_t target_bytes = (size_t)standardization->targets * sizeof *targets;
    standardization->digest = crc32c(crc32c(standardization->digest, inputs, input_bytes), targets, target_bytes);
    add(standardization->moments, inputs, standardization->inputs, share);
    add(standardization->moments + standardization->inputs, targets, standardization->targets, share);
}

void standardization_finish(struct standardization *standardization)
{
    for (int64_t i = 0; i < standardization->inputs + standardization->targets; i++) {
        double deviation = sqrt(standardization->moments[i].squares / (double)standardization->examples);
        standardization->moments[i].deviation = deviation > 0 ? deviation : 1;
    }
}

static void apply(const struct column_moments *moments, float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(((double)values[i] - moments[i].mean) / moments[i].deviation);
}

void standardization_apply(const struct standardization *standardization, float *inputs, float *targets)
{
    apply(standardization->moments, inputs, standardization->inputs);
    apply(standardization->moments + standardization->inputs, targets, standardization->targets);
}

void standardization_restore(const struct standardization *standardization, float *targets)
{
    const struct column_moments *moments = standardization->moments + standardization->inputs;
    for (int64_t i = 0; i < standardization->targets; i++)
        targets[i] = (float)((double)targets[i] * moments[i].deviation + moments[i].mean);
}
