/* SPDX-License-Identifier: Apache-2.0
 *
 * Hostile files of weights, with our tensor names and with those of Hugging Face's GPT-2: either all parameters are filled from tensors
 * inside the bytes, or there is an error and nothing has changed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/model/graph.h"
#include "worker/train/initial_weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As tests/fuzz/corpus/initial_weights has it. */
static const struct model_spec model = {
    .preset = PRESET_GPT2_124M, .width = 4, .depth = 1, .heads = 2, .context = 3, .vocabulary = 5};

static struct graph *graph;
static struct training_state state;
static float *fresh;

static void must(int result)
{
    if (result < 0)
        abort();
}

static void open_model(void)
{
    static const struct optimizer_spec optimizer = {.type = OPTIMIZER_SGD};
    struct device *device;
    must(device_open(&(struct device_options){.threads = 1}, &device, NULL));
    const struct graph_options options = {.device = device, .model = &model, .max_examples = 1, .layout_only = true};
    must(graph_new(&options, &graph, NULL));
    must(training_state_init(&state, device, graph_layout(graph), &optimizer, 1, NULL));
    fresh = malloc((size_t)state.layout.elements * sizeof *fresh);
    if (!fresh)
        abort();
    memcpy(fresh, state.host.parameters, (size_t)state.layout.elements * sizeof *fresh);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors_file file;
    struct error error = ERROR_INIT;
    if (!graph)
        open_model();
    if (safetensors_parse(data, size, &file, NULL) < 0)
        return 0;
    size_t bytes = (size_t)state.layout.elements * sizeof *fresh;
    if (initial_weights_load(&state, graph_layout(graph), &file, &error) == 0)
        memcpy(state.host.parameters, fresh, bytes);
    else if (error.message[0] == '\0' || memcmp(state.host.parameters, fresh, bytes) != 0)
        abort();
    safetensors_close(&file);
    return 0;
}
