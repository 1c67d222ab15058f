/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs of two pods, cut from one input at its first 0xff.
 */
#include <stdint.h>
#include <string.h>

#include "operator/cli/log_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = text + size;
    const char *cut = size > 0 ? memchr(text, 0xff, size) : NULL;
    struct log_text logs[] = {
        {"worker-0", .text = text, .end = cut ? cut : end},
        {"ps-0", .text = cut ? cut + 1 : end, .end = end},
    };
    struct log_style style = {.prefix = true, .colour = true, .width = 8};
    SCOPED_BUFFER out = BUFFER_INIT(1 << 20);
    size_t lines = 0;
    while (log_merge_line(&style, logs, 2, &out))
        if (++lines > size + 2)
            __builtin_trap();
    return 0;
}
