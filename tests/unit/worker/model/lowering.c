/* SPDX-License-Identifier: Apache-2.0
 *
 * Without a plugin: whether the functions are well formed. tests/programs/test_layers.sh compiles and runs them.
 */
#include "worker/model/lowering.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"
#include "tests/unit/sanitized.h"
#include "worker/model/program.h"

static struct graph *open_graph(const struct model_spec *model, struct device **ret_device)
{
    struct graph *graph = NULL;
    struct error error = ERROR_INIT;
    cr_assert_eq(device_open(&(struct device_options){.type = DEVICE_TYPE_CPU, .threads = 1}, ret_device, NULL), 0);
    const struct graph_options options = {
        .device = *ret_device, .model = model, .max_examples = 4, .layout_only = true};
    cr_assert_eq(graph_new(&options, &graph, &error), 0, "%s", error.message);
    return graph;
}

static struct model_spec preset(enum preset name)
{
    return (struct model_spec){.preset = name,
                               .width = FIELD_UNSET,
                               .depth = FIELD_UNSET,
                               .heads = FIELD_UNSET,
                               .context = FIELD_UNSET,
                               .dropout = 0.1};
}

/* Checks that each line defines the next value, from values before it. Returns how many there are. */
static unsigned check_order(const char *text, unsigned arguments)
{
    unsigned last = arguments;
    const char *line = strstr(text, "{\n%v") + 2;
    for (; strncmp(line, "return", 6) != 0; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n'), *name = line;
        if (*line == '%' && line[1] == 'v')
            cr_assert_eq(strtoul(line + 2, NULL, 10), ++last, "%.80s", line);
        while ((name = strstr(name + 1, "%v")) != NULL && name < end)
            cr_assert(strtoul(name + 2, NULL, 10) < last, "%.80s", line);
    }
    return last;
}

static unsigned count(const char *text, const char *end, const char *word)
{
    unsigned number = 0;
    for (; (text = strstr(text, word)) != NULL && text < end; text++)
        number++;
    return number;
}

static void check_functions(const struct graph *graph, enum precision precision)
{
    unsigned tensors = graph_layout(graph)->tensor_count;
    for (int evaluation = 0; evaluation <= 1; evaluation++) {
        SCOPED_BUFFER text;
        struct error error = ERROR_INIT;
        buffer_init(&text, 64 << 20);
        cr_assert_eq(lowering_write(graph, precision, 4, evaluation, &text, &error), 0, "%s", error.message);
        const char *head = strstr(buffer_text(&text), "@main("), *arrow = strstr(head, ") -> (");
        unsigned arguments = count(head, arrow, "%v");
        cr_expect_eq(arguments, tensors + (evaluation ? 3 : 4), "parameters, input, target, weight and seed");
        cr_expect_eq(count(arrow, strstr(arrow, "{\n"), "tensor<"), evaluation ? 2 : 2 + tensors);
        cr_expect(check_order(buffer_text(&text), arguments) > 10 + arguments);
        cr_expect_null(strstr(buffer_text(&text), "tensor<0x"), "no dimension is empty");
        cr_expect_null(strstr(buffer_text(&text), "tensor<-"), "nor negative");
        cr_expect_eq(strstr(buffer_text(&text), "reduce_precision") != NULL, precision == PRECISION_BFLOAT16);
    }
}

Test(lowering, presets_become_functions)
{
    SKIP_ONE_THREAD();
    static const enum preset names[] = {PRESET_MLP,      PRESET_LENET,     PRESET_RESNET20,
                                        PRESET_RESNET50, PRESET_GPT_BYTES, PRESET_GPT2_124M};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct device *device;
        struct model_spec model = preset(names[i]);
        struct graph *graph = open_graph(&model, &device);
        check_functions(graph, PRECISION_FLOAT32);
        check_functions(graph, PRECISION_BFLOAT16);
        graph_free(graph);
        device_close(device);
    }
}

Test(lowering, the_program_has_the_layout_of_the_graph)
{
    struct device *device;
    struct model_spec model = preset(PRESET_RESNET20);
    struct graph *graph = open_graph(&model, &device);
    struct program *program = NULL;
    cr_assert_eq(program_from_layers(graph, PRECISION_FLOAT32, 4, PROGRAM_TRAINS | PROGRAM_EVALUATES, &program, NULL),
                 0);
    cr_expect(program_is_of_layers(program));
    cr_expect_eq(program_batch(program), 4);
    cr_expect_eq(parameter_layout_digest(program_layout(program)), parameter_layout_digest(graph_layout(graph)));
    cr_expect_eq(program_layout(program)->statistics, 1376, "the running statistics of its batch norms");
    cr_expect_eq(program_example_format(program)->classes, 10);
    cr_expect_null(program_weights(program));
    program_free(program);
    graph_free(graph);
    device_close(device);
}

Test(lowering, refuses_float16)
{
    struct device *device;
    struct model_spec model = preset(PRESET_MLP);
    struct graph *graph = open_graph(&model, &device);
    struct error error = ERROR_INIT;
    struct program *program;
    cr_expect_eq(program_from_layers(graph, PRECISION_FLOAT16, 4, PROGRAM_EVALUATES, &program, &error), -1);
    cr_expect_eq(error.kind, ERROR_UNSUPPORTED);
    cr_expect(strstr(error.message, "Float16 is for GPUs") != NULL, "%s", error.message);
    graph_free(graph);
    device_close(device);
}
