/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/example_format.h"

/* All types have four bytes: inputs of several types lie behind each other without gaps. */
_Static_assert(sizeof(float) == sizeof(int32_t), "an example's inputs are counted in elements");

static size_t element_bytes(enum element_type type)
{
    return type == ELEMENT_FLOAT32 ? sizeof(float) : sizeof(int32_t);
}

size_t example_input_bytes(const struct example_format *format)
{
    return (size_t)format->input_elements * element_bytes(format->input_type);
}

size_t example_target_bytes(const struct example_format *format)
{
    return (size_t)format->target_elements * element_bytes(format->target_type);
}

int64_t example_targets(const struct example_format *format)
{
    return format->target_type == ELEMENT_INT32 ? format->target_elements : 1;
}

bool example_takes_target(const struct example_format *format, int64_t target)
{
    return (target >= 0 && target < format->classes) || (format->ignores && target == format->ignored);
}
