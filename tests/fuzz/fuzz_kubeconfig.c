/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a kubeconfig: an accepted one must be consistent. The files that it names do not exist.
 */
#include <stdint.h>
#include <stdlib.h>

#include "operator/kube/credentials.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kube_config config;
    if (size > 65536 || kube_config_parse((const char *)data, size, "/nonexistent", NULL, &config, NULL) < 0)
        return 0;
    if (config.server == NULL || config.name_space == NULL ||
        (config.client_cert_pem == NULL) != (config.client_key_pem == NULL))
        abort();
    kube_config_release(&config);
    return 0;
}
