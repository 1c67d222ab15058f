/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a credential plugin's answer: an accepted one has a credential, which is valid in a header. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "operator/kube/exec_credential.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exec_credential credential;
    if (exec_credential_parse((const char *)data, size, "client.authentication.k8s.io/v1", &credential, NULL) < 0)
        return 0;
    bool has_pair = credential.client_cert_pem && credential.client_key_pem;
    if ((!credential.token && !has_pair) || (!credential.client_cert_pem != !credential.client_key_pem) ||
        (credential.token && (!*credential.token || strpbrk(credential.token, "\r\n "))))
        abort();
    exec_credential_release(&credential);
    return 0;
}
