/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes are either a file with all tokens inside them, or an error.
 */
#include <stdlib.h>

#include "worker/data/token_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct error error = ERROR_INIT;
    struct token_file file;
    if (token_file_parse(bytes, length, &file, &error) < 0) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    if (file.tokens + file.count * file.token_bytes != bytes + length)
        abort();
    if (file.count > 0 && token_file_at(&file, file.count - 1) < 0)
        abort();
    return 0;
}
