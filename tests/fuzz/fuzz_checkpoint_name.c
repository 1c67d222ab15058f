/* SPDX-License-Identifier: Apache-2.0
 *
 * Any file name in a directory of checkpoints is either not a checkpoint's, or can be written again from its numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "worker/checkpoint/checkpoint_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct checkpoint_name name, again;
    char text[256], written[CHECKPOINT_NAME_MAX];
    if (length >= sizeof text)
        return 0;
    memcpy(text, bytes, length);
    text[length] = '\0';
    if (checkpoint_name_parse(text, &name) < 0)
        return 0;
    checkpoint_name_format(&name, written);
    if (checkpoint_name_parse(written, &again) < 0 || !checkpoint_name_equal(&name, &again))
        abort();
    return 0;
}
