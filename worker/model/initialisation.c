/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "common/philox.h"
#include "worker/model/graph.h"

/* (0, 1]: 32 random bits, never 0, so that the logarithm is finite. */
static double unit(uint32_t word)
{
    return ((double)word + 1.0) / 4294967296.0;
}

/* A standard normal number for (seed, tensor, element): Box and Muller 1958 on two words of a Philox block. */
static double normal(uint64_t seed, uint64_t tensor, uint64_t element)
{
    struct philox_words words = philox(seed, element / 2, tensor);
    double radius = sqrt(-2.0 * log(unit(words.word[0]))), angle = 6.283185307179586 * unit(words.word[1]);
    return radius * (element % 2 ? sin(angle) : cos(angle));
}

static float start_value(const struct parameter_tensor *tensor, uint64_t seed, int64_t element)
{
    switch (tensor->start) {
    case START_ONE:
        return 1.0f;
    case START_NORMAL:
        return (float)((double)tensor->deviation * normal(seed, tensor->number, (uint64_t)element));
    case START_ZERO:
        break;
    }
    return 0.0f;
}

void graph_initialise(const struct parameter_layout *layout, uint64_t seed, float *parameters)
{
    for (unsigned t = 0; t < layout->tensor_count; t++) {
        const struct parameter_tensor *tensor = &layout->tensors[t];
        int64_t skipped = tensor->shape[0] > 0 ? tensor->first_row * (tensor->elements / tensor->shape[0]) : 0;
        for (int64_t i = 0; i < tensor->elements; i++)
            parameters[tensor->offset + i] = start_value(tensor, seed, skipped + i);
    }
}
