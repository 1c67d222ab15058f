/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "operator/standalone/protobuf_body.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct json *object;
    if (protobuf_body_parse(bytes, length, &object, NULL) == 0)
        json_free(object);
    return 0;
}
