/* SPDX-License-Identifier: Apache-2.0
 *
 * Documents of programs: what they say, and what is refused. Programs are run by tests/programs/check.
 */
#include "worker/model/program.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/scope.h"

#define GOOD                                                                                                           \
    "{\"format\":\"coxswain-program/1\",\"batch\":4,"                                                                  \
    "\"parameters\":[{\"name\":\"kernel\",\"shape\":[6,3]},{\"name\":\"scale\",\"shape\":[]}],"                        \
    "\"state\":[{\"name\":\"mean\",\"shape\":[3]}],"                                                                   \
    "\"input\":{\"type\":\"float32\",\"shape\":[2,3,1]},\"target\":{\"type\":\"int32\",\"shape\":[],\"classes\":3},"   \
    "\"entries\":{\"predict\":{\"output\":{\"type\":\"float32\",\"shape\":[3],\"scores\":\"logits\"}}},\"weights\":"   \
    "\"w.safetensors\"}"

Test(program, a_document_gives_layout_and_format)
{
    struct program *program;
    struct error error = ERROR_INIT;
    cr_assert_eq(program_parse(GOOD, strlen(GOOD), &program, &error), 0, "%s", error.message);
    const struct parameter_layout *layout = program_layout(program);
    cr_expect_eq(layout->elements, 3 + 18 + 1);
    cr_expect_eq(layout->statistics, 3);
    cr_assert_eq(layout->tensor_count, 3);
    cr_expect_str_eq(layout->tensors[0].name, "mean");
    cr_expect_str_eq(layout->tensors[1].name, "kernel");
    cr_expect_eq(layout->tensors[1].offset, 3);
    cr_expect_eq(layout->tensors[2].elements, 1);
    const struct example_format *format = program_example_format(program);
    cr_expect_eq(format->input_elements, 6);
    cr_expect_eq(format->input_count, 1);
    cr_expect_str_eq(format->inputs[0].name, "input");
    cr_expect_eq(format->image[1], 3);
    cr_expect_eq(format->input_shape.rank, 3);
    cr_expect_eq(format->input_shape.dims[0], 2);
    cr_expect_eq(format->input_shape.dims[2], 1);
    cr_expect_eq(format->target_shape.rank, 0);
    cr_expect_eq(format->target_elements, 1);
    cr_expect_eq(format->classes, 3);
    cr_expect_eq(program_batch(program), 4);
    cr_expect_str_eq(program_weights(program), "w.safetensors");
    const struct output_format *output = program_output_format(program);
    cr_assert_not_null(output);
    cr_expect_eq(output->elements, 3);
    cr_expect_eq(output->rank, 1);
    cr_expect_eq(output->meaning, OUTPUT_LOGITS);
    program_free(program);
}

#define SEVERAL                                                                                                        \
    "{\"format\":\"coxswain-program/2\",\"batch\":4,\"parameters\":[{\"name\":\"kernel\",\"shape\":[6,3]}],"           \
    "\"inputs\":[{\"name\":\"ids\",\"type\":\"int32\",\"shape\":[8],\"vocabulary\":100},"                              \
    "{\"name\":\"price\",\"type\":\"float32\",\"shape\":[2,3]},{\"name\":\"kind\",\"type\":\"int32\",\"shape\":[]}],"  \
    "\"target\":{\"type\":\"float32\",\"shape\":[2]}}"

Test(program, a_document_may_have_several_inputs)
{
    struct program *program;
    struct error error = ERROR_INIT;
    cr_assert_eq(program_parse(SEVERAL, strlen(SEVERAL), &program, &error), 0, "%s", error.message);
    const struct example_format *format = program_example_format(program);
    cr_assert_eq(format->input_count, 3);
    cr_expect_eq(format->input_elements, 8 + 6 + 1);
    cr_expect_eq(example_input_bytes(format), 4 * (8 + 6 + 1));
    cr_expect_str_eq(format->inputs[0].name, "ids");
    cr_expect(format->inputs[0].type == ELEMENT_INT32 && format->inputs[0].vocabulary == 100);
    cr_expect(format->inputs[1].type == ELEMENT_FLOAT32 && format->inputs[1].vocabulary == 0);
    cr_expect(format->inputs[1].shape.rank == 2 && format->inputs[1].shape.dims[1] == 3);
    cr_expect(format->inputs[2].elements == 1 && format->inputs[2].shape.rank == 0);
    cr_expect(format->image[0] == 0 && format->input_shape.rank == 0);
    program_free(program);
}

/* Each replaces words of a good document, and is refused with words of the message. */
struct lie {
    const char *from, *to, *message;
};
static const struct lie lies_of_several[] = {
    {"program/2", "program/1", "input.type: must be float32 or int32"},
    {"\"inputs\":[", "\"inputs\":7,\"others\":[", "inputs: must be a list of 1 to 16 inputs"},
    {"\"inputs\":[", "\"inputs\":[],\"others\":[", "inputs: must be a list of 1 to 16 inputs"},
    {"\"inputs\":[", "\"inputs\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,", "inputs: must be a list of 1 to 16 inputs"},
    {"\"inputs\":[", "\"inputs\":[7,", "inputs[0].name: must be at most 63 letters"},
    {"\"price\"", "\"\"", "inputs[1].name: must be at most 63 letters"},
    {"\"price\"", "\"a price\"", "inputs[1].name: must be at most 63 letters"},
    {"\"price\"", "\"../price\"", "inputs[1].name: must be at most 63 letters"},
    {"\"price\"", "\"p123456789012345678901234567890123456789012345678901234567890123\"",
     "inputs[1].name: must be at most 63 letters"},
    {"\"price\"", "\"ids\"", "inputs: two are called ids"},
    {"float32", "float64", "inputs[1].type: must be float32 or int32"},
    {"[2,3]", "[2,0]", "inputs[1].shape: must be positive sizes"},
    {"[2,3]", "[536870913]", "inputs[1].shape: must be small enough"},
    {"[2,3]", "[536870912]", "inputs: must be small enough"},
    {"\"shape\":[2]}", "\"shape\":[2],\"ignored\":-100}", "target.ignored: must be the value of int32 targets"},
    {":100", ":0", "inputs[0].vocabulary: must be the number of values"},
    {":100", ":4294967296", "inputs[0].vocabulary: must be the number of values"},
    {":100", ":\"100\"", "inputs[0].vocabulary: must be the number of values"},
    {"[2,3]", "[2,3],\"vocabulary\":6", "inputs[1].vocabulary: must be the number of values"},
};
static const struct lie lies[] = {
    {"program/1", "program/2", "inputs: must be a list of 1 to 16 inputs"},
    {"program/1", "program/3", "format: must be \"coxswain-program/1\" or \"coxswain-program/2\""},
    {"\"batch\":4", "\"batch\":0", "batch: must be from 1 to 65536"},
    {"\"batch\":4", "\"batch\":65537", "batch: must be from 1 to 65536"},
    {"\"batch\":4", "\"batch\":\"4\"", "batch: must be from 1 to 65536"},
    {"\"parameters\":[", "\"parameters\":7,\"others\":[", "parameters: must be a list"},
    {"[6,3]", "[6,-3]", "parameters[0].shape: must be positive sizes"},
    {"[6,3]", "[6,0]", "parameters[0].shape: must be positive sizes"},
    {"[6,3]", "[65536,65536]", "parameters[0].shape: must be positive sizes"},
    {"[6,3]", "[1,1,1,1,1]", "parameters[0].shape: must be a list of at most 4 sizes"},
    {"[6,3]", "6", "parameters[0].shape: must be a list"},
    {"\"shape\":[3]}]", "\"shape\":[0]}]", "state[0].shape: must be positive sizes"},
    {"\"kernel\"", "\"\"", "parameters: each needs a name"},
    {"\"kernel\"", "\"mean\"", "two tensors are called mean"},
    {"float32", "float64", "input.type: must be float32 or int32"},
    {"[2,3,1]", "[2,3,1,1,1,1,1,1]", "input.shape: must be a list of at most 7 sizes"},
    {"[2,3,1]", "[2147483647]", "input.shape: must be small enough"},
    {"\"classes\":3", "\"classes\":0", "target.classes: must be the number of classes"},
    {"\"classes\":3", "\"classes\":3,\"ignored\":2147483648", "target.ignored: must be the value of int32 targets"},
    {"\"classes\":3", "\"classes\":3,\"ignored\":\"-100\"", "target.ignored: must be the value of int32 targets"},
    {"\"entries\":{", "\"entries\":", "program.json: "},
    {"\"type\":\"float32\",\"shape\":[3],", "\"type\":\"bool\",\"shape\":[3],",
     "entries.predict.output.type: must be float32 or int32"},
    {"[3],\"scores", "[0],\"scores", "entries.predict.output.shape: must be positive sizes"},
    {"[3],\"scores", "[2147483647],\"scores", "entries.predict.output.shape: must be small enough"},
    {"\"logits\"", "\"odds\"", "entries.predict.output.scores: must be \"logits\" or \"probabilities\""},
    {"\"logits\"", "1", "entries.predict.output.scores: must be \"logits\" or \"probabilities\""},
    {"[3],\"scores", "[2],\"scores", "entries.predict.output.scores: must be left out, unless"},
    {"[3],\"scores", "[1,3],\"scores", "entries.predict.output.scores: must be left out, unless"},
    {"\"type\":\"int32\",\"shape\":[],", "\"type\":\"int32\",\"shape\":[2],",
     "entries.predict.output.scores: must be left out, unless"},
};

Test(program, a_start_is_weights_or_a_function_that_computes_them)
{
    static const struct {
        const char *from, *to;
        bool starts;
    } changes[] = {
        {"", "", true},
        {"\"weights\"", "\"others\"", false},
        {"\"weights\"", "\"initialise\"", false},
        {"\"entries\":{", "\"entries\":{\"initialise\":{\"file\":\"i\"},", true},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct program *program;
        struct error error = ERROR_INIT;
        char text[2048];
        const char *place = strstr(GOOD, changes[i].from);
        cr_assert_not_null(place);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(place - GOOD), GOOD, changes[i].to,
                 place + strlen(changes[i].from));
        if (i == 3) /* not the weights */
            memcpy(strstr(text, "weights"), "nothing", 7);
        cr_assert_eq(program_parse(text, strlen(text), &program, &error), 0, "%s", error.message);
        cr_expect_eq(program_has_start(program), changes[i].starts, "%s", changes[i].to);
        program_free(program);
    }
}

Test(program, a_document_without_predict_has_no_output)
{
    struct program *program;
    struct error error = ERROR_INIT;
    SCOPED_BUFFER text = BUFFER_INIT(4096);
    buffer_format(&text, "%s", GOOD);
    memcpy(strstr(text.data, "predict"), "foresee", 7);
    cr_assert_eq(program_parse(buffer_text(&text), text.length, &program, &error), 0, "%s", error.message);
    cr_expect_null(program_output_format(program));
    program_free(program);
}

static void refuse(const char *good, const struct lie *lie)
{
    char text[2048];
    struct program *program;
    struct error error = ERROR_INIT;
    const char *place = strstr(good, lie->from);
    cr_assert_not_null(place, "%s", lie->from);
    int length = snprintf(text, sizeof text, "%.*s%s%s", (int)(place - good), good, lie->to, place + strlen(lie->from));
    cr_expect(program_parse(text, (size_t)length, &program, &error) < 0, "%s", lie->to);
    cr_expect_not_null(strstr(error.message, lie->message), "%s: %s", lie->to, error.message);
}

Test(program, a_wrong_document_is_refused_with_the_member_that_is_wrong)
{
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        refuse(GOOD, &lies[i]);
    for (size_t i = 0; i < sizeof lies_of_several / sizeof lies_of_several[0]; i++)
        refuse(SEVERAL, &lies_of_several[i]);
}

Test(program, a_folder_without_a_document_is_refused_by_its_path)
{
    struct program *program;
    struct error error = ERROR_INIT;
    cr_expect(program_open("/nonexistent", PROGRAM_USES_ALL, "cpu", &program, &error) < 0);
    cr_expect_not_null(strstr(error.message, "/nonexistent/program.json"), "%s", error.message);
}
