/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/graph_internal.h"

void graph_memory_plan(const struct graph *graph, unsigned optimizer_slots, struct memory_plan *ret_plan)
{
    int64_t flat = graph->layout.elements * (int64_t)sizeof(float);
    size_t example = example_input_bytes(&graph->format) + example_target_bytes(&graph->format);
    *ret_plan = (struct memory_plan){.bytes = {
                                         [MEMORY_PARAMETERS] = flat,
                                         [MEMORY_GRADIENTS] = graph->evaluation_only ? 0 : flat,
                                         [MEMORY_OPTIMIZER] = flat * optimizer_slots,
                                         [MEMORY_ACTIVATIONS] = graph->activation_bytes,
                                         [MEMORY_WORKSPACE] = graph->workspace_bytes,
                                         [MEMORY_INPUT] = graph->max_examples * (int64_t)example,
                                     }};
}

void memory_plan_print(const struct memory_plan *plan, struct buffer *text)
{
    static const char *const names[] = {
#define X(name, words) [MEMORY_##name] = words,
        MEMORY_PURPOSES(X)
#undef X
    };
    const char *before = "";
    for (int i = 0; i < MEMORY_PURPOSE_COUNT; i++) {
        double mebibytes = (double)plan->bytes[i] / 1048576;
        if (plan->bytes[i] == 0)
            continue;
        buffer_format(text, mebibytes < 10 ? "%s%s %.1f MiB" : "%s%s %.0f MiB", before, names[i], mebibytes);
        before = ", ";
    }
}

struct memory_plan *memory_plans_of(struct memory_plans *plans, const struct device *device)
{
    return device_memory_is_shared(device) ? &plans->host : &plans->device;
}

void memory_plan_add(struct memory_plan *plan, const struct memory_plan *more)
{
    for (int i = 0; i < MEMORY_PURPOSE_COUNT; i++)
        plan->bytes[i] += more->bytes[i];
}

int64_t memory_plan_bytes(const struct memory_plan *plan)
{
    int64_t bytes = 0;
    for (int i = 0; i < MEMORY_PURPOSE_COUNT; i++)
        bytes += plan->bytes[i];
    return bytes;
}
