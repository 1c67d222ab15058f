/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes are either a program's document with all tensors inside its layout, inputs with names that fill an example,
 * an output whose scores are one for each class, a start if there are weights, and no ignored targets but int32, or an error.
 */
#include <stdlib.h>

#include "worker/model/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    struct program *program;
    if (program_parse((const char *)bytes, length, &program, &error) < 0) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    const struct parameter_layout *layout = program_layout(program);
    for (unsigned i = 0; i < layout->tensor_count; i++)
        if (layout->tensors[i].offset < 0 || layout->tensors[i].offset + layout->tensors[i].elements > layout->elements)
            abort();
    const struct example_format *format = program_example_format(program);
    int64_t of_inputs = 0;
    if (format->input_count < 1 || format->input_count > EXAMPLE_INPUTS_MAX)
        abort();
    for (unsigned i = 0; i < format->input_count; i++) {
        if (format->inputs[i].name[0] == '\0' || format->inputs[i].elements < 1)
            abort();
        of_inputs += format->inputs[i].elements;
    }
    if (of_inputs != format->input_elements)
        abort();
    if (format->ignores && (format->target_type != ELEMENT_INT32 || !example_takes_target(format, format->ignored)))
        abort();
    const struct output_format *output = program_output_format(program);
    int64_t elements = 1;
    for (unsigned i = 0; output != NULL && i < output->rank; i++)
        elements *= output->shape[i];
    if (output != NULL && (output->rank > OUTPUT_RANK_MAX || output->elements != elements || elements < 1))
        abort();
    if (output != NULL && output->meaning != OUTPUT_VALUES && elements != format->classes)
        abort();
    if (program_weights(program) != NULL && !program_has_start(program))
        abort();
    program_free(program);
    return 0;
}
