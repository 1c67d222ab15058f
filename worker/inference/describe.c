/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/describe.h"

#include <stdio.h>

#include "worker/model/graph_describe.h"

#define DESCRIPTION_MAX (16 * 1024 * 1024)

static int print_model(const struct graph *graph, struct error *error)
{
    SCOPED_JSON *model = graph_describe(graph);
    SCOPED_BUFFER text = BUFFER_INIT(DESCRIPTION_MAX);
    if (json_print(model, &text, error) < 0)
        return -1;
    puts(buffer_text(&text));
    return 0;
}

int describe_run(const struct job_document *job, enum exit_code *ret_code, struct error *error)
{
    const struct device_options cpu = {.type = DEVICE_TYPE_CPU, .threads = 1};
    struct device *device;
    struct graph *graph;
    *ret_code = EXIT_CODE_BAD_JOB;
    if (job->model.program_path != NULL)
        return error_set(error, ERROR_UNSUPPORTED, "--describe-model: a program has no layers that could be listed");
    if (device_open(&cpu, &device, error) < 0)
        return -1;
    const struct graph_options options = {
        .device = device, .model = &job->model, .precision = PRECISION_FLOAT32, .max_examples = 1, .layout_only = true};
    int result = graph_new(&options, &graph, error);
    if (result == 0) {
        result = print_model(graph, error);
        graph_free(graph);
    }
    device_close(device);
    return result;
}
