/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths of requests and JSONPaths of printer columns must not be read beyond their end.
 */
#include <stdint.h>

#include "common/memory.h"
#include "operator/standalone/api_path.h"
#include "operator/standalone/json_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    SCOPED_FREE char *text = memory_copy_bytes((const char *)bytes, length);
    SCOPED_JSON *root = json_new_object();
    struct json *item = json_append(json_set_array(root, "l"), json_new_object());
    struct api_path path;
    json_set_string(item, "name", "loss");
    api_path_parse(text, &path);
    json_path_first(root, text);
    return 0;
}
