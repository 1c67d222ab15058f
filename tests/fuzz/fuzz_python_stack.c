/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a log in which a Python script may have printed its stack.
 */
#include <stdint.h>
#include <stdlib.h>

#include "common/memory.h"
#include "common/python_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SCOPED_FREE char *text = memory_copy_bytes((const char *)data, size);
    SCOPED_BUFFER line = BUFFER_INIT(4096);
    if (python_stack_append(text, &line) != (line.length > 0))
        abort();
    (void)python_stack_is_collective(buffer_text(&line));
    return 0;
}
