/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>

#include "worker/launch/tf_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tf_config config;
    struct error error = ERROR_INIT;
    if (tf_config_parse((const char *)data, size, &config, &error) < 0)
        return 0;
    if (config.index < 0 || config.role == NULL)
        abort();
    tf_config_release(&config);
    return 0;
}
